// Exceptions end where the library does: a call of the public API that something was thrown in answers with a Status, and a function that
// may not throw goes on without what there was no memory for. Nothing else of the library catches everything, but calls into plugins.
#pragma once

#include <utility>

#include "heddle/status.h"

namespace heddle {

// The exception that is being handled, as a Status: out_of_memory for std::bad_alloc, internal for all others. Only inside of a catch
// block. It fails never: where the heap has nothing left for its text, it is one of a few that were made beforehand.
Status status_of_exception() noexcept;

// Runs `function`, for which there may be no memory: what is left of it then stays undone, and false is answered. For places that cannot
// give an error: destructors, callbacks of threads and of plugins.
template <class Function>
bool without_exceptions(Function&& function) noexcept {
  try {
    std::forward<Function>(function)();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace heddle

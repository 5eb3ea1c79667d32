// Exceptions end at the library's boundary: a call of the public API in which one was thrown returns a Status, and a function that may not
// throw continues without the part that there was no memory for. Nothing else in the library catches everything, except calls into plugins.
#pragma once

#include <utility>

#include "heddle/status.h"

namespace heddle {

// Converts the exception being handled to a Status: out_of_memory for std::bad_alloc, internal for all others. The caller must be inside a
// catch block. It never fails: where the heap has nothing left for its text, it is one of a few that were made beforehand.
Status status_of_exception() noexcept;

// Runs `function`, for which there may be no memory: if it throws, the rest of it stays undone and false is returned. For places that
// cannot return an error: destructors, callbacks of threads and of plugins.
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

// For functions of the public API that return plain values, and so have no place for an error.
#pragma once

#include <string_view>
#include <utility>

#include "plugin/host.h"

namespace heddle {

// What `function` returns; where it throws, which it does for want of memory, an empty value, and a line in the log that says so.
template <class Function>
auto or_empty(std::string_view call, Function&& function) noexcept -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    host_table()->log(HEDDLE_LOG_ERROR, call.data(), call.size());
    return {};
  }
}

}  // namespace heddle

// A helper for functions of the public API that return plain values, and so cannot return an error.
#pragma once

#include <string_view>
#include <utility>

#include "plugin/host.h"

namespace heddle {

// Returns the result of `function`; if it throws, as it does without memory, logs `call` as an error and returns an empty value.
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

// The one place where an exception of a plugin can meet the boundary.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "heddle/abi.h"
#include "heddle/op/plugin_status.h"

namespace heddle {
namespace plugin {

namespace detail {

inline heddle_status report(const heddle_host* host, const heddle_call* call, const Status& status) {
  // Without text: the host has one already, of the subnet that failed.
  if (!status.ok() && !status.text.empty()) host->set_error(call, status.code, status.text.data(), status.text.size());
  return status.code;
}

// Runs `body`, turns what it throws into a status. The only place where an exception can meet the boundary.
template <class Body>
heddle_status guard(const heddle_host* host, const heddle_call* call, Body&& body) noexcept {
  try {
    try {
      return report(host, call, body());
    } catch (const std::bad_alloc&) {
      host->set_error(call, HEDDLE_ERROR_OUT_OF_MEMORY, "out of memory", 13);
      return HEDDLE_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      return report(host, call, {HEDDLE_ERROR_INTERNAL, std::string("exception: ") + e.what()});
    }
  } catch (...) {
    const char text[] = "exception of unknown type";
    host->set_error(call, HEDDLE_ERROR_INTERNAL, text, sizeof(text) - 1);
    return HEDDLE_ERROR_INTERNAL;
  }
}

}  // namespace detail

}  // namespace plugin
}  // namespace heddle

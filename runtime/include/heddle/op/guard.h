// The guard between a plugin's code and the boundary: it catches the exceptions of the plugin, so that none crosses the boundary.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "heddle/abi.h"
#include "heddle/op/mistake.h"
#include "heddle/op/plugin_status.h"

namespace heddle {
namespace plugin {

namespace detail {

// The host's functions and a call: the two fields that guard() reads in any context of the ABI.
struct Caller {
  const heddle_host* host;
  const heddle_call* call;
};

template <class Context>
heddle_status report(const Context& context, const Status& status) {
  // If a failing status has no text, the host already has the text, for example from the subnet that failed.
  if (!status.ok() && !status.text.empty()) context.host->set_error(context.call, status.code, status.text.data(), status.text.size());
  return status.code;
}

// Returns the status of `body`. If `body` takes Mistakes and has noted one, returns the status of that mistake.
template <class Context, class Body>
heddle_status answer_of(const Context& context, Body& body) {
  if constexpr (std::is_invocable_v<Body&, Mistakes&>) {
    Mistakes mistakes;
    Status status = body(mistakes);
    return report(context, mistakes.status(std::move(status)));
  } else {
    return report(context, body());
  }
}

// Runs `body` and converts exceptions into a status. Every function that the host calls must run its body through guard(), or catch all
// exceptions itself as open() in module.h does, so that no exception reaches the boundary. This code runs in every step of a
// net: it reads `context` only if there is a failure, so that it costs nothing otherwise.
template <class Context, class Body>
heddle_status guard(const Context& context, Body&& body) noexcept {
#if HEDDLE_PLUGIN_EXCEPTIONS
  try {
    try {
      return answer_of(context, body);
    } catch (const std::bad_alloc&) {
      context.host->set_error(context.call, HEDDLE_ERROR_OUT_OF_MEMORY, "out of memory", 13);
      return HEDDLE_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      return report(context, {HEDDLE_ERROR_INTERNAL, std::string("exception: ") + e.what()});
    }
  } catch (...) {
    const char text[] = "exception of unknown type";
    context.host->set_error(context.call, HEDDLE_ERROR_INTERNAL, text, sizeof(text) - 1);
    return HEDDLE_ERROR_INTERNAL;
  }
#else
  const heddle_status answer = answer_of(context, body);
  return std::exchange(failed_within, false) && answer == HEDDLE_OK ? HEDDLE_ERROR_INTERNAL : answer;
#endif
}

}  // namespace detail

}  // namespace plugin
}  // namespace heddle

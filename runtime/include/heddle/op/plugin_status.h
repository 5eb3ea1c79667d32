// Status: the return type of an operator author's functions.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

// A status is ok, an error code with a message, or HEDDLE_PENDING without a message. It allocates memory only for an error.
struct [[nodiscard]] Status {
  heddle_status code = HEDDLE_OK;
  std::string text;
  Status() = default;
  Status(heddle_status c, std::string message) : code(c), text(std::move(message)) {}
  bool ok() const { return code == HEDDLE_OK; }
};
inline Status invalid(std::string text) {
  return {HEDDLE_ERROR_INVALID, std::move(text)};
}
inline Status unsupported(std::string text) {
  return {HEDDLE_ERROR_UNSUPPORTED, std::move(text)};
}

inline Status cancelled() {
  return {HEDDLE_ERROR_CANCELLED, "cancelled"};
}

// The status that run() of a HEDDLE_KERNEL_RESUMES kernel returns if run_subnet returned HEDDLE_PENDING.
inline Status pending() {
  return {HEDDLE_PENDING, {}};
}

namespace detail {

template <class T, class = void>
struct has_status : std::false_type {};
template <class T>
struct has_status<T, std::enable_if_t<std::is_same<std::decay_t<decltype(std::declval<const T&>().status())>, Status>::value>>
    : std::true_type {};

// Returns the result of made.status(), by which an object reports a failure of its constructor, or ok if T has no function `Status status()
// const`.
template <class T>
Status status_of([[maybe_unused]] const T& made) {
  if constexpr (has_status<T>::value)
    return made.status();
  else
    return {};
}

}  // namespace detail

}  // namespace plugin
}  // namespace heddle

// Returns the Status of `expression` from the enclosing function if it failed or is pending.
#define HEDDLE_PLUGIN_CHECK(expression)                            \
  do {                                                             \
    ::heddle::plugin::Status heddle_plugin_status_ = (expression); \
    if (!heddle_plugin_status_.ok()) return heddle_plugin_status_; \
  } while (false)

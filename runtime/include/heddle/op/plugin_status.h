// Status: the return type of an operator author's functions.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

// Ok, or a code and a message. Allocates only on failure. HEDDLE_PENDING, which is neither, has no message.
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

// Returned by run() of a kernel that resumes if run_subnet returned HEDDLE_PENDING.
inline Status pending() {
  return {HEDDLE_PENDING, {}};
}

namespace detail {

template <class T, class = void>
struct has_status : std::false_type {};
template <class T>
struct has_status<T, std::enable_if_t<std::is_same<decltype(std::declval<const T&>().status()), Status>::value>> : std::true_type {};

// Returns what `Status status() const` of an object reports about its constructor, or ok if it has no such function.
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

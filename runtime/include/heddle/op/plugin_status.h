// Status: what every function of an operator author answers.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

// Ok, or a code and a sentence. Allocates only on failure. HEDDLE_PENDING, which is neither, has no sentence.
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

// What run() of a kernel that resumes answers where run_subnet did.
inline Status pending() {
  return {HEDDLE_PENDING, {}};
}

namespace detail {

template <class T, class = void>
struct has_status : std::false_type {};
template <class T>
struct has_status<T, std::enable_if_t<std::is_same<decltype(std::declval<const T&>().status()), Status>::value>> : std::true_type {};

// What an object says of how its constructor went, in `Status status() const`, if it has that.
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

// Leaves the enclosing function with the Status of `expression` when it failed, or is pending.
#define HEDDLE_PLUGIN_CHECK(expression)                            \
  do {                                                             \
    ::heddle::plugin::Status heddle_plugin_status_ = (expression); \
    if (!heddle_plugin_status_.ok()) return heddle_plugin_status_; \
  } while (false)

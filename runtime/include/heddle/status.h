// Status, Result and Diagnostic: how every part of Heddle reports errors.
//
// A Status is either ok or carries a Diagnostic. An ok status is a null pointer and costs one comparison to test. A Diagnostic has a stable
// code, the operator that failed, a description of the problem, and a way to fix the problem. Each caller may add context before it returns
// a Status to its own caller ("while loading ..."). Errors are returned as values and never thrown. Requires C++17, neither RTTI nor
// exceptions. A Status may be moved to another thread, but two threads must not use one Status at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/export.h"

namespace heddle {

enum class Severity : uint8_t { note, warning, error };

// Stable codes. to_string returns the text of a code as it is printed, in kebab-case; docs/diagnostics.md lists these texts.
enum class Code : uint8_t {
  ok,
  // wrong use
  invalid_argument,
  missing_input,
  unknown_option,
  unknown_name,
  busy,
  // files
  file_not_found,
  file_unreadable,
  file_unwritable,
  file_truncated,
  file_corrupt,
  file_version,
  weights_missing,
  weights_mismatch,
  weights_outside,
  // nets
  syntax,
  duplicate_name,
  dangling_input,
  cycle,
  unknown_operator,
  arity_mismatch,
  unknown_attribute,
  attribute_mismatch,
  dtype_mismatch,
  shape_mismatch,
  unbound_symbol,
  no_kernel,
  wrong_device,
  no_such_device,
  hazard,
  subnet_mismatch,
  unused_operator,  // a warning
  unsupported,
  // plugins
  plugin_unreadable,
  plugin_abi,
  plugin_invalid,
  duplicate_registration,
  missing_resource,
  // limits
  limit_exceeded,
  out_of_memory,
  // running
  kernel_failed,
  numerics,
  comparison_failed,
  cancelled,
  deadline_exceeded,
  device_failed,
  device_lost,  // the device must be opened again
  forked,
  interrupted,
  not_implemented,  // the request is documented but does not work yet
  internal,
};

// Returns the kebab-case text of a code, e.g. "shape-mismatch", in static storage.
HEDDLE_API const char* to_string(Code code);
HEDDLE_API const char* to_string(Severity severity);
// Returns the exit status of the command line for a code (docs/command_line.md).
HEDDLE_API int exit_status(Code code);

// One error, warning or note. If a string is empty, that item does not apply to the diagnostic.
struct Diagnostic {
  Severity severity = Severity::error;
  Code code = Code::internal;
  std::string net;
  std::string node;  // the operator's name in its net
  std::string type;  // the operator's type
  std::string message;
  std::string hint;                  // how to fix the problem
  std::string option;                // an option named in `hint`, as it is written there: "SessionOptions::memory_limit"; or empty
  std::vector<std::string> context;  // "while ..." texts, innermost first
  std::vector<Diagnostic> attached;  // secondary failures of the same run

  // Returns one line, with names escaped as JSON strings: error[code] "net": "node" (Type): message; hint
  HEDDLE_API std::string text() const;
};

// How to fix an error: a text, and the name of the option to change, which must occur in the text. A string converts to a Hint without an
// option.
struct Hint {
  Hint() = default;
  Hint(std::string hint) : text(std::move(hint)) {}  // NOLINT: implicit on purpose
  Hint(const char* hint) : text(hint) {}             // NOLINT: implicit on purpose
  std::string text;
  std::string option;  // Diagnostic::option
};

namespace detail {
// Called when a program takes the value of a failed Result, or the diagnostic of an ok Status: prints the error to stderr and aborts.
[[noreturn]] HEDDLE_API void no_value(const Diagnostic* error) noexcept;
[[noreturn]] HEDDLE_API void no_diagnostic() noexcept;
}  // namespace detail

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  explicit Status(Diagnostic diagnostic) : diagnostic_(std::make_unique<Diagnostic>(std::move(diagnostic))) {}
  Status(Code code, std::string message, Hint hint = {}) : diagnostic_(std::make_unique<Diagnostic>()) {
    diagnostic_->code = code;
    diagnostic_->message = std::move(message);
    diagnostic_->hint = std::move(hint.text);
    diagnostic_->option = std::move(hint.option);
  }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) { *this = other; }
  Status& operator=(const Status& other) {
    if (this != &other) diagnostic_ = other.diagnostic_ ? std::make_unique<Diagnostic>(*other.diagnostic_) : nullptr;
    return *this;
  }

  bool ok() const noexcept { return !diagnostic_; }
  Code code() const noexcept { return diagnostic_ ? diagnostic_->code : Code::ok; }
  // Requires !ok(): an ok status has no diagnostic, and the program aborts with a message.
  const Diagnostic& diagnostic() const noexcept { return diagnostic_ ? *diagnostic_ : (detail::no_diagnostic(), *diagnostic_); }
  Diagnostic& diagnostic() noexcept { return diagnostic_ ? *diagnostic_ : (detail::no_diagnostic(), *diagnostic_); }
  std::string text() const { return diagnostic_ ? diagnostic_->text() : std::string("ok"); }

  // These functions add context to the diagnostic and return the status. They do nothing if the status is ok.
  Status&& in_net(const std::string& net) && {
    if (diagnostic_ && diagnostic_->net.empty()) diagnostic_->net = net;
    return std::move(*this);
  }
  Status&& at(const std::string& node, const std::string& type) && {
    if (diagnostic_ && diagnostic_->node.empty()) {
      diagnostic_->node = node;
      diagnostic_->type = type;
    }
    return std::move(*this);
  }
  Status&& during(std::string what) && {
    if (diagnostic_) diagnostic_->context.push_back(std::move(what));
    return std::move(*this);
  }

 private:
  std::unique_ptr<Diagnostic> diagnostic_;
};

// A T, or the reason why there is none. Check ok() first: taking the value of a failed result prints the error of the result and aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose
  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const& noexcept { return status_; }
  Status&& status() && noexcept { return std::move(status_); }
  T& value() & noexcept { return *checked(); }
  const T& value() const& noexcept { return *checked(); }
  T&& value() && noexcept { return std::move(*checked()); }
  T& operator*() & noexcept { return *checked(); }
  const T& operator*() const& noexcept { return *checked(); }
  T&& operator*() && noexcept { return std::move(*checked()); }
  T* operator->() noexcept { return checked(); }
  const T* operator->() const noexcept { return checked(); }

 private:
  T* checked() noexcept {
    if (!value_) detail::no_value(status_.ok() ? nullptr : &status_.diagnostic());
    return &*value_;
  }
  const T* checked() const noexcept { return const_cast<Result*>(this)->checked(); }

  std::optional<T> value_;
  Status status_;
};

}  // namespace heddle

// Returns the Status of `expression` from the enclosing function if that Status is an error. A second argument adds context to the error:
// HEDDLE_CHECK(f(x), "while loading").
#define HEDDLE_CHECK(...) HEDDLE_CHECK_PICK_(__VA_ARGS__, HEDDLE_CHECK_2_, HEDDLE_CHECK_1_)(__VA_ARGS__)
#define HEDDLE_CHECK_PICK_(a, b, name, ...) name
#define HEDDLE_CHECK_1_(expression)                  \
  do {                                               \
    ::heddle::Status heddle_status_ = (expression);  \
    if (!heddle_status_.ok()) return heddle_status_; \
  } while (false)
#define HEDDLE_CHECK_2_(expression, what)                                    \
  do {                                                                       \
    ::heddle::Status heddle_status_ = (expression);                          \
    if (!heddle_status_.ok()) return std::move(heddle_status_).during(what); \
  } while (false)
// HEDDLE_TRY(auto net, load(path), "while loading " + path) declares `net` with the value of the Result, or returns the Status of a failed
// Result from the enclosing function.
#define HEDDLE_TRY(declaration, ...) HEDDLE_TRY_PICK_(__VA_ARGS__, HEDDLE_TRY_2_, HEDDLE_TRY_1_)(declaration, __VA_ARGS__)
#define HEDDLE_TRY_PICK_(a, b, name, ...) name
#define HEDDLE_JOIN_(a, b) HEDDLE_JOIN_2_(a, b)
#define HEDDLE_JOIN_2_(a, b) a##b
#define HEDDLE_TRY_1_(declaration, expression) HEDDLE_TRY_AS_(HEDDLE_JOIN_(heddle_result_, __LINE__), declaration, expression, )
#define HEDDLE_TRY_2_(declaration, expression, what) \
  HEDDLE_TRY_AS_(HEDDLE_JOIN_(heddle_result_, __LINE__), declaration, expression, .during(what))
#define HEDDLE_TRY_AS_(temporary, declaration, expression, context)                    \
  auto temporary = (expression);                                                       \
  if (!temporary.ok()) return ::heddle::Status(std::move(temporary).status() context); \
  declaration = std::move(temporary).value()

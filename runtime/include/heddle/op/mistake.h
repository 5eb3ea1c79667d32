// Mistakes in the plugin's own code: reading an attribute that is not declared or an input that is absent.
//
// With exceptions, a mistake throws and so ends the call at once. Without exceptions (-fno-exceptions), the mistake is noted, the function
// that reads returns a harmless value, and the call fails when it ends. None of this applies to a kernel's run(), because run() reads no
// attributes.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "heddle/abi.h"
#include "heddle/op/plugin_status.h"

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define HEDDLE_PLUGIN_EXCEPTIONS 1
#else
#define HEDDLE_PLUGIN_EXCEPTIONS 0
#include <cstdlib>
#endif

namespace heddle {
namespace plugin {
namespace detail {

// The mistakes in one call from the host. The guard of the call makes a Mistakes object, and checks it after the call.
class Mistakes {
 public:
  bool any() const { return !first_.empty(); }
  void note(std::string text) {
    if (first_.empty()) first_ = std::move(text);
  }
  // Returns the status of the call: that of the first mistake, else `otherwise`.
  Status status(Status otherwise) { return any() ? Status(HEDDLE_ERROR_INTERNAL, std::move(first_)) : std::move(otherwise); }

 private:
  std::string first_;
};

// Throws or notes a mistake. `mistakes` is null in a function without a guard (Op::raw_kernel), which could report neither the exception
// nor the note: such a function must read only attributes that the schema declares, and inputs that are present.
inline void make_mistake([[maybe_unused]] Mistakes* mistakes, const std::string& text) {
#if HEDDLE_PLUGIN_EXCEPTIONS
  throw std::logic_error(text);
#else
  if (!mistakes) std::abort();
  mistakes->note(text);
#endif
}

#if !HEDDLE_PLUGIN_EXCEPTIONS
// True if the call of the plugin that is in progress on this thread must fail even if its function returns ok; the host already has the
// error text. The guard reads and clears this flag.
__attribute__((visibility("hidden"))) inline thread_local bool failed_within = false;
#endif

// The tensor that is returned in place of an absent one: it has rank 0 and no data, and its dims may be read for any axis and are 0.
inline const heddle_tensor& no_tensor() {
  static const int64_t zeros[2 * HEDDLE_MAX_RANK] = {};
  static const heddle_tensor none = [] {
    heddle_tensor t = {};
    t.struct_size = sizeof(t);
    t.dims = zeros + HEDDLE_MAX_RANK;
    t.extent_axis = -1;
    return t;
  }();
  return none;
}

}  // namespace detail
}  // namespace plugin
}  // namespace heddle

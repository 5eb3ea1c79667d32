// Mistakes in the plugin's own code: reading an attribute that is not declared or an input that is absent.
//
// With exceptions a mistake is thrown and ends the call at once. Without them (-fno-exceptions) it is noted, the read returns something
// harmless, and the call fails when it ends. This does not apply to run, which reads no attributes and has no such check.
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

// The mistakes of one call of the host. The guard around the call has one and checks it afterwards.
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

// `mistakes` is null in functions without a guard (raw_kernel). They must not read anything that may be wrong, because neither an exception
// nor a note would be reported.
inline void make_mistake([[maybe_unused]] Mistakes* mistakes, const std::string& text) {
#if HEDDLE_PLUGIN_EXCEPTIONS
  throw std::logic_error(text);
#else
  if (!mistakes) std::abort();
  mistakes->note(text);
#endif
}

#if !HEDDLE_PLUGIN_EXCEPTIONS
// True if the plugin call in progress on this thread has failed, whatever it returns: the host has the text. The guard checks it.
__attribute__((visibility("hidden"))) inline thread_local bool failed_within = false;
#endif

// A substitute for an absent tensor: of rank 0, without data, with extents of 0 along any axis that may be read.
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

// What becomes of a mistake in the plugin's own code: an attribute read that is not declared, an input that is absent.
//
// With exceptions it is thrown, and ends the call there. Without (-fno-exceptions) it is noted, what was asked for is answered with
// something harmless, and the call fails when it is over: never in run, which neither reads attributes nor pays for this.
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

// Those of one call of the host. The guard around it has one, and looks at it afterwards.
class Mistakes {
 public:
  bool any() const { return !first_.empty(); }
  void note(std::string text) {
    if (first_.empty()) first_ = std::move(text);
  }
  // Of the call, which answered `otherwise`.
  Status status(Status otherwise) { return any() ? Status(HEDDLE_ERROR_INTERNAL, std::move(first_)) : std::move(otherwise); }

 private:
  std::string first_;
};

// `mistakes` is null in functions that have no guard around them (raw_kernel): they read nothing that may be wrong, for neither an
// exception nor a note would get anywhere.
inline void make_mistake([[maybe_unused]] Mistakes* mistakes, const std::string& text) {
#if HEDDLE_PLUGIN_EXCEPTIONS
  throw std::logic_error(text);
#else
  if (!mistakes) std::abort();
  mistakes->note(text);
#endif
}

#if !HEDDLE_PLUGIN_EXCEPTIONS
// Whether the call of the plugin under way on this thread has failed, whatever it answers: the host has the text. The guard looks.
__attribute__((visibility("hidden"))) inline thread_local bool failed_within = false;
#endif

// What stands for a tensor that is not there: of rank 0, without data, whose extents are 0 along any axis that may be asked for.
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

// What profilers show of the host's side of a launch: a range of NVTX's with the operator's name. Nothing where the toolkit has no NVTX;
// with it, nothing but a look at a pointer while no profiler is there.
#pragma once

#include <string>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace heddle::cuda {

class TraceRange {
 public:
#if __has_include(<nvtx3/nvToolsExt.h>)
  explicit TraceRange(const std::string& name) {
    nvtxRangePushA(name.c_str());
  }
  ~TraceRange() {
    nvtxRangePop();
  }
  // Before threads make ranges side by side: NVTX looks for a profiler at the first call, and is not made for two first calls at once.
  static void prepare() {
    [[maybe_unused]] static const bool done = (nvtxInitialize(nullptr), true);
  }
#else
  explicit TraceRange(const std::string&) {}
  static void prepare() {}
#endif
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};

}  // namespace heddle::cuda

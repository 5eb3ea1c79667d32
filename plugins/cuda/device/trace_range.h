// Shows the host's side of a launch in profilers: an NVTX range with the operator's name. Does nothing where the toolkit has no NVTX; with
// NVTX and without a profiler it costs a check of a pointer.
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
  // Must be called before threads make ranges concurrently: NVTX looks for a profiler at the first call, and two first calls at once are
  // not safe.
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

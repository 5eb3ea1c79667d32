#include "plugin/kernel_guard.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "plugin/host.h"

namespace heddle {

Status check_prepared(const KernelEntry& kernel, const heddle_prepare_context& prepared, int64_t limit_bytes) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kernel_failed, "kernel " + quoted(kernel.name) + " prepared " + what, "mend the kernel's prepare");
  };
  if (prepared.tile_count < 0 || prepared.tile_count > INT32_MAX) return wrong(std::to_string(prepared.tile_count) + " tiles");
  if (!std::isfinite(prepared.cost_ns) || prepared.cost_ns < 0) return wrong("a cost of " + shortest(prepared.cost_ns) + " ns");
  const auto limit = static_cast<uint64_t>(limit_bytes);
  const uint64_t threads = std::max<uint32_t>(prepared.max_threads, 1);
  if (prepared.scratch_bytes > limit || prepared.thread_scratch_bytes > (limit - prepared.scratch_bytes) / threads)
    return {Code::limit_exceeded,
            "kernel " + quoted(kernel.name) + " asks for " + std::to_string(prepared.scratch_bytes) + " bytes of scratch and " +
                std::to_string(prepared.thread_scratch_bytes) + " more for each of " + std::to_string(threads) + " threads",
            "the limit is " + std::to_string(limit) + " bytes; use smaller shapes or raise it"};
  return {};
}

void destroy_state(const KernelEntry& kernel, void* state) noexcept {
  if (!state || !kernel.kernel->destroy) return;
  try {
    kernel.kernel->destroy(state);
  } catch (...) {
    log_line(HEDDLE_LOG_WARNING, "kernel " + quoted(kernel.name) + " threw an exception out of destroy");
  }
}

}  // namespace heddle

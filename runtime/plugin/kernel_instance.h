// KernelInstance: one kernel made for one node. The only place that calls create, prepare and destroy of kernels: for plans, for late steps
// while they run, for operators that run alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "plugin/kernel_call.h"
#include "plugin/schema.h"

namespace heddle {

// Owner of a kernel's state. Exceptions from destroy are logged.
struct DestroyState {
  const KernelEntry* kernel = nullptr;
  void operator()(void* state) const noexcept;
};
using KernelState = std::unique_ptr<void, DestroyState>;

struct KernelInstance {
  const KernelEntry* kernel = nullptr;
  KernelState state;
  // The number of tiles that prepare requested; before it, one.
  int64_t tiles = 1;
  int64_t scratch_bytes = 0;         // per step, with that of its data on the host
  int64_t data_scratch_bytes = 0;    // of HEDDLE_KERNEL_MOVES_ONLY
  int64_t data_scratch_at = 0;       // where it begins in the step's scratch
  int64_t thread_scratch_bytes = 0;  // per executing thread
  double cost_ns = 0;                // of one run on one thread; 0: unknown
  uint64_t reads_host = 0;           // on a device; bit i: run reads input i on the host
};

// Arguments of prepare. Views: null for absent ones, data non-null for constants; they need to live during the call only.
struct PrepareRequest {
  std::span<const heddle_tensor*const> inputs, outputs;
  std::span<const void* const> host_data{};  // by input; empty: those of the views
  uint32_t max_threads = 1;
  uint16_t group_size = 0, group_index = 0;  // heddle_prepare_context
  uint32_t rank = 0, rank_count = 0;         // likewise
  int64_t scratch_limit = INT64_MAX / 4;   // for the step with all its threads
  int64_t scratch_budget = INT64_MAX / 4;  // what the kernel sees; at most the limit counts
};

// Prepares the kernel, or prepares it again because extents have changed. Errors: those of the kernel; kernel_failed for tiles below zero
// or beyond 2^31 and costs that are not numbers; limit_exceeded. `end`, when given, describes a failure.
Status prepare_kernel(KernelInstance& made, const PrepareRequest& request, CallServices* services, CallEnd* end = nullptr);

// Returns the kernel to try when `refused` has reported that it does not run this node; null: none, that report is the result.
using NextKernel = std::function<const KernelEntry*(const KernelEntry& refused)>;

// Creates and prepares `first`, or the next kernel that accepts this node. `request` null: only creates. `call` must outlive the result.
Status make_kernel(const KernelCall& call, const KernelEntry& first, const NextKernel& next, const PrepareRequest* request,
                   CallServices* services, KernelInstance* made, CallEnd* end = nullptr);

}  // namespace heddle

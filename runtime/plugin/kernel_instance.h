// KernelInstance: one kernel made for one node. The one place where create, prepare and destroy of kernels are called: for plans, for late
// steps while they run, for operators that are run alone.
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

// Owner of a kernel's state. Exceptions out of destroy are logged.
struct DestroyState {
  const KernelEntry* kernel = nullptr;
  void operator()(void* state) const noexcept;
};
using KernelState = std::unique_ptr<void, DestroyState>;

struct KernelInstance {
  const KernelEntry* kernel = nullptr;
  KernelState state;
  // What prepare asked for; until then one tile.
  int64_t tiles = 1;
  int64_t scratch_bytes = 0;         // per step, with that of its data on the host
  int64_t data_scratch_bytes = 0;    // of HEDDLE_KERNEL_MOVES_ONLY
  int64_t data_scratch_at = 0;       // where it begins in the step's scratch
  int64_t thread_scratch_bytes = 0;  // per executing thread
  double cost_ns = 0;                // of one run on one thread; 0: unknown
  uint64_t reads_host = 0;           // on a device: bit i: run reads input i on the host
};

// What prepare is told. Views: null for absent ones, data non-null for constants; they need to live during the call only.
struct PrepareRequest {
  std::span<const heddle_tensor*const> inputs, outputs;
  std::span<const void* const> host_data{};  // by input; empty: where the views say
  uint32_t max_threads = 1;
  int64_t scratch_limit = INT64_MAX / 4;   // for the step with all its threads
  int64_t scratch_budget = INT64_MAX / 4;  // that the kernel is told; at most the limit counts
};

// Prepares the kernel, or prepares it again because extents are others now. Errors: what the kernel says; kernel_failed for tiles below
// zero or beyond 2^31 and costs that are no number; limit_exceeded. `end`, when given, is told of a failure.
Status prepare_kernel(KernelInstance& made, const PrepareRequest& request, CallServices* services, CallEnd* end = nullptr);

// The kernel to try when `refused` answered that it does not do this node; null: none, its answer stands.
using NextKernel = std::function<const KernelEntry*(const KernelEntry& refused)>;

// Creates and prepares `first`, or the next that does this node. `request` null: creates alone. `call` outlives what is made.
Status make_kernel(const KernelCall& call, const KernelEntry& first, const NextKernel& next, const PrepareRequest* request,
                   CallServices* services, KernelInstance* made, CallEnd* end = nullptr);

}  // namespace heddle

// What the host does about kernels that break the rules of the boundary outside of run.
#pragma once

#include <cstdint>
#include <memory>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "plugin/schema.h"

namespace heddle {

// Judges what prepare filled in: 0 <= tile_count < 2^31, a finite cost, and scratch of at most `limit_bytes` for the step with all its
// threads. Code::kernel_failed or limit_exceeded, naming the kernel and the number.
Status check_prepared(const KernelEntry& kernel, const heddle_prepare_context& prepared, int64_t limit_bytes);

// Destroys a kernel's state; null states and exceptions are nothing to worry about.
void destroy_state(const KernelEntry& kernel, void* state) noexcept;

// Owner of a kernel's state.
struct DestroyState {
  const KernelEntry* kernel = nullptr;
  void operator()(void* state) const noexcept { destroy_state(*kernel, state); }
};
using KernelState = std::unique_ptr<void, DestroyState>;

}  // namespace heddle

// ContextMemory: the memory that one context of a plan works in: the host's arena, followed by thread scratch and staging, and one arena on
// each device of the plan.
//
// The bytes are its own, those of a Workspace that others use in between, or, for the host's part, a buffer of the caller. It only knows
// the addresses: users must read them again after move_to(). Belongs to one Execution. Threads: addresses do not change during a run, when
// any thread may read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"
#include "memory/workspace.h"

namespace heddle {

// Returns what a context of `plan` needs of a workspace.
WorkspaceNeeds needs_of(const Plan& plan);
// Makes `workspace` large enough for `plan`, with the streams and events of its devices. Errors: out_of_memory, device_failed.
Status reserve(Workspace& workspace, const Plan& plan);
// Like reserve(), without the host's part, which the caller of a context provides.
Status reserve_on_devices(Workspace& workspace, const Plan& plan);

class ContextMemory {
 public:
  // `plan` must outlive it. `workspace` must have reserved for the plan; null: memory of its own. `transient`: the caller's buffer for the
  // host's part, of at least plan.context_bytes() and 64-byte aligned; null: none. Errors: out_of_memory, device_failed, invalid_argument
  // (the buffer is too small or unaligned).
  static Result<ContextMemory> create(const Plan& plan, Workspace* workspace, void* transient, int64_t transient_bytes);

  // For a subnet of a step on a device: works within the memory of the outer context, on the host and on that device.
  static Result<ContextMemory> create_inside(const Plan& plan, Workspace& workspace, std::byte* transient, std::byte* on_device);
  void move_inside(Workspace& workspace, std::byte* transient, std::byte* on_device);

  // The generation of its workspace when it moved there, see Workspace::generation().
  uint64_t generation() const { return generation_; }
  // Moves to a workspace that has reserved for the plan, or moves the host's part alone to a buffer as in create(). Allocates nothing.
  void move_to(Workspace& workspace);
  void move_to(std::byte* transient);

  // The workspace it works in: its own, or the one that it was given. Valid until it moves or the workspace is destroyed.
  Workspace& workspace() const { return *workspace_; }
  // `device` as in MemoryPlace.
  std::byte* arena(uint8_t device) const { return device == 0 ? host_ : on_devices_[device - 1u]; }
  std::byte* staging() const { return host_ + plan_->staging_offset(); }
  // The scratch of a step, where it runs.
  std::byte* scratch(uint32_t step) const;
  // The scratch of a kernel that only moves data, where its data lie.
  std::byte* data_scratch(uint32_t step) const;
  // The memory of the plans of a step's subnets. One runs at a time: they share the end of the step's scratch, after the kernel's own.
  std::byte* subnet_memory(uint32_t step) const;
  // Their memory on the step's device, after the scratch of its data.
  std::byte* subnet_memory_on_device(uint32_t step) const;
  // A plan for one thread has one thread scratch.
  std::byte* thread_scratch(uint32_t worker) const {
    return thread_scratch_ + (plan_->max_threads > 1 ? worker : 0) * static_cast<size_t>(plan_->thread_scratch_bytes);
  }
  // Returns the bytes that it holds in memory of its own, on the host or a device of the plan.
  int64_t own_bytes(uint8_t device) const;

 private:
  explicit ContextMemory(const Plan& plan) : plan_(&plan) {}
  const Plan* plan_;
  std::unique_ptr<Workspace> own_;  // null: it was given all memory that it needs
  HostRegistration pinned_;         // the registration of the caller's buffer
  Workspace* workspace_ = nullptr;
  uint64_t generation_ = 0;
  std::byte* host_ = nullptr;
  std::byte* thread_scratch_ = nullptr;
  std::vector<std::byte*> on_devices_;  // by Plan::devices
};

}  // namespace heddle

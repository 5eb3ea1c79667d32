// ContextMemory: where one context of a plan works: the host's arena, with thread scratch and staging behind it, and one arena on each
// device of the plan.
//
// The bytes are its own, those of a Workspace in which others work in between, or, for the host's part, a buffer of the caller's. It knows
// where they are and no more: addresses must be taken anew after move_to(). Belongs to one Execution; addresses stand still during
// a run, when any thread may ask for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"
#include "memory/workspace.h"

namespace heddle {

// What a context of `plan` takes of a workspace.
WorkspaceNeeds needs_of(const Plan& plan);
// Makes `workspace` large enough for `plan`, with the streams and events of its devices. Errors: out_of_memory, device_failed.
Status reserve(Workspace& workspace, const Plan& plan);
// The same but for the host's part, which the caller of a context has brought.
Status reserve_on_devices(Workspace& workspace, const Plan& plan);

class ContextMemory {
 public:
  // `plan` outlives it. `workspace` has reserved for the plan; null: memory of its own. `transient`: the caller's buffer for the host's
  // part, of at least plan.context_bytes() and 64-byte aligned; null: none. Errors: out_of_memory, device_failed, invalid_argument
  // (the buffer is too small or unaligned).
  static Result<ContextMemory> create(const Plan& plan, Workspace* workspace, void* transient, int64_t transient_bytes);

  // Of a subnet of a step on a device: within the memory of the context around it, on the host and on that device.
  static Result<ContextMemory> create_inside(const Plan& plan, Workspace& workspace, std::byte* transient, std::byte* on_device);
  void move_inside(Workspace& workspace, std::byte* transient, std::byte* on_device);

  // Of the workspace it works in, see Workspace::generation().
  uint64_t generation() const { return generation_; }
  // To a workspace that has reserved for the plan; or the host's part alone, to a buffer as in create(). Allocates nothing.
  void move_to(Workspace& workspace);
  void move_to(std::byte* transient);

  // Where it works: its own, or the one that it was given. Valid until it moves or that goes.
  Workspace& workspace() const { return *workspace_; }
  // `device` as in MemoryPlace.
  std::byte* arena(uint8_t device) const { return device == 0 ? host_ : on_devices_[device - 1u]; }
  std::byte* staging() const { return host_ + plan_->staging_offset(); }
  // Scratch of a step, where it runs.
  std::byte* scratch(uint32_t step) const;
  // Of what a kernel moves only, where its data lie.
  std::byte* data_scratch(uint32_t step) const;
  // Of the plans of a step's subnets. One of them runs at a time: they share the step's scratch, behind the kernel's own.
  std::byte* subnet_memory(uint32_t step) const;
  // The same on the step's device, behind the scratch of its data.
  std::byte* subnet_memory_on_device(uint32_t step) const;
  // A plan for one thread has one thread scratch.
  std::byte* thread_scratch(uint32_t worker) const {
    return thread_scratch_ + (plan_->max_threads > 1 ? worker : 0) * static_cast<size_t>(plan_->thread_scratch_bytes);
  }
  // Bytes that it holds in memory of its own, on the host or a device of the plan.
  int64_t own_bytes(uint8_t device) const;

 private:
  explicit ContextMemory(const Plan& plan) : plan_(&plan) {}
  const Plan* plan_;
  std::unique_ptr<Workspace> own_;  // null: it was given all that it needs
  HostRegistration pinned_;         // of the caller's buffer
  Workspace* workspace_ = nullptr;
  uint64_t generation_ = 0;
  std::byte* host_ = nullptr;
  std::byte* thread_scratch_ = nullptr;
  std::vector<std::byte*> on_devices_;  // by Plan::devices
};

}  // namespace heddle

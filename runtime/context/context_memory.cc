#include "context/context_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/checked.h"

namespace heddle {

WorkspaceNeeds needs_of(const Plan& plan) {
  WorkspaceNeeds needs;
  needs.host_bytes = plan.context_bytes();
  for (const PlanDevice& planned : plan.devices) needs.on_devices.emplace_back(planned.device.get(), planned.arena_bytes);
  return needs;
}

Status reserve(Workspace& workspace, const Plan& plan) {
  HEDDLE_CHECK(workspace.reserve(plan.context_bytes(), plan.pinned_part(), plan.pinned_by));
  return reserve_on_devices(workspace, plan);
}

Status reserve_on_devices(Workspace& workspace, const Plan& plan) {
  for (const PlanDevice& planned : plan.devices) {
    HEDDLE_CHECK(planned.device->runs());
    HEDDLE_CHECK(workspace.reserve_on(planned.device, planned.arena_bytes));
    HEDDLE_CHECK(workspace.reserve_queues(planned.device, planned.stream_classes, planned.events));
  }
  return {};
}

Result<ContextMemory> ContextMemory::create_inside(const Plan& plan, Workspace& workspace, std::byte* transient, std::byte* on_device) {
  ContextMemory memory(plan);
  memory.workspace_ = &workspace;
  memory.on_devices_.resize(plan.devices.size());
  memory.move_inside(workspace, transient, on_device);
  return memory;
}

void ContextMemory::move_inside(Workspace& workspace, std::byte* transient, std::byte* on_device) {
  workspace_ = &workspace;
  std::fill(on_devices_.begin(), on_devices_.end(), on_device);  // there is one
  move_to(transient);
}

Result<ContextMemory> ContextMemory::create(const Plan& plan, Workspace* workspace, void* transient, int64_t transient_bytes) {
  const int64_t bytes = plan.context_bytes();
  if (transient && (transient_bytes < bytes || reinterpret_cast<uintptr_t>(transient) % arena_alignment != 0))
    return Status(Code::invalid_argument,
                  fmt::format("the transient buffer has {} bytes, the plan needs {}, aligned to 64", transient_bytes, bytes),
                  "ask transient_bytes() first");
  ContextMemory memory(plan);
  memory.on_devices_.resize(plan.devices.size());
  if (!workspace) {
    memory.own_ = std::make_unique<Workspace>();
    HEDDLE_CHECK(transient ? reserve_on_devices(*memory.own_, plan) : reserve(*memory.own_, plan));
    workspace = memory.own_.get();
  }
  memory.move_to(*workspace);
  if (transient) {
    if (plan.pinned_part() > 0) {
      std::byte* const end = static_cast<std::byte*>(transient) + bytes;
      HEDDLE_TRY(memory.pinned_, plan.pinned_by->pin(end - plan.pinned_part(), plan.pinned_part()));
    }
    memory.move_to(static_cast<std::byte*>(transient));
  }
  return memory;
}

void ContextMemory::move_to(Workspace& workspace) {
  workspace_ = &workspace;
  generation_ = workspace.generation();
  for (size_t d = 0; d < on_devices_.size(); ++d) on_devices_[d] = workspace.on(*plan_->devices[d].device);
  move_to(workspace.host(plan_->context_bytes()));
}

void ContextMemory::move_to(std::byte* transient) {
  host_ = transient;
  thread_scratch_ = host_ + plan_->arena_bytes;
}

std::byte* ContextMemory::scratch(uint32_t step) const {
  const PlanStep& planned = plan_->steps[step];
  return arena(planned.on_device && !planned.on_device->from_host ? planned.on_device->device : 0) + planned.scratch_offset;
}

std::byte* ContextMemory::data_scratch(uint32_t step) const {
  const PlanStep& planned = plan_->steps[step];
  if (planned.on_device) return arena(planned.on_device->device) + planned.data_scratch_offset;
  return scratch(step) + planned.data_scratch_offset;
}

std::byte* ContextMemory::subnet_memory_on_device(uint32_t step) const {
  return data_scratch(step) + align_up(plan_->steps[step].data_scratch_bytes, arena_alignment);
}

std::byte* ContextMemory::subnet_memory(uint32_t step) const {
  return scratch(step) + align_up(plan_->steps[step].scratch_bytes, arena_alignment);
}

int64_t ContextMemory::own_bytes(uint8_t device) const {
  if (!own_) return 0;
  return device == 0 ? own_->host_bytes() : own_->bytes_on(*plan_->devices[device - 1u].device);
}

}  // namespace heddle

#include "run/step_resources.h"

#include <algorithm>
#include <utility>

#include "base/threads/mutex.h"
#include "run/device/device_run.h"

namespace heddle {

// Returns the table for resources of stream scope of a step on the host or `on_device`. The outermost context holds those of the host.
ResourceTable& StepResources::table_of_streams(bool on_device) {
  if (holder_of(ResourceScope::stream, on_device) == ResourceHolder::workspace) return *of_workspace_;
  return outer_ ? outer_->table_of_streams(on_device) : of_context_;
}

// Whether any step needs, or may find during the run that it needs, a resource of a device's stream.
bool StepResources::uses_workspace() const {
  const auto of_stream = [](const ResourceSlot& slot) { return slot.of_stream(); };
  return std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const PlanStep& step) {
    return step.on_device && (step.late || (step.resources && std::any_of(step.resources->begin(), step.resources->end(), of_stream)));
  });
}

Status StepResources::create(const DeviceRun* devices, Workspace& workspace) {
  const auto needs = [](const PlanStep& step) { return step.resources != nullptr; };
  if (std::any_of(plan_.steps.begin(), plan_.steps.end(), needs)) pointers_.resize(plan_.steps.size());
  for (uint32_t i = 0; i < pointers_.size(); ++i)
    if (plan_.steps[i].resources) pointers_[i].resize(plan_.steps[i].resources->size());
  return follow(devices, workspace);
}

// Finds the workspace's table while nothing runs: late steps on several threads then only read the pointer.
Status StepResources::follow(const DeviceRun* devices, Workspace& workspace) {
  if (uses_workspace()) of_workspace_ = &workspace.stream_resources().of(plan_.resources);
  {  // the resources of another workspace's streams are not this context's any more
    const MutexLock lock(mutex_);
    std::erase_if(fragile_, [](const Fragile& one) { return one.holder == ResourceHolder::workspace; });
  }
  for (uint32_t i = 0; i < pointers_.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    const std::vector<ResourceSlot>* const slots = step.resources.get();
    for (size_t k = 0; slots && k < slots->size(); ++k) {
      const ResourceSlot& slot = (*slots)[k];
      if (pointers_[i][k] && holder_of(slot.scope, step.on_device != nullptr) != ResourceHolder::workspace) continue;
      auto object = object_of(step, slot, step.on_device ? devices->streams().stream(*step.on_device) : nullptr);
      if (!object.ok()) return std::move(object).status().at(step.name, display_name(step.domain, step.type)).in_net(plan_.net_name);
      pointers_[i][k] = *object;
    }
  }
  return {};
}

void StepResources::note(const std::shared_ptr<const Resource>& resource, ResourceHolder holder) {
  if (!resource->may_break()) return;
  const MutexLock lock(mutex_);
  const auto known = [&](const Fragile& one) { return one.resource.lock() == resource; };
  if (std::none_of(fragile_.begin(), fragile_.end(), known)) fragile_.push_back({resource, holder});
  may_break_.store(true, std::memory_order_relaxed);
}

Result<void*> StepResources::object_of(const PlanStep& step, const ResourceSlot& slot, void* stream) {
  const ResourceHolder holder = holder_of(slot.scope, step.on_device != nullptr);
  if (!slot.of_stream()) {
    note(slot.made, holder);
    return slot.made->object();
  }
  ResourcePlace place = {plan_.device_of(step), nullptr, stream};
  if (step.on_device) place.opened = plan_.devices[step.on_device->device - 1u].device;
  ResourceTable& table = table_of_streams(step.on_device != nullptr);
  HEDDLE_TRY(const std::shared_ptr<const Resource> made, table.of_stream(plan_.registry, *slot.need, place));
  note(made, holder);
  return made->object();
}

std::span<void* const> StepResources::of(uint32_t step) const {
  if (pointers_.empty()) return {};
  return pointers_[step];
}

Status StepResources::bind(uint32_t step, void* stream, std::span<const ResourceSlot> slots, std::vector<void*>* pointers) {
  pointers->clear();
  std::vector<std::shared_ptr<const Resource>> made;
  for (const ResourceSlot& slot : slots) {
    HEDDLE_TRY(void* const object, object_of(plan_.steps[step], slot, stream));
    pointers->push_back(object);
    if (!slot.of_stream()) made.push_back(slot.made);
  }
  const MutexLock lock(mutex_);
  of_late_[step] = std::move(made);
  return {};
}

// No lock is held while a plugin is called.
Status StepResources::poll() const {
  for (size_t i = 0;; ++i) {
    std::shared_ptr<const Resource> resource;
    {
      const MutexLock lock(mutex_);
      if (i >= fragile_.size()) return {};
      resource = fragile_[i].resource.lock();
    }
    if (resource) HEDDLE_CHECK(resource->poll());
  }
}

void StepResources::abort(uint32_t step, const std::string& why) const noexcept {
  if (plan_.steps[step].resources)
    for (const ResourceSlot& slot : *plan_.steps[step].resources)
      if (!slot.of_stream()) slot.made->abort(why);
  if (!plan_.steps[step].late) return;
  std::vector<std::shared_ptr<const Resource>> bound;
  {
    const MutexLock lock(mutex_);
    if (const auto found = of_late_.find(step); found != of_late_.end()) bound = found->second;
  }
  for (const auto& resource : bound) resource->abort(why);
}

void StepResources::let_go() {
  {
    const MutexLock lock(mutex_);
    pointers_.clear();
    fragile_.clear();
    of_late_.clear();
  }
  of_context_.clear();
}

}  // namespace heddle

#include "run/step_resources.h"

#include <algorithm>

#include "run/device_run.h"

namespace heddle {

Status StepResources::create(const DeviceRun* devices) {
  const auto needs = [](const PlanStep& step) { return step.resources != nullptr; };
  if (std::none_of(plan_.steps.begin(), plan_.steps.end(), needs)) return {};
  pointers_.resize(plan_.steps.size());
  for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    if (!step.resources) continue;
    void* const stream = step.on_device ? devices->stream(*step.on_device) : nullptr;
    for (const ResourceSlot& slot : *step.resources) {
      auto object = object_of(step, slot, stream);
      if (!object.ok()) return std::move(object).status().at(step.name, display_name(step.domain, step.type)).in_net(plan_.net_name);
      pointers_[i].push_back(*object);
    }
  }
  return {};
}

void StepResources::note(const std::shared_ptr<const Resource>& resource) {
  if (!resource->may_break()) return;
  const std::lock_guard lock(mutex_);
  if (std::find(fragile_.begin(), fragile_.end(), resource) == fragile_.end()) fragile_.push_back(resource);
  may_break_.store(true, std::memory_order_relaxed);
}

Result<void*> StepResources::object_of(const PlanStep& step, const ResourceSlot& slot, void* stream) {
  if (slot.made) {
    note(slot.made);
    return slot.made->object();
  }
  ResourcePlace place = {plan_.device_of(step), nullptr, stream};
  if (step.on_device) place.opened = plan_.devices[step.on_device->device - 1u].device;
  HEDDLE_TRY(const std::shared_ptr<const Resource> made, of_streams().of_stream(plan_.registry, *slot.need, place));
  note(made);
  return made->object();
}

std::span<void* const> StepResources::of(uint32_t step) const {
  if (pointers_.empty()) return {};
  return pointers_[step];
}

Status StepResources::bind(uint32_t step, std::span<const ResourceSlot> slots, std::vector<void*>* pointers) {
  pointers->clear();
  std::vector<std::shared_ptr<const Resource>> made;
  for (const ResourceSlot& slot : slots) {
    HEDDLE_TRY(void* const object, object_of(plan_.steps[step], slot, nullptr));
    pointers->push_back(object);
    if (slot.made) made.push_back(slot.made);
  }
  const std::lock_guard lock(mutex_);
  of_late_[step] = std::move(made);
  return {};
}

// No lock is held while a plugin is asked.
Status StepResources::poll() const {
  for (size_t i = 0;; ++i) {
    std::shared_ptr<const Resource> resource;
    {
      const std::lock_guard lock(mutex_);
      if (i >= fragile_.size()) return {};
      resource = fragile_[i];
    }
    HEDDLE_CHECK(resource->poll());
  }
}

void StepResources::abort(uint32_t step, const std::string& why) const noexcept {
  if (plan_.steps[step].resources)
    for (const ResourceSlot& slot : *plan_.steps[step].resources)
      if (slot.made) slot.made->abort(why);
  if (!plan_.steps[step].late) return;
  std::vector<std::shared_ptr<const Resource>> bound;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = of_late_.find(step); found != of_late_.end()) bound = found->second;
  }
  for (const auto& resource : bound) resource->abort(why);
}

void StepResources::let_go() {
  {
    const std::lock_guard lock(mutex_);
    pointers_.clear();
    fragile_.clear();
    of_late_.clear();
  }
  of_streams_.clear();
}

}  // namespace heddle

#include "run/step_resources.h"

#include <algorithm>
#include <utility>

#include "base/threads/mutex.h"
#include "run/device/device_run.h"

namespace heddle {

namespace {

// The resources of a workspace's streams, by the resource tables of the sessions that requested them; those of closed sessions are dropped.
class StreamResources {
 public:
  static ResourceTable& in(Workspace& workspace, const std::shared_ptr<ResourceTable>& session) {
    if (!workspace.beside_streams()) workspace.beside_streams() = std::make_shared<StreamResources>();
    auto& tables = static_cast<StreamResources*>(workspace.beside_streams().get())->tables_;
    constexpr long own_uses = 2;  // the one here and the one in the table that is made from it
    std::erase_if(tables, [&](const auto& t) { return t.first != session && t.first.use_count() == own_uses; });
    for (const auto& [known, table] : tables)
      if (known == session) return *table;
    return *tables.emplace_back(session, std::make_unique<ResourceTable>(session, HEDDLE_SCOPE_STREAM)).second;
  }

 private:
  std::vector<std::pair<std::shared_ptr<ResourceTable>, std::unique_ptr<ResourceTable>>> tables_;
};

}  // namespace

Status StepResources::create(const DeviceRun* devices, Workspace& workspace) {
  find_late(workspace);
  const auto needs = [](const PlanStep& step) { return step.resources != nullptr; };
  if (std::none_of(plan_.steps.begin(), plan_.steps.end(), needs)) return {};
  pointers_.resize(plan_.steps.size());
  for (uint32_t i = 0; i < plan_.steps.size(); ++i)
    if (plan_.steps[i].resources) pointers_[i].resize(plan_.steps[i].resources->size());
  return follow(devices, workspace);
}

// Finds the table for late steps while nothing runs: late steps on several threads then only read the pointer.
void StepResources::find_late(Workspace& workspace) {
  const auto is_late = [](const PlanStep& step) { return step.late && step.on_device; };
  if (std::any_of(plan_.steps.begin(), plan_.steps.end(), is_late)) of_late_streams_ = &StreamResources::in(workspace, plan_.resources);
}

Status StepResources::follow(const DeviceRun* devices, Workspace& workspace) {
  find_late(workspace);
  for (uint32_t i = 0; i < pointers_.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    const std::vector<ResourceSlot>* const slots = step.resources.get();
    for (size_t k = 0; slots && k < slots->size(); ++k) {
      const ResourceSlot& slot = (*slots)[k];
      const bool of_device_stream = !slot.made && step.on_device;
      if (pointers_[i][k] && !of_device_stream) continue;
      void* const stream = step.on_device ? devices->streams().stream(*step.on_device) : nullptr;
      auto object = object_of(step, slot, stream, of_device_stream ? StreamResources::in(workspace, plan_.resources) : of_streams());
      if (!object.ok()) return std::move(object).status().at(step.name, display_name(step.domain, step.type)).in_net(plan_.net_name);
      pointers_[i][k] = *object;
    }
  }
  return {};
}

void StepResources::note(const std::shared_ptr<const Resource>& resource) {
  if (!resource->may_break()) return;
  const MutexLock lock(mutex_);
  if (std::find(fragile_.begin(), fragile_.end(), resource) == fragile_.end()) fragile_.push_back(resource);
  may_break_.store(true, std::memory_order_relaxed);
}

Result<void*> StepResources::object_of(const PlanStep& step, const ResourceSlot& slot, void* stream, ResourceTable& of_stream) {
  if (slot.made) {
    note(slot.made);
    return slot.made->object();
  }
  ResourcePlace place = {plan_.device_of(step), nullptr, stream};
  if (step.on_device) place.opened = plan_.devices[step.on_device->device - 1u].device;
  HEDDLE_TRY(const std::shared_ptr<const Resource> made, of_stream.of_stream(plan_.registry, *slot.need, place));
  note(made);
  return made->object();
}

std::span<void* const> StepResources::of(uint32_t step) const {
  if (pointers_.empty()) return {};
  return pointers_[step];
}

Status StepResources::bind(uint32_t step, void* stream, std::span<const ResourceSlot> slots, std::vector<void*>* pointers) {
  pointers->clear();
  std::vector<std::shared_ptr<const Resource>> made;
  ResourceTable& of_stream = plan_.steps[step].on_device ? *of_late_streams_ : of_streams();
  for (const ResourceSlot& slot : slots) {
    HEDDLE_TRY(void* const object, object_of(plan_.steps[step], slot, stream, of_stream));
    pointers->push_back(object);
    if (slot.made) made.push_back(slot.made);
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
  of_streams_.clear();
}

}  // namespace heddle

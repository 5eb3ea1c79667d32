#include "run/step_resources.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/threads/mutex.h"
#include "run/device/device_run.h"

namespace heddle {
namespace {

uint32_t index_of_need(const Plan& plan, const std::string& key) {
  const auto of_key = [&](const CommunicatorNeed& need) { return need.key == key; };
  const auto found = std::find_if(plan.communicator_needs.begin(), plan.communicator_needs.end(), of_key);
  assert(found != plan.communicator_needs.end());
  return static_cast<uint32_t>(found - plan.communicator_needs.begin());
}

}  // namespace

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
  for (uint32_t i = 0; i < pointers_.size(); ++i) {
    if (!plan_.steps[i].resources) continue;
    const std::vector<ResourceSlot>& slots = *plan_.steps[i].resources;
    pointers_[i].resize(slots.size());
    for (uint32_t k = 0; k < slots.size(); ++k)
      if (slots[k].of_communicator()) communicator_slots_.push_back({i, k, index_of_need(plan_, slots[k].need->key())});
  }
  {
    const MutexLock lock(mutex_);
    used_.resize(plan_.communicator_needs.size());
  }
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
      if (slot.of_communicator()) continue;
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
  ResourcePlace place = plan_.place_of(step);
  place.stream = stream;
  ResourceTable& table = table_of_streams(step.on_device != nullptr);
  HEDDLE_TRY(const std::shared_ptr<const Resource> made, table.of_stream(plan_.registry, *slot.need, place));
  note(made, holder);
  return made->object();
}

std::span<void* const> StepResources::of(uint32_t step) const {
  if (pointers_.empty()) return {};
  return pointers_[step];
}

// ---------------------------------------------------------------- communicators

// Objects are the outermost run's, which holds the turns.
Result<std::shared_ptr<const Resource>> StepResources::communicator(const CommunicatorNeed& need) {
  return outer_ ? outer_->communicator(need) : turns_.object(plan_.registry, need);
}

Status StepResources::enter(const Interruption& until) {
  if (!outer_) HEDDLE_CHECK(turns_.enter(until));
  for (size_t i = 0; i < plan_.communicator_needs.size(); ++i) {
    HEDDLE_TRY(auto object, communicator(plan_.communicator_needs[i]));
    {
      const MutexLock lock(mutex_);
      used_[i] = std::move(object);
    }
    // Ranks compare as soon as they can talk, which is after the first object of a communicator: making the next one, as NCCL's, would wait
    // for ranks that do not need it.
    if (!outer_) HEDDLE_CHECK(turns_.compare());
  }
  const MutexLock lock(mutex_);
  for (const CommunicatorSlot& at : communicator_slots_) pointers_[at.step][at.slot] = used_[at.need]->object();
  return {};
}

void StepResources::leave() noexcept {
  if (!outer_) turns_.leave();
}

// Objects are destroyed without the lock.
void StepResources::release_communicators() noexcept {
  const auto take_one = [this] {
    std::shared_ptr<const Resource> object;
    const auto take_from = [&](std::vector<std::shared_ptr<const Resource>>& all) {
      for (auto& one : all)
        if (one && one->of_communicator() && !object) object.swap(one);
    };
    const MutexLock lock(mutex_);
    take_from(used_);
    for (auto& [step, all] : of_late_) take_from(all);
    return object;
  };
  while (take_one()) {
  }
}

void StepResources::abort_communicators(const std::string& why) noexcept {
  if (outer_) return outer_->abort_communicators(why);
  if (turns_.any()) turns_.abort(why);
}

// ---------------------------------------------------------------- during a run

Status StepResources::bind(uint32_t step, void* stream, std::span<const ResourceSlot> slots, std::vector<void*>* pointers) {
  pointers->clear();
  std::vector<std::shared_ptr<const Resource>> made;
  for (const ResourceSlot& slot : slots) {
    if (slot.of_communicator()) {
      HEDDLE_TRY(auto object, communicator({slot.need, slot.need->key(), plan_.place_of(plan_.steps[step])}));
      pointers->push_back(object->object());
      made.push_back(std::move(object));
      continue;
    }
    HEDDLE_TRY(void* const object, object_of(plan_.steps[step], slot, stream));
    pointers->push_back(object);
    if (!slot.of_stream()) made.push_back(slot.made);
  }
  const MutexLock lock(mutex_);
  of_late_[step].swap(made);
  return {};
}

// No lock is held while a plugin is called.
Status StepResources::poll() const {
  for (size_t i = 0;; ++i) {
    std::shared_ptr<const Resource> resource;
    {
      const MutexLock lock(mutex_);
      if (i >= fragile_.size()) break;
      resource = fragile_[i].resource.lock();
    }
    if (resource) HEDDLE_CHECK(resource->poll());
  }
  return outermost().turns_.poll();
}

void StepResources::let_go() {
  {
    const MutexLock lock(mutex_);
    pointers_.clear();
    fragile_.clear();
    of_late_.clear();
    used_.clear();
  }
  of_context_.clear();
}

}  // namespace heddle

// CallHost: what a session would provide to a call besides what the call itself holds: resources of plugins, and nested nets.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/communicator_turns.h"
#include "device/resources.h"
#include "plugin/host.h"

namespace heddle {

// Must outlive the calls that use it, which run one after the other.
class CallHost {
 public:
  using Views = heddle_call::Views;
  explicit CallHost(std::shared_ptr<const RegistrySnapshot> registry) : registry_(std::move(registry)) {}
  virtual ~CallHost() = default;
  // Implement the functions of heddle_host with these names. Memory that a run allocated for its results stays valid until the next run.
  virtual Status infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) = 0;
  virtual Status run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs, std::span<heddle_tensor* const> outputs) = 0;

  // Errors: those of ResourceTable::bind.
  Result<uint32_t> need(const heddle_resource_need& asked) {
    HEDDLE_TRY(const ResourceNeed need, need_from_abi(asked));
    HEDDLE_TRY(const uint32_t slot, bound_.bind(*resources_, registry_, need, {"cpu:0", nullptr}));
    return slot;
  }
  void* resource(uint32_t slot) const { return bound_.object(slot); }
  // Returns the resources by slot; those of communicator and stream scope are created now. A communicator is this process alone.
  Result<std::vector<void*>> resources() {
    std::vector<void*> objects;
    std::set<std::string> names;
    for (const ResourceSlot& slot : bound_.slots)
      if (slot.of_communicator()) names.insert(slot.need->communicator);
    std::vector<PlanCommunicator> used;
    for (const std::string& name : names) used.emplace_back().name = name;
    turns_.reset();
    turns_ = std::make_unique<CommunicatorTurns>(communicators_, used);
    HEDDLE_CHECK(turns_->enter({}));
    for (const ResourceSlot& slot : bound_.slots) {
      HEDDLE_TRY(const auto made, made_in(slot));
      objects.push_back(made->object());
    }
    return objects;
  }

 protected:
  const std::shared_ptr<const RegistrySnapshot> registry_;

 private:
  Result<std::shared_ptr<const Resource>> made_in(const ResourceSlot& slot) {
    if (slot.of_communicator()) return turns_->object(registry_, {slot.need, slot.need->key(), {"cpu:0", nullptr}});
    return slot.of_stream() ? of_call_.of_stream(registry_, *slot.need, {"cpu:0", nullptr}) : Result(slot.made);
  }
  // The host stands for a session with one context.
  const std::shared_ptr<ResourceTable> resources_ = std::make_shared<ResourceTable>(ResourceHolder::session);
  ResourceTable of_call_{ResourceHolder::context, resources_};
  BoundResources bound_;
  const std::shared_ptr<Communicators> communicators_ =
      std::make_shared<Communicators>(std::vector<CommunicatorOptions>(1), "cpu:0", resources_);
  std::unique_ptr<CommunicatorTurns> turns_;  // of the call that is under way
};

}  // namespace heddle

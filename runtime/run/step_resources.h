// StepResources: the resources of the steps of one context, as their kernels see them: a pointer for each slot. Those of a session or wider
// are the plan's. Those of stream scope are made here, one for each stream that a step asks for it: on the host, where a context is a
// stream, they go with the context; of a device's streams they are the workspace's, as those are, whichever plans use them.
//
// Belongs to one Execution. Asked by the threads of its run, and by those that end it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "device/resources.h"
#include "heddle/status.h"
#include "memory/workspace.h"

namespace heddle {

class DeviceRun;

class StepResources {
 public:
  // `outer`: of the context in whose steps this one runs: a context is one stream on the host, with its subnets. Null: it is no subnet's.
  StepResources(const Plan& plan, StepResources* outer) : plan_(plan), outer_(outer), of_streams_(plan.resources, HEDDLE_SCOPE_STREAM) {}
  StepResources(const StepResources&) = delete;
  StepResources& operator=(const StepResources&) = delete;
  // Makes what the plan's steps need of stream scope. Errors: as ResourceTable::bind.
  Status create(const DeviceRun* devices, Workspace& workspace);
  // The same once the context works in another workspace.
  Status follow(const DeviceRun* devices, Workspace& workspace);

  // By slot; empty: the step needs none.
  std::span<void* const> of(uint32_t step) const;
  // The same for a step that finds its kernel while it runs, on a device in `stream`: fills `pointers`. Errors: as create.
  Status bind(uint32_t step, void* stream, std::span<const ResourceSlot> slots, std::vector<void*>* pointers);

  // Whether any can break; and whether one has. Errors: device_failed.
  bool may_break() const { return may_break_.load(std::memory_order_relaxed); }
  Status poll() const;
  // A step is under way, and is to end.
  void abort(uint32_t step, const std::string& why) const noexcept;
  // Before the streams go: those of stream scope go.
  void let_go();

 private:
  Result<void*> object_of(const PlanStep& step, const ResourceSlot& slot, void* stream, ResourceTable& of_stream);
  void find_late(Workspace& workspace);
  void note(const std::shared_ptr<const Resource>& resource);

  // Those of stream scope are the outermost run's.
  ResourceTable& of_streams() { return outer_ ? outer_->of_streams() : of_streams_; }

  const Plan& plan_;
  StepResources* const outer_;
  ResourceTable of_streams_;
  ResourceTable* of_late_streams_ = nullptr;  // of the workspace's, for late steps on devices; null: there are none
  std::vector<std::vector<void*>> pointers_;  // by step; empty when no step needs any
  std::atomic<bool> may_break_{false};
  mutable std::mutex mutex_;  // of what follows: late steps add to it, and subnets
  std::vector<std::shared_ptr<const Resource>> fragile_;
  std::map<uint32_t, std::vector<std::shared_ptr<const Resource>>> of_late_;  // by step
};

}  // namespace heddle

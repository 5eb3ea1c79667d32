// StepResources: the resources of the steps of one context, as their kernels see them: a pointer for each slot. Resources of session scope
// or wider exist already, and the plan's slots hold them. Resources of stream scope are made here, one for each stream on which a step
// requests it, in the table of its holder (holder_of). On the host a context is a stream, and its resources are destroyed with the context;
// resources of a device's streams belong to the workspace, as the streams do, whichever plans use them.
//
// Belongs to one Execution. Threads: bind(), poll(), may_break() and abort() are called by the threads of its run and by those that stop
// it; create(), follow() and let_go() while nothing runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "compile/plan.h"
#include "device/resources.h"
#include "heddle/status.h"
#include "memory/workspace.h"

namespace heddle {

class DeviceRun;

class StepResources {
 public:
  // `outer`: the resources of the outer context, if this is a subnet's: on the host a context and its subnets are one stream. Null: it is
  // no subnet's.
  StepResources(const Plan& plan, StepResources* outer)
      : plan_(plan), outer_(outer), of_context_(ResourceHolder::context, plan.resources) {}
  StepResources(const StepResources&) = delete;
  StepResources& operator=(const StepResources&) = delete;
  // Makes the resources of stream scope that the plan's steps need. Errors: as ResourceTable::bind.
  Status create(const DeviceRun* devices, Workspace& workspace);
  // Like create(), once the context works in another workspace.
  Status follow(const DeviceRun* devices, Workspace& workspace);

  // Returns the step's resources by slot; empty: the step needs none.
  std::span<void* const> of(uint32_t step) const;
  // Returns the resources, like of(), for a step that finds its kernel during the run, on a device in `stream`: fills `pointers`. Errors:
  // as create().
  Status bind(uint32_t step, void* stream, std::span<const ResourceSlot> slots, std::vector<void*>* pointers);

  // may_break(): whether any resource can break. poll(): fails if one has. Errors: device_failed.
  bool may_break() const { return may_break_.load(std::memory_order_relaxed); }
  Status poll() const;
  // Aborts the resources of a step that is under way and was signalled to end.
  void abort(uint32_t step, const std::string& why) const noexcept;
  // Destroys the resources that the context holds, and forgets those of the workspace's streams: after this call the streams may be
  // destroyed. Call it before the context ends.
  void let_go();

 private:
  ResourceTable& table_of_streams(bool on_device);
  Result<void*> object_of(const PlanStep& step, const ResourceSlot& slot, void* stream);
  bool uses_workspace() const;
  void note(const std::shared_ptr<const Resource>& resource, ResourceHolder holder);

  const Plan& plan_;
  StepResources* const outer_;
  ResourceTable of_context_;
  ResourceTable* of_workspace_ = nullptr;     // set while nothing runs; null: no step needs a resource of a device's stream
  std::vector<std::vector<void*>> pointers_;  // by step; empty when no step needs any
  std::atomic<bool> may_break_{false};
  mutable Mutex mutex_;  // late steps and subnets add to the members below
  // Resources that can break. Their holders own them, so that those of a workspace's streams are destroyed before the streams.
  struct Fragile {
    std::weak_ptr<const Resource> resource;
    ResourceHolder holder;
  };
  std::vector<Fragile> fragile_ HEDDLE_GUARDED_BY(mutex_);
  std::map<uint32_t, std::vector<std::shared_ptr<const Resource>>> of_late_ HEDDLE_GUARDED_BY(mutex_);  // by step
};

}  // namespace heddle

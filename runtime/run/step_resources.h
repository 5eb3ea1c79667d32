// StepResources: the resources of the steps of one context, as their kernels see them: a pointer for each slot. Resources of session scope
// or wider exist already, and the plan's slots hold them. Objects of communicator scope belong to runs: each run has its turn with them
// (device/communicator_turns.h). Resources of stream scope are made here, one for each stream on which a step requests it, in the table of its
// holder (holder_of). On the host a context is a stream, and its resources are destroyed with the context; resources of a device's streams
// belong to the workspace, as the streams do, whichever plans use them.
//
// Belongs to one Execution. Threads: bind(), poll(), may_break(), abort_communicators() and wake() are called by the threads of its run and
// by those that stop it; enter() and leave() by the thread that runs; create(), follow() and let_go() while nothing runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads/interruption.h"
#include "base/threads/mutex.h"
#include "compile/plan.h"
#include "device/communicator_turns.h"
#include "device/resources.h"
#include "heddle/status.h"
#include "memory/workspace.h"

namespace heddle {

class DeviceRun;

class StepResources {
 public:
  // `outer`: the resources of the outer context, if this is a subnet's: on the host a context and its subnets are one stream, and its
  // communicators are those of the outer run. Null: it is no subnet's. `communicators`: those of the session; null: it has none.
  StepResources(const Plan& plan, StepResources* outer, std::shared_ptr<Communicators> communicators)
      : plan_(plan),
        outer_(outer),
        of_context_(ResourceHolder::context, plan.resources),
        turns_(std::move(communicators), outer ? std::vector<PlanCommunicator>() : plan.communicators) {}
  StepResources(const StepResources&) = delete;
  StepResources& operator=(const StepResources&) = delete;
  // Makes the resources of stream scope that the plan's steps need. Errors: as ResourceTable::bind.
  Status create(const DeviceRun* devices, Workspace& workspace);
  // Like create(), once the context works in another workspace.
  Status follow(const DeviceRun* devices, Workspace& workspace);

  // Whether runs use communicators.
  bool uses_communicators() const { return turns_.any() || (outer_ && outer_->uses_communicators()); }
  // Call it before each run: takes a turn with the communicators, and makes the objects that the steps need and that do not exist. A subnet
  // uses those of the outer run. If it fails, the caller must call leave(). Errors: as CommunicatorTurns.
  Status enter(const Interruption& until);
  // leave(): call it when the run is over; if it ends early, call abort_communicators() before. release_communicators(): call it when no
  // work of the run uses the objects any more; they may be destroyed then.
  void leave() noexcept;
  void release_communicators() noexcept;
  // has_ranks(): whether a communicator of the run has several ranks. agree(): waits until all of them have come to their updates of
  // variables (CommunicatorTurns::agree).
  bool has_ranks() const { return !outer_ && turns_.has_ranks(); }
  Status agree() { return turns_.agree(); }
  // Aborts the communicators of the run, and of the outer run: it ends early. `why`: for the other ranks. Does nothing between runs.
  void abort_communicators(const std::string& why) noexcept;
  // Makes enter() look at its flag of cancellation.
  void wake() noexcept { turns_.wake(); }

  // Returns the step's resources by slot; empty: the step needs none.
  std::span<void* const> of(uint32_t step) const;
  // Returns the resources, like of(), for a step that finds its kernel during the run, on a device in `stream`: fills `pointers`. Errors:
  // as create() and enter().
  Status bind(uint32_t step, void* stream, std::span<const ResourceSlot> slots, std::vector<void*>* pointers);

  // may_break(): whether any resource can break, communicators aside. poll(): fails if one has; during a run also if a communicator has.
  // Errors: device_failed.
  bool may_break() const { return may_break_.load(std::memory_order_relaxed); }
  Status poll() const;
  // Destroys the resources that the context holds, and forgets those of the workspace's streams: after this call the streams may be
  // destroyed. Call it before the context ends.
  void let_go();

 private:
  const StepResources& outermost() const { return outer_ ? outer_->outermost() : *this; }
  ResourceTable& table_of_streams(bool on_device);
  Result<void*> object_of(const PlanStep& step, const ResourceSlot& slot, void* stream);
  Result<std::shared_ptr<const Resource>> communicator(const CommunicatorNeed& need);
  bool uses_workspace() const;
  void note(const std::shared_ptr<const Resource>& resource, ResourceHolder holder);

  const Plan& plan_;
  StepResources* const outer_;
  ResourceTable of_context_;
  ResourceTable* of_workspace_ = nullptr;     // set while nothing runs; null: no step needs a resource of a device's stream
  std::vector<std::vector<void*>> pointers_;  // by step; empty when no step needs any
  CommunicatorTurns turns_;                   // in a subnet none: those of the outermost run are used
  // Where the objects of communicators are to be written before each run.
  struct CommunicatorSlot {
    uint32_t step = 0, slot = 0;
    uint32_t need = 0;  // among Plan::communicator_needs
  };
  std::vector<CommunicatorSlot> communicator_slots_;
  std::atomic<bool> may_break_{false};
  mutable Mutex mutex_;  // late steps and subnets add to the members below
  // Resources that can break. Their holders own them, so that those of a workspace's streams are destroyed before the streams.
  struct Fragile {
    std::weak_ptr<const Resource> resource;
    ResourceHolder holder;
  };
  std::vector<Fragile> fragile_ HEDDLE_GUARDED_BY(mutex_);
  std::map<uint32_t, std::vector<std::shared_ptr<const Resource>>> of_late_ HEDDLE_GUARDED_BY(mutex_);  // by step
  // By Plan::communicator_needs: the objects that this run uses. Empty between runs, unless work of the last one still uses them.
  std::vector<std::shared_ptr<const Resource>> used_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

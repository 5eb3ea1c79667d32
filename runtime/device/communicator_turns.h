// The communicators of a plan in its runs, and their objects, which plugins make.
//
// A communicator is an object of runs. Plans and checks never make one: a kernel's create gets a slot. Each run takes a turn with every
// communicator that its plan names, in the order of names and before its turn with the variables: a run that waits for a communicator must
// not keep another from having the variables alone. So no two runs share one. Objects are made in such a turn, on a thread of their own,
// because a plugin may not return in time: the run's deadline and cancellation end the wait, and what create makes later is aborted and
// destroyed. An object that has broken, or was aborted since a run ended early, is destroyed once that run has ended, and the next run
// makes another one, with the next attempt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/interruption.h"
#include "base/threads/mutex.h"
#include "device/communicators.h"
#include "device/resources.h"
#include "heddle/status.h"

namespace heddle {

// A communicator that a plan uses.
struct PlanCommunicator {
  std::string name;
  uint64_t hash = 0;             // of its collectives, in order: equal on all ranks that work together
  std::string collectives = {};  // a line for each: what all ranks must have alike, a tab, and its name
  // The text of the whole net, if all ranks have it alike since it was made for them (DataParallelOptions::ranks); else null.
  std::shared_ptr<const std::string> net = nullptr;
  std::vector<uint32_t> at;  // their places among the collectives of all communicators of the plan
  // The devices on which its collectives are launched in groups, ascending: all that the session declares. Empty: none are.
  std::vector<std::string> devices = {};
  std::string buckets = {};  // as PlanInfo::CommunicatorUse::buckets
};

// A need for an object of communicator scope, as plans keep it.
struct CommunicatorNeed {
  std::shared_ptr<const ResourceNeed> need;
  std::string key;  // need->key()
  ResourcePlace place;
};

// The communicators of one plan in the runs of one context. Threads: enter() and leave() are called by the thread that runs, the others by
// any thread, between them or not.
class CommunicatorTurns {
 public:
  // `used`: those of the plan, in the order of names. `communicators` may be null if there are none.
  CommunicatorTurns(std::shared_ptr<Communicators> communicators, const std::vector<PlanCommunicator>& used);
  ~CommunicatorTurns();
  CommunicatorTurns(const CommunicatorTurns&) = delete;
  CommunicatorTurns& operator=(const CommunicatorTurns&) = delete;
  bool any() const { return !turns_.empty(); }

  // Takes a turn with each, and drops objects that have broken since. `until`: of the run. If it fails, the caller must call leave().
  // Errors: missing_resource, deadline_exceeded, cancelled, busy (the calling thread is in a run that has it); device_failed, if one has
  // broken and that is to be an error.
  Status enter(const Interruption& until);
  // Returns the object for `need`, made if there is none; allocates nothing if there is. REQUIRES: between enter() and leave(). The
  // run's deadline and cancellation end the wait, but not the plugin's create. Errors: missing_resource (also: the plan does not name the
  // need's communicator), what create reports, deadline_exceeded, cancelled.
  Result<std::shared_ptr<const Resource>> object(const std::shared_ptr<const RegistrySnapshot>& registry, const CommunicatorNeed& need);
  // Compares the plan's collectives with those of the other ranks, once for each object. Call it after each of the plan's objects is made,
  // before the first step. Errors: invalid_argument (another rank has others), device_failed, deadline_exceeded, cancelled.
  Status compare();
  // Waits until all ranks have come as far: call it when nothing can fail any more before variables are updated. If it returns Ok, all
  // ranks update theirs, else none does: do so, although the run may have been cancelled since. Where a network parts just then, what one
  // rank has sent may be lost although it has heard from all: it alone gets Ok (docs/operators.md). abort() ends the wait. Errors:
  // invalid_argument (another rank is elsewhere), device_failed.
  Status agree();
  // Whether any communicator has several ranks. REQUIRES: between enter() and leave().
  bool has_ranks() const;
  // Aborts the objects of all communicators that the run has a turn with, since it ends early; no more are made in this turn. Does nothing
  // outside a turn.
  void abort(const std::string& why) noexcept;
  // Fails if an object has broken. Errors: device_failed.
  Status poll() const;
  // Makes enter() look at its flag of cancellation.
  void wake() noexcept;
  // Ends the turns; drops objects that have broken or were aborted. Objects that steps still use stay until these drop them.
  void leave() noexcept;

 private:
  struct Turn;
  std::vector<std::shared_ptr<const Resource>> objects() const HEDDLE_REQUIRES(mutex_);
  void find_hashes();

  const std::shared_ptr<Communicators> communicators_;
  const std::vector<std::unique_ptr<Turn>> turns_;  // in the order of names
  Interruption until_;                              // of the run; set by enter()
  bool knows_hashes_ = false;                       // of the turns; set by enter()
  mutable Mutex mutex_;
};

}  // namespace heddle

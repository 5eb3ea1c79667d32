// VariableStore: the state of a session, which its nets share by the names of variables. Each variable has one buffer for as long as the
// session lives; runs read and write it in place.
//
// Threads: runs share the store, those that update one at a time; in its update phase such a run has it alone. All wait for their turn in
// order of arrival.
// Functions that take an Interruption take the turn themselves, from any thread, except freshen(), fill() and enter(). A failed update
// marks its variables as torn: a torn variable refuses runs until it is written.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads/fair_shared_mutex.h"
#include "base/threads/mutex.h"
#include "device/device.h"
#include "device/outstanding_work.h"
#include "heddle/limits.h"
#include "heddle/status.h"
#include "net/net.h"
#include "state/snapshot.h"

namespace heddle {

class VariableStore;

// A snapshot whose point is fixed and whose copies are made by finish(), or by the runs that write a variable before. Runs go on meanwhile,
// those that update too (state/snapshot.h). Threads: one at a time, not necessarily the one that has begun it.
class PendingSnapshot {
 public:
  PendingSnapshot(std::shared_ptr<const VariableStore> store, std::shared_ptr<Snapshot> snapshot);
  PendingSnapshot(PendingSnapshot&&) noexcept;
  PendingSnapshot& operator=(PendingSnapshot&&) = delete;
  ~PendingSnapshot();
  // Returns copies of all variables, null for replicas. Called once. Errors: device_failed, deadline_exceeded, cancelled.
  Result<std::vector<std::shared_ptr<const Blob>>> finish(const Interruption& until = {});

 private:
  std::shared_ptr<const VariableStore> store_;
  std::shared_ptr<Snapshot> snapshot_;  // null: finished
};

class VariableStore : public std::enable_shared_from_this<VariableStore> {
 public:
  // Makes buffers for the variables of all `nets`, in the order in which their names come first. A buffer is filled with the content of the
  // first net that has any, or in fill() by the initializer of the first net that has one, from `seed`: a net that is only inspected fills
  // nothing. `outstanding`: the list in which runs register work that keeps the variables busy; null: no runs use them. Errors:
  // weights_missing if no net has either; hazard, if a net updates a variable without its replicas; dtype_mismatch, shape_mismatch and
  // weights_mismatch, naming both nets, if two disagree; limit_exceeded (plan_bytes), for all variables together that have no content.
  static Result<std::shared_ptr<VariableStore>> create(std::span<const Net* const> nets, uint64_t seed = 0, const Limits& limits = {},
                                                       std::shared_ptr<const OutstandingWork> outstanding = nullptr);
  // [any thread] Fills the variables that have no content but an initializer, once. Called before a context is made and before a turn is
  // taken. Errors: deadline_exceeded, cancelled, between two variables: the next call continues.
  Status fill(const Interruption& until = {}) const;
  // Fills the variables that have an initializer by it, in turn with runs. Errors: hazard, naming one that had content or was written since
  // it was initialised, unless `overwrite`; those of write().
  Status initialize(uint64_t seed, bool overwrite, const Interruption& until = {});

  size_t size() const { return entries_.size(); }
  std::vector<std::string> names() const;
  const std::string& name(size_t i) const { return entries_[i].name; }
  // Whether it is a replica of another variable (Variable::replica_of). Replicas have what is written to the other, by write(), replace()
  // and initialize(), and are in no snapshot.
  bool is_replica(size_t i) const { return entries_[i].of != i; }
  DType dtype(size_t i) const { return entries_[i].blob->dtype; }
  const Shape& shape(size_t i) const { return entries_[i].blob->shape; }
  std::byte* data(size_t i) const { return entries_[i].data; }
  int64_t bytes() const;
  // Copy row-major bytes out of or into a variable, in turn with runs. Writing repairs a torn variable. REQUIRES: for write() no replica.
  // Errors: busy (the calling thread is in a run that holds the variables, or a device with outstanding work does), deadline_exceeded.
  Status read(size_t i, void* destination, const Interruption& until = {}) const;
  Status write(size_t i, const void* source, const Interruption& until = {});

  // Begins a snapshot of all variables, which fixes the point between updates. `memory`: contents of an earlier snapshot, or those of
  // snapshot_memory(), whose memory is used again where no one else shares it. Errors: those of read(); hazard, naming one that is torn.
  Result<PendingSnapshot> begin_snapshot(const Interruption& until = {}, std::span<const std::shared_ptr<const Blob>> memory = {}) const;
  // Allocates memory for a snapshot, so that the runs that copy a variable for one need not wait for the system to find its pages.
  std::vector<std::shared_ptr<const Blob>> snapshot_memory() const;
  // Returns copies of all variables, as they are at one point between updates, null for replicas. Errors: those of begin_snapshot() and
  // PendingSnapshot::finish().
  Result<std::vector<std::shared_ptr<const Blob>>> snapshot(const Interruption& until = {}) const;
  // Writes the variables whose content is not null, in one turn: a run sees all of the new contents or none. REQUIRES: each content has the
  // dtype and shape of its variable. Errors: those of write(), before anything is written.
  Status replace(std::span<const std::shared_ptr<const Blob>> contents, const Interruption& until = {});

  // Makes a device copy. Beside its bytes on the host a variable has a device copy on each device whose operators use it; all but the one
  // written last are stale and are brought up to date when needed. Addresses do not change. Errors: out_of_memory, device_failed.
  Status make_home(size_t i, const std::shared_ptr<Device>& device);
  // Returns the device copy; null: there is none.
  std::byte* data_on(size_t i, const Device& device) const;
  bool has_homes() const { return has_homes_.load(std::memory_order_acquire); }
  // freshen() brings the copy on `device` up to date, written() marks all other copies as stale; null: the host. REQUIRES: for
  // freshen() a turn, or that part `i` of a snapshot is being copied, which before_write() waits for; for written() the turn alone. Errors
  // of freshen(): device_failed; deadline_exceeded and cancelled, if a device does not answer.
  Status freshen(size_t i, const Device* device, const Interruption& until = {}) const;
  void written(size_t i, const Device* device);

  // Call it before a variable is written: snapshots that are being made get what it still has. If the wait for them ends early, the
  // variable must not be written. REQUIRES: the turn alone. Errors: deadline_exceeded, cancelled.
  Status before_write(size_t i, const Interruption& until) const;

  // Takes a turn with all variables. Errors: cancelled, deadline_exceeded, busy.
  Status enter(FairSharedMutex::Hold& hold, FairSharedMutex::Use use, const Interruption& until = {}) const;
  FairSharedMutex& turns() const { return turns_; }
  // [any thread] Makes threads that wait for their turn, or for a copy that another run makes, check whether they were cancelled.
  void wake() const {
    turns_.wake();
    copying_.wake();
  }
  // REQUIRES: the turn alone.
  void mark_torn(size_t i) { entries_[i].torn = true; }
  void mark_trained(size_t i) { entries_[i].trained = true; }
  // The name under which outstanding work keeps the variables busy, because a device may still write some of them: turns are busy then.
  BusyName busy_name() const { return busy_name_; }
  // Returns Ok, or Code::hazard naming the torn variable; device_lost if the newest content was lost with a device.
  Status whole() const;

 private:
  friend class PendingSnapshot;
  struct Home {
    std::shared_ptr<Device> device;
    DeviceMemory memory;
    bool stale = true;
    // For copies to the host; made when one is needed.
    std::shared_ptr<const Blob> staging;
    std::byte* staging_data = nullptr;
  };
  struct Entry {
    std::string name;
    std::shared_ptr<const Blob> blob;
    std::byte* data = nullptr;
    bool torn = false;
    std::string initializer;  // empty: none
    size_t of = 0;            // the entry that it is a replica of; itself: of none
    std::vector<size_t> replicas = {};
    bool trained = false;        // it had content, or was written since it was filled; set in a turn alone
    mutable bool stale = false;  // the host's bytes are
    std::vector<std::unique_ptr<Home>> homes;
  };
  Home* home_on(const Entry& e, const Device& device) const HEDDLE_REQUIRES(homes_mutex_);
  Status copy_to_host(const Entry& e, const CopyWait& wait) const;
  Status copy_to_home(const Entry& e, const Device& device, const CopyWait& wait) const;
  Status overwrite(size_t i, const void* source, const Interruption& until);
  Status before_write_with_replicas(size_t i, const Interruption& until) const;
  void copy_to_replicas(size_t i);
  Status copy_part(Snapshot& snapshot, size_t i, const Interruption& until) const HEDDLE_REQUIRES(snapshots_mutex_);
  std::shared_ptr<Snapshot> find_part(size_t i, Snapshot::State state) const HEDDLE_REQUIRES(snapshots_mutex_);
  void finish(Snapshot& snapshot, const Interruption& until) const;
  void unregister(const Snapshot& snapshot) const HEDDLE_REQUIRES(snapshots_mutex_);
  std::vector<Entry> entries_;
  uint64_t seed_ = 0;  // of the initial contents
  mutable Mutex filling_;
  mutable size_t next_to_fill_ HEDDLE_GUARDED_BY(filling_) = 0;  // an entry; those before it have content
  mutable std::atomic<bool> filled_{false};
  std::atomic<bool> has_homes_{false};
  mutable Mutex homes_mutex_;  // guards the homes of entries and what is stale; a type of its own can not name it
  mutable Mutex snapshots_mutex_;
  mutable Condition part_done_;
  mutable std::vector<std::shared_ptr<Snapshot>> snapshots_ HEDDLE_GUARDED_BY(snapshots_mutex_);  // being made
  mutable std::atomic<size_t> snapshot_count_{0};                                                 // how many these are
  mutable FairSharedMutex copying_;  // held during copies between the host and homes
  mutable FairSharedMutex turns_;
  const BusyName busy_name_ = new_busy_name();
  std::shared_ptr<const OutstandingWork> outstanding_;  // null: none can be
};

}  // namespace heddle

// Workspace: the memory on the host and on each device, and the devices' streams and events, that runs of any plan work in. Plans that use
// it one after the other need the largest of their sizes, not the sum. SharedMemory of heddle/session.h holds one.
//
// Grows when a plan asks for more, and its memory then moves: users that keep addresses compare generation() before a run
// (Execution::follow). Not synchronised, except for turns(), which contexts that share one hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/threads/fair_shared_mutex.h"
#include "base/threads/mutex.h"
#include "base/threads/warm_slot.h"
#include "device/device.h"
#include "device/outstanding_work.h"
#include "device/resources.h"
#include "heddle/status.h"

namespace heddle {

class Workspace {
 public:
  Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Makes the part on the host, or on `device`, at least `bytes` large. The last `pinned` bytes on the host are to be memory that copies of
  // `pinned_by` are fast from and to; null: they need not be. Errors: out_of_memory, device_failed; the part that could not grow is then
  // empty.
  Status reserve(int64_t bytes, int64_t pinned = 0, const std::shared_ptr<Device>& pinned_by = nullptr);
  Status reserve_on(const std::shared_ptr<Device>& device, int64_t bytes);
  // Makes at least as many streams of each class (HEDDLE_STREAM_*) as `classes` names, and `events` events. Existing ones keep their
  // addresses. Errors: device_failed, out_of_memory.
  Status reserve_queues(const std::shared_ptr<Device>& device, const std::vector<int32_t>& classes, uint32_t events);
  // Returns where the last `bytes` of the host part begin: a plan uses its end.
  std::byte* host(int64_t bytes) const { return host_ ? host_ + (host_bytes_ - bytes) : nullptr; }
  int64_t host_bytes() const { return host_bytes_; }
  // Null: nothing was reserved there.
  std::byte* on(const Device& device) const;
  int64_t bytes_on(const Device& device) const;
  // Return the k-th stream of its class, and the k-th event, of those that were reserved.
  void* stream(const Device& device, int32_t stream_class, size_t k) const;
  void* event(const Device& device, size_t k) const;
  // The resources of the streams, which are destroyed before them.
  StreamResources& stream_resources() { return stream_resources_; }
  // Returns the bytes on the host and on devices together.
  int64_t bytes() const;
  // True if it holds memory on a device that was lost, or whose plugin is being unloaded.
  bool keeps_retired() const;
  // Changes whenever any of its memory moves; no two workspaces have the same, not even those that hold nothing.
  uint64_t generation() const { return generation_; }
  FairSharedMutex& turns() { return turns_; }
  // The name under which outstanding work keeps the memory busy, because a device may still read and write it.
  BusyName busy_name() const { return busy_name_; }
  // Runs that use it from now on register such work in `list`, the one of their runtime. REQUIRES: turns() is held, and answered() is ok.
  void register_in(const std::shared_ptr<const OutstandingWork>& list) {
    if (list_ != list) list_ = list;
  }
  // Returns busy while no other run may use the memory. REQUIRES: turns() is held.
  Status answered() const { return list_ ? list_->busy(busy_name_) : Status(); }

 private:
  static constexpr size_t stream_classes = HEDDLE_STREAM_COMMUNICATION + 1;
  struct Side {
    std::shared_ptr<Device> device;
    DeviceMemory memory;
    int64_t bytes = 0;
    std::array<std::vector<DeviceStream>, stream_classes> streams;
    std::vector<DeviceEvent> events;
  };
  const Side* side(const Device& device) const;
  Side& side_of(const std::shared_ptr<Device>& device);

  FairSharedMutex turns_;
  const BusyName busy_name_ = new_busy_name();
  std::shared_ptr<const OutstandingWork> list_;  // null: no runs share the memory
  std::shared_ptr<const Blob> memory_;
  HostRegistration registration_;  // registers the end of memory_
  PinnedMemory pinned_;            // instead of memory_, where a device can't register
  std::shared_ptr<Device> pinned_by_;
  std::byte* host_ = nullptr;
  int64_t host_bytes_ = 0, pinned_bytes_ = 0;
  std::vector<Side> sides_;
  StreamResources stream_resources_;  // destroyed before the streams of sides_
  uint64_t generation_;
};

// The memory that a plan needs of a workspace.
struct WorkspaceNeeds {
  int64_t host_bytes = 0;
  std::vector<std::pair<const Device*, int64_t>> on_devices;
  int64_t total() const;
};

// Workspaces that no context or run uses. Thread-safe. Of equally suitable ones it takes the one that was given back last, which is warm.
class WorkspacePool {
 public:
  // Returns the one that was given back last, or else the smallest, if it has what is needed and holds at most twice as much: a small plan
  // does not keep the memory of a large one from others. Else the largest one that lacks some of it and holds at least half, to grow: of
  // sizes within a factor of two only one is kept for callers that come one after the other. Else a new, empty one. Never null.
  std::shared_ptr<Workspace> take(const WorkspaceNeeds& needs);
  // [destructors] Frees the workspace if there is no memory to remember it.
  void give_back(std::shared_ptr<Workspace> workspace) noexcept;
  // Frees idle workspaces until about `keep_bytes` are held.
  void trim(int64_t keep_bytes) noexcept;
  int64_t idle_bytes();

 private:
  // Moves the one that was given back last to the others.
  void file_last() HEDDLE_REQUIRES(mutex_);
  WarmSlot<std::shared_ptr<Workspace>> last_;  // the one that was given back last
  Mutex mutex_;
  // The others; the last one was given back last. It keeps its capacity, for runs that allocate nothing.
  std::vector<std::shared_ptr<Workspace>> idle_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

// Workspace: what runs work in, whatever they run: memory on the host and on each device, and the devices' streams and events. The plans
// that use it one after the other need the largest of their sizes, not the sum. What SharedMemory of heddle/session.h holds.
//
// Grows when a plan asks for more, and then it moves: users that keep addresses compare generation() before a run (Execution::follow).
// Not synchronised, but for turns(), which contexts that share one hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/threads/fair_shared_mutex.h"
#include "device/device.h"
#include "device/unanswered.h"
#include "heddle/status.h"

namespace heddle {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Makes the part on the host, or on `device`, at least `bytes` large. The last `pinned` bytes of the host's are to be memory that copies
  // of `pinned_by` are fast from and to; null: they need not be. Errors: out_of_memory, device_failed; what could not grow is empty then.
  Status reserve(int64_t bytes, int64_t pinned = 0, const std::shared_ptr<Device>& pinned_by = nullptr);
  Status reserve_on(const std::shared_ptr<Device>& device, int64_t bytes);
  // Makes at least as many streams of each class (HEDDLE_STREAM_*) as `classes` names, and `events` events. What was made stays where it
  // is. Errors: device_failed, out_of_memory.
  Status reserve_queues(const std::shared_ptr<Device>& device, const std::vector<int32_t>& classes, uint32_t events);
  // Where the last `bytes` of it begin: those who work in it use its end.
  std::byte* host(int64_t bytes) const { return host_ ? host_ + (host_bytes_ - bytes) : nullptr; }
  int64_t host_bytes() const { return host_bytes_; }
  // Null: nothing was reserved there.
  std::byte* on(const Device& device) const;
  int64_t bytes_on(const Device& device) const;
  // The k-th stream of its class, and the k-th event, of those that were reserved.
  void* stream(const Device& device, int32_t stream_class, size_t k) const;
  void* event(const Device& device, size_t k) const;
  // What belongs to its streams and goes before them: its user's own (run/step_resources.h).
  std::shared_ptr<void>& beside_streams() { return beside_streams_; }
  // On the host and on devices together.
  int64_t bytes() const;
  // Whether it holds memory on a device that was lost, or whose plugin is being unloaded.
  bool keeps_retired() const;
  // Changes whenever any of it moves; no two workspaces have the same; 0: never held anything.
  uint64_t generation() const { return generation_; }
  FairSharedMutex& turns() { return turns_; }
  // In a turn: a device that does not answer may still read and write the memory. No other run may have it before.
  void block(std::shared_ptr<const Unanswered> until) { unanswered_ = std::move(until); }
  Status answered() const { return unanswered_ ? unanswered_->status() : Status(); }

 private:
  static constexpr size_t stream_classes = HEDDLE_STREAM_FROM_DEVICE + 1;
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
  std::shared_ptr<const Unanswered> unanswered_;
  std::shared_ptr<const Blob> memory_;
  HostRegistration registration_;  // of its end
  PinnedMemory pinned_;            // in its place, where a device can't register
  std::shared_ptr<Device> pinned_by_;
  std::byte* host_ = nullptr;
  int64_t host_bytes_ = 0, pinned_bytes_ = 0;
  std::vector<Side> sides_;
  std::shared_ptr<void> beside_streams_;
  uint64_t generation_ = 0;
};

// What a plan needs of a workspace.
struct WorkspaceNeeds {
  int64_t host_bytes = 0;
  std::vector<std::pair<const Device*, int64_t>> on_devices;
  int64_t total() const;
};

// Workspaces that no context or run uses. Thread-safe. Of those that are as good as each other it takes the one that was given back last,
// which is warm.
class WorkspacePool {
 public:
  // The smallest one that has what is needed and holds at most twice as much: a small plan does not keep the memory of a large one from
  // others. Else the largest one that lacks some of it and holds at least half, to grow: of sizes within a factor of two only one is kept
  // for callers that come one after the other. Else a new one, which is empty. Never null.
  std::shared_ptr<Workspace> take(const WorkspaceNeeds& needs);
  // [destructors] Where there is no memory to remember it, it is freed.
  void give_back(std::shared_ptr<Workspace> workspace) noexcept;
  // Frees those that are idle until about `keep_bytes` are held.
  void trim(int64_t keep_bytes) noexcept;
  int64_t idle_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Workspace>> idle_;  // the last one was given back last; its room stays, for runs that allocate nothing
};

}  // namespace heddle

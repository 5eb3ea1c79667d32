// One communicator of a session: what it is, the objects that were made of it, and the call of a plugin that is under way. Runs take turns
// with it (device/communicator_turns.h).
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "base/threads/fair_shared_mutex.h"
#include "base/threads/mutex.h"
#include "device/resources.h"
#include "heddle/communicator.h"
#include "heddle/status.h"

namespace heddle {

// Returns how errors name a communicator.
inline std::string shown_communicator(const std::string& name) {
  return fmt::format("communicator {}", quoted(name));
}

// A call of a plugin that may wait for peers, on a thread of its own, which holds what it needs.
struct PeerCall {
  std::atomic<bool> cancelled{false};  // the run that waits for it has ended
  bool over = false;                   // under CommunicatorGroup::mutex, like what follows; until then the thread has the rest
  Status failure;
  std::shared_ptr<const Resource> made;
  std::vector<uint64_t> hashes;    // of each rank's collectives
  std::vector<std::string> texts;  // where they differ: what each rank runs
};

struct CommunicatorGroup {
  CommunicatorGroup(const CommunicatorOptions& declared, std::string called, const std::vector<std::string>& devices)
      : options(declared), name(std::move(called)) {
    if (options.devices.empty()) options.devices = devices;
  }
  struct Object {
    std::string key;  // of the need
    std::shared_ptr<const Resource> made;
    std::optional<uint64_t> compared{};  // the hash of collectives that the ranks have agreed on last
  };
  // Drops all objects, to be made anew with the next attempt, if they are `broken` or were aborted. They are destroyed by the caller.
  std::vector<Object> drop(bool broken) {
    std::vector<Object> dropped;
    const MutexLock lock(mutex);
    if (!broken && !aborted) return dropped;
    dropped.swap(objects);
    anew = true;
    aborted = false;
    return dropped;
  }
  // Fails if an object has broken. No lock is held while a plugin is called.
  Status poll() const {
    for (size_t i = 0;; ++i) {
      std::shared_ptr<const Resource> object;
      {
        const MutexLock lock(mutex);
        if (i >= objects.size()) return {};
        object = objects[i].made;
      }
      HEDDLE_CHECK(object->poll());
    }
  }

  CommunicatorOptions options;
  const std::string name;
  FairSharedMutex turns;
  mutable Mutex mutex;
  Condition changed;
  std::vector<Object> objects HEDDLE_GUARDED_BY(mutex);
  std::shared_ptr<PeerCall> call HEDDLE_GUARDED_BY(mutex);  // under way, perhaps for a run that has ended
  uint32_t attempt HEDDLE_GUARDED_BY(mutex) = 0;
  bool anew HEDDLE_GUARDED_BY(mutex) = false;     // the next object is of the next attempt
  bool aborted HEDDLE_GUARDED_BY(mutex) = false;  // by the run that has the turn
};

}  // namespace heddle

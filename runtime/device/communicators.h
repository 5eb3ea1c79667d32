// Communicators: those of one session, by name. Their objects belong to runs, which take turns (device/communicator_turns.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "device/resources.h"
#include "heddle/communicator.h"
#include "heddle/status.h"

namespace heddle {

struct CommunicatorGroup;

// Checks a session's declarations. Errors: invalid_argument.
Status check_communicators(const std::vector<CommunicatorOptions>& declared);

// Returns the declaration of a communicator: the one of that name, else the one without a name; null: there is none.
const CommunicatorOptions* declaration_of(const std::vector<CommunicatorOptions>& declared, const std::string& name);

// Thread-safe.
class Communicators {
 public:
  // `declared` was checked. `device`: the only member of those that say no devices. What their objects need is found in `resources`.
  Communicators(std::vector<CommunicatorOptions> declared, std::string device, std::shared_ptr<ResourceTable> resources);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // Returns the communicator of that name. `devices`: on which the net that asks has its collectives; members, if it is the first to ask
  // and none are declared. Errors: missing_resource (the session has none of that name).
  Result<std::shared_ptr<CommunicatorGroup>> find(const std::string& name, const std::vector<std::string>& devices);
  const std::shared_ptr<ResourceTable>& resources() const { return resources_; }
  // Returns this session's rank in a communicator; 0 if the session has none of that name.
  int rank_in(const std::string& name) const;
  // Leaves all communicators, so that ranks that wait for this one are told why. The next runs make new objects. Call it between runs:
  // those in progress end.
  void leave(const std::string& why) noexcept;
  // From now on a run that finds an object broken fails with its error, once: ranks that count on each other from run to run would wait in
  // a new one for who has gone.
  void fail_if_broken() { fails_if_broken_ = true; }
  bool fails_if_broken() const { return fails_if_broken_; }
  // Returns how many ranks it has; 1 if the session has none of that name.
  int ranks_of(const std::string& name) const;
  // Returns the devices that are declared for it; none if the session has none of that name.
  std::vector<std::string> devices_of(const std::string& name) const;

 private:
  const std::vector<CommunicatorOptions> declared_;
  const std::string device_;
  const std::shared_ptr<ResourceTable> resources_;
  std::atomic<bool> fails_if_broken_{false};
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<CommunicatorGroup>> groups_ HEDDLE_GUARDED_BY(mutex_);  // by name, once they were used
};

}  // namespace heddle

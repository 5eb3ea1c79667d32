// The world of the plugin "peers" (peers.cc): ranks that are threads of one process. A test implements it, and gives its address as the
// rendezvous of a communicator: "world:ADDRESS" (world_at). Classes are passed, since both sides are built together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// One rank's part in a communicator: the object of resource "peers.comm".
class PeersMember {
 public:
  virtual ~PeersMember() = default;
  // Begins this rank's next operation: `sum` becomes the sum of what all ranks have in `mine`. Calls `done` once, on any thread, also
  // inside this call; with a text, the operation has failed.
  virtual void start(const float* mine, float* sum, int64_t count, std::function<void(const std::string& failure)> done) = 0;
  virtual void abort(const std::string& why) = 0;
  // Gives the bytes of `mine` to all ranks; returns what each gave, by rank: as many. Throws std::exception to fail.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  // Says why the communicator is broken; empty: it is not.
  virtual std::string broken() = 0;
};

class PeersWorld {
 public:
  // The request for a communicator, as the host makes it.
  struct Joining {
    std::string communicator;
    int rank = 0, size = 1;
    uint32_t attempt = 0;
    std::vector<std::string> members;
    int64_t timeout_ns = 0, deadline_ns = 0;
    std::function<bool()> cancelled;
  };
  virtual ~PeersWorld() = default;
  // Makes a member; waits as long as it likes. Throws std::exception to fail.
  virtual std::unique_ptr<PeersMember> join(const Joining& joining) = 0;
};

inline std::string world_at(const PeersWorld& world) {
  return "world:" + std::to_string(reinterpret_cast<uintptr_t>(&world));
}

// The communicator of one process: its ranks are sessions, each with a thread of the program that runs it, or it is one session whose
// devices work together. Ranks find each other by a name: their rendezvous is "local:NAME", and "" for one rank.
//
// The object of resource "local.communicator". Each rank has its own, and all share a meeting, where their k-th collectives meet: the last
// rank that comes does the work of all. A rank leaves when its run ends early, or when its session
// closes. That ends the meeting: the ranks that wait are told which rank has left, and why. The next runs have new objects.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "support/cpu_api.h"

namespace heddle::cpu {

// The work of a collective, which begins once all its participants have come. Stateless; any thread.
class CollectiveWork {
 public:
  // `parts`: the contexts of the participants, in the order of ranks, and of a rank's devices. Their types, and the attributes of their
  // nodes, are alike where ranks have compared them; what would be read or written outside a tensor otherwise is checked here.
  virtual Status perform(std::span<const RunContext* const> parts) const = 0;

 protected:
  ~CollectiveWork() = default;
};

// Where ranks meet.
class LocalMeeting;

// Thread-safe, but a rank is in one collective at a time.
class LocalCommunicator {
 public:
  // Throws std::invalid_argument for a rendezvous that is no name, and for a rank that this process has already.
  explicit LocalCommunicator(const ResourceRequest& request);
  ~LocalCommunicator();
  LocalCommunicator(const LocalCommunicator&) = delete;
  LocalCommunicator& operator=(const LocalCommunicator&) = delete;

  int32_t size() const { return size_; }
  // Begins this rank's next collective. The step of `context` is completed on this or another rank's thread; `work` and the context are
  // valid until then. Allocates nothing.
  void start(const CollectiveWork& work, const RunContext& context);
  // Makes this rank leave: it and the other ranks get no further, and steps that wait fail. `why` is what the others say of it. Any thread.
  void abort(const char* why);
  // Fails if a rank has left, or if one that others wait for does not come in time.
  Status poll_error();
  // Gives `bytes` bytes of each rank to all, in the order of ranks. Waits for the other ranks until the communicator's time-out or
  // `deadline_ns` of CLOCK_MONOTONIC (0: none), whichever is first: that ends the meeting. Errors: those of poll_error().
  Status exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns);

 private:
  const int32_t rank_, size_;
  const std::shared_ptr<LocalMeeting> meeting_;
};

}  // namespace heddle::cpu

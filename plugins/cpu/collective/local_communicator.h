// The communicator of one process: its ranks are sessions, each with a thread of the program that runs it, or it is one session whose
// devices work together. Ranks find each other by a name: their rendezvous is "local:NAME".
//
// Each rank has an object, and all share a meeting, where their k-th collectives meet: the last rank that comes does the work of all. A
// rank leaves when its run ends early, or when its session closes. That ends the meeting: the ranks that wait are told which rank has left,
// and why. The next runs have new objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "collective/communicator.h"

namespace heddle::cpu {

// Where ranks meet.
class LocalMeeting;

class LocalCommunicator final : public Communicator {
 public:
  // Throws std::invalid_argument for a rendezvous that is no name, and for a rank that this process has already.
  explicit LocalCommunicator(const ResourceRequest& request);
  ~LocalCommunicator() override;
  LocalCommunicator(const LocalCommunicator&) = delete;
  LocalCommunicator& operator=(const LocalCommunicator&) = delete;

  int32_t size() const override { return size_; }
  void start(const CollectiveWork& work, const RunContext& context) override;
  Status perform(const CollectiveWork& work, Parts mine) override;
  void abort(const char* why) override;
  Status poll_error() override;
  Status check_all_there() override;
  Status exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns) override;
  void follow(const operators::RankPositions* positions) override;
  bool give_up(bool late, const std::string& why) override;

 private:
  const int32_t rank_, size_;
  const std::shared_ptr<LocalMeeting> meeting_;
};

}  // namespace heddle::cpu

// The communicator of collectives on the host: the object of the resource "cpu.communicator". How its ranks find each other is said by the
// rendezvous: "local:NAME" for sessions of one process (collective/local_communicator.h), anything else for processes
// (collective/process_communicator.h), which a plugin with a RankTransport connects.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "shared/collective_parts.h"
#include "shared/ranks/rank_control.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

class RankCollectives;
using operators::Parts;

// The work of a collective, which begins once its participants have come. Stateless; any thread.
class CollectiveWork {
 public:
  // `parts`: the contexts of all participants, in the order of ranks, and of a rank's devices. Their types, and the attributes of their
  // nodes, are alike where ranks have compared them; what would be read or written outside a tensor otherwise is checked here.
  virtual Status perform(Parts parts) const = 0;
  // Does it where `mine` are only the contexts of this rank, and the others are in other processes.
  virtual Status perform_between(Parts mine, RankCollectives& ranks) const = 0;
  // The name of the node, for messages.
  virtual const std::string& node() const = 0;

 protected:
  ~CollectiveWork() = default;
};

// Thread-safe, but a rank is in one collective at a time.
class Communicator : public operators::RankControl {
 public:
  // Begins this rank's next collective. The step of `context` is completed on another thread, perhaps another rank's; `work` and the
  // context are valid until then.
  virtual void start(const CollectiveWork& work, const RunContext& context) = 0;
  // The next collective of all devices of this rank; returns when it is done.
  virtual Status perform(const CollectiveWork& work, Parts mine) = 0;
};

// The communicator that a request's rendezvous says.
class ChosenCommunicator final : public Communicator {
 public:
  // Throws std::invalid_argument for a rendezvous that is none, and for a rank that there is already.
  explicit ChosenCommunicator(const ResourceRequest& request);
  Status status() const { return status_; }
  int32_t size() const override { return chosen_->size(); }
  void start(const CollectiveWork& work, const RunContext& context) override { chosen_->start(work, context); }
  Status perform(const CollectiveWork& work, Parts mine) override { return chosen_->perform(work, mine); }
  void abort(const char* why) override { chosen_->abort(why); }
  Status poll_error() override { return chosen_->poll_error(); }
  Status check_all_there() override { return chosen_->check_all_there(); }
  Status exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns) override {
    return chosen_->exchange(mine, bytes, all, deadline_ns);
  }
  void follow(const operators::RankPositions* positions) override { chosen_->follow(positions); }
  bool give_up(bool late, const std::string& why) override { return chosen_->give_up(late, why); }

 private:
  Status status_;
  std::unique_ptr<Communicator> chosen_;
};

}  // namespace heddle::cpu

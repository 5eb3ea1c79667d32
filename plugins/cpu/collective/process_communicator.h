// The communicator of ranks that are processes, over connections that another plugin makes.
//
// A thread of its own does the collectives, so that no thread of the host waits. It also sees when a connection breaks while there is no
// collective. When this rank goes no further, for whatever reason, it says so once: it writes a report, closes its connections, which the
// others see at once, and reads what they report. From then on all fails with one text. The next runs have a new object.
//
// A rank may close its session while others have yet to begin the last collective that it has done: they do it without that rank.
//
// An exchange is completed by all ranks that stay, or by none: one that was left without the bytes of another finds them in the reports, if
// any rank has completed it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collective/communicator.h"
#include "collective/lost_ranks.h"
#include "collective/rank_collectives.h"

namespace heddle::cpu {

class ProcessCommunicator final : public Communicator {
 public:
  // Connects with the other ranks; status() says whether it has.
  ProcessCommunicator(const ResourceRequest& request, operators::RankTransport& transport);
  ~ProcessCommunicator() override;
  ProcessCommunicator(const ProcessCommunicator&) = delete;
  ProcessCommunicator& operator=(const ProcessCommunicator&) = delete;
  const Status& status() const { return status_; }

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
  // The work of the thread: a collective, or an exchange of bytes.
  struct Task {
    const CollectiveWork* work = nullptr;
    const RunContext* started = nullptr;  // the context of its step, which is completed; null: a thread waits for `done`
    Parts mine;
    const void* given = nullptr;
    void* all = nullptr;
    uint64_t bytes = 0;
    RankClock::time_point until;
    bool done = false;
    Status status;
  };
  enum class Asked : uint8_t { nothing, abort, give_up, give_up_late };
  bool ask_to_leave(Asked how, const std::string& why);
  Status wait_for(Task& task);
  void work();
  Status idle();
  Status do_task(Task& task);
  Status exchange_all(const Task& task);
  void finish(Task& task, Status status);
  void leave(Task* task, const Status& failure);
  enum class Cause : uint8_t { other_ranks, asked, own };  // why this rank leaves
  Cause report(const Task* task, const Status& failure, LostRanks* lost);
  std::vector<int32_t> other_ranks() const;
  std::optional<uint64_t> done_by_closed(const std::vector<std::optional<operators::RankReport>>& reports) const;
  void hear(LostRanks* lost, std::chrono::nanoseconds of_ended, std::chrono::nanoseconds of_others);
  bool goes_on();
  bool complete_exchange(Task& task, const std::vector<std::optional<operators::RankReport>>& reports) const;

  const int32_t rank_, size_;
  const std::string name_;  // for messages
  const std::chrono::nanoseconds timeout_;
  Status status_;
  std::unique_ptr<RankConnections> connections_;
  std::unique_ptr<RankCollectives> collectives_;
  uint64_t exchanges_ = 0;                // completed, and the bytes of the last one: of the thread
  std::string exchanged_;                 // likewise
  std::vector<char> coming_;              // those of the one that goes on
  std::optional<uint64_t> done_by_gone_;  // of the thread: the last collective that ranks had done which this one goes on without

  std::mutex mutex_;
  std::condition_variable changed_;
  Task* task_ = nullptr;  // the next or current one
  Task started_;
  bool ends_ = false;
  Asked asked_ = Asked::nothing;                         // to leave
  std::string why_;                                      // with asked_
  const operators::RankPositions* positions_ = nullptr;  // of collectives that another library does
  operators::RankPosition last_position_;                // of those that it followed
  bool follows_ = false;                                 // or has followed some
  std::optional<uint64_t> done_by_closed_;  // the last collective that ranks had done which have closed their sessions; with over_
  Status over_;                             // why nothing works any more
  std::thread thread_;
};

}  // namespace heddle::cpu

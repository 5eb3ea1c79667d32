#include "collective/local_communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collective/lost_ranks.h"

namespace heddle::cpu {

using Clock = std::chrono::steady_clock;

class LocalMeeting {
 public:
  LocalMeeting(std::string name, int32_t size, int64_t timeout_ns)
      : name_(std::move(name)),
        timeout_(timeout_ns),
        joined_(static_cast<size_t>(size)),
        gave_(joined_.size()),
        came_(joined_.size()),
        performed_(joined_.size()),
        positions_(joined_.size()),
        last_numbers_(joined_.size()) {}

  // Adds a rank, unless the meeting is over: then another one is needed. Throws std::invalid_argument.
  bool join(int32_t rank, int32_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (over()) return false;
    if (static_cast<size_t>(size) != joined_.size())
      throw std::invalid_argument("rank " + std::to_string(rank) + " of " + std::to_string(size) + " comes to " + name_ + ", which has " +
                                  std::to_string(joined_.size()) + " ranks");
    if (joined_[static_cast<size_t>(rank)])
      throw std::invalid_argument("rank " + std::to_string(rank) + " of " + name_ +
                                  " is another session of this process: give each its own");
    joined_[static_cast<size_t>(rank)] = true;
    return true;
  }

  void come(int32_t rank, const CollectiveWork& work, const RunContext& context) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (over()) return lock.unlock(), complete(context, status_of(rank));
    if (came_[static_cast<size_t>(rank)])
      return lock.unlock(), complete(context, {HEDDLE_ERROR_INTERNAL, "rank " + std::to_string(rank) + " is in a collective of " + name_ +
                                                                          " already: two steps use it at once"});
    if (waiting_++ == 0) since_ = Clock::now();
    came_[static_cast<size_t>(rank)] = &context;
    if (waiting_ < came_.size()) return;
    // Nothing is written there before the last of these steps has been completed, and then this thread does not look any more.
    performed_.swap(came_);
    std::fill(came_.begin(), came_.end(), nullptr);
    waiting_ = 0;
    ++completing_;
    lock.unlock();
    const Status status = work.perform(performed_);
    const bool ended = status.code == HEDDLE_ERROR_CANCELLED;  // the first rank is asked whether its run goes on
    if (ended) leave(0, "its run has ended");
    for (size_t i = 0, count = performed_.size(); i < count; ++i)
      complete(*performed_[i], ended ? ended_status(static_cast<int32_t>(i)) : status);
    lock.lock();
    if (--completing_ == 0) changed_.notify_all();
  }

  // The session of a rank has closed, which has done all that it was asked for.
  void close(int32_t rank) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!over()) done_by_closed_ = last_numbers_[static_cast<size_t>(rank)];
    }
    leave(rank, session_closed);
  }

  // Ends the meeting: those that wait fail. Returns false if it was over.
  bool leave(int32_t rank, const std::string& why) {
    std::vector<std::pair<const RunContext*, Status>> ended;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (over()) return false;
      left_ = rank;
      why_ = why;
      for (size_t i = 0; i < came_.size(); ++i)
        if (came_[i]) ended.emplace_back(std::exchange(came_[i], nullptr), status_of(static_cast<int32_t>(i)));
      changed_.notify_all();
    }
    for (const auto& [context, status] : ended) complete(*context, status);
    return true;
  }

  Status poll(int32_t rank) {
    std::string late;
    int32_t missing = -1;
    {
      // A rank whose step is completed may have left, and the others' steps are about to be: whether theirs still waits is known after
      // that. A run that begins asks, too, and must not go on with a meeting that is over.
      constexpr std::chrono::seconds longest_completion(1);
      std::unique_lock<std::mutex> lock(mutex_);
      if (completing_ > 0 && (!over() || !changed_.wait_for(lock, longest_completion, [&] { return completing_ == 0; }))) return {};
      if (over()) {
        const operators::RankPositions* const of = positions_[static_cast<size_t>(rank)];
        return of && done_by_closed_ && of->last() <= *done_by_closed_ ? Status() : status_of(rank);
      }
      if (waiting_ == 0 || Clock::now() - since_ < timeout_) return {};
      while (came_[static_cast<size_t>(++missing)]) {
      }
      late = "it did not come to a collective within " + milliseconds(timeout_);
    }
    leave(missing, late);
    return ended_status(rank);
  }

  Status check_all_there(int32_t rank) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over() ? status_of(rank) : Status();
  }

  void follow(int32_t rank, const operators::RankPositions* positions) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const operators::RankPositions*& of = positions_[static_cast<size_t>(rank)];
    if (of) last_numbers_[static_cast<size_t>(rank)] = of->position().number;
    of = positions;
  }

  // A rank has waited too long in a collective that another library does: the first one that has not come to it is lost.
  bool give_up_late(int32_t rank) {
    int32_t missing = rank;
    std::string late = "its collectives were not done within " + milliseconds(timeout_);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto of = [&](size_t i) { return positions_[i] ? positions_[i]->position() : operators::RankPosition(); };
      const operators::RankPosition here = of(static_cast<size_t>(rank));
      for (size_t i = 0; i < positions_.size() && missing == rank; ++i)
        if (of(i).number < here.number) missing = static_cast<int32_t>(i);
      if (missing != rank)
        late =
            "it did not come to " + here.collective + " (operation " + std::to_string(here.number) + ") within " + milliseconds(timeout_);
    }
    return leave(missing, late);
  }

  Status exchange(int32_t rank, const void* mine, uint64_t bytes, void* all, int64_t deadline_ns) {
    Clock::time_point late = Clock::now() + timeout_;
    if (deadline_ns > 0) late = std::min(late, Clock::time_point(std::chrono::nanoseconds{deadline_ns}));  // Clock is CLOCK_MONOTONIC
    std::unique_lock<std::mutex> lock(mutex_);
    if (over()) return status_of(rank);
    gave_[static_cast<size_t>(rank)] = true;
    given_.resize(joined_.size() * bytes);
    std::memcpy(given_.data() + static_cast<size_t>(rank) * bytes, mine, bytes);
    const uint64_t round = rounds_;
    const auto missing = [&] { return std::find(gave_.begin(), gave_.end(), false); };
    if (missing() == gave_.end()) {
      // A rank gives bytes for the next round only once it has those of this one.
      exchanged_ = given_;
      std::fill(gave_.begin(), gave_.end(), false);
      ++rounds_;
      changed_.notify_all();
    }
    while (rounds_ == round && !over())
      if (changed_.wait_until(lock, late) == std::cv_status::timeout && rounds_ == round && !over()) {
        left_ = static_cast<int32_t>(missing() - gave_.begin());
        why_ = "it did not compare its collectives within " + milliseconds(timeout_);
        changed_.notify_all();
      }
    if (rounds_ == round) return status_of(rank);
    std::memcpy(all, exchanged_.data(), exchanged_.size());
    return {};
  }

 private:
  bool over() const { return left_ >= 0; }
  Status ended_status(int32_t rank) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_of(rank);
  }
  // Why the meeting is over, as `rank` sees it.
  Status status_of(int32_t rank) const {
    if (rank == left_) return {HEDDLE_ERROR_CANCELLED, why_};
    return {HEDDLE_ERROR_DEVICE, "rank " + std::to_string(left_) + " has left " + name_ + ": " + why_};
  }
  static std::string milliseconds(std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
  }
  static void complete(const RunContext& context, const Status& status) { Completion{context}(status); }

  const std::string name_;
  const std::chrono::nanoseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> joined_, gave_;                         // by rank: those that there are; those whose bytes of this round are there
  std::vector<const RunContext*> came_, performed_;         // by rank: those that wait; those whose work is done
  std::vector<const operators::RankPositions*> positions_;  // by rank: of collectives that another library does
  std::vector<uint64_t> last_numbers_;                      // by rank: of the last of these, of ranks that follow none any more
  std::optional<uint64_t> done_by_closed_;                  // by the rank that has left, if it has closed its session
  size_t waiting_ = 0;
  int completing_ = 0;       // threads that complete steps
  Clock::time_point since_;  // of the first that waits
  std::vector<char> given_, exchanged_;
  uint64_t rounds_ = 0;
  int32_t left_ = -1;  // the rank that ended it
  std::string why_;
};

namespace {

// Meetings by name, for all sessions of the process.
class Meetings {
 public:
  std::shared_ptr<LocalMeeting> join(const std::string& name, int32_t rank, int32_t size, int64_t timeout_ns) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(meetings_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<LocalMeeting>& known = meetings_[name];
    if (std::shared_ptr<LocalMeeting> meeting = known.lock(); meeting && meeting->join(rank, size)) return meeting;
    auto made = std::make_shared<LocalMeeting>(name, size, timeout_ns);
    made->join(rank, size);
    known = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<LocalMeeting>> meetings_;
};

std::shared_ptr<LocalMeeting> meeting_of(const ResourceRequest& request) {
  static Meetings meetings;
  const std::string rendezvous = request.rendezvous(), communicator = '"' + std::string(request.communicator()) + '"';
  const bool local = rendezvous.rfind("local:", 0) == 0;
  if (local && rendezvous.size() == 6)
    throw std::invalid_argument("communicator " + communicator +
                                " has the rendezvous \"local:\" without a name: give all ranks the same, " + "as in \"local:job\"");
  if (!local) {
    auto alone = std::make_shared<LocalMeeting>("communicator " + communicator, 1, request.timeout_ns());
    alone->join(request.rank(), 1);
    return alone;
  }
  return meetings.join("communicator " + communicator + " of \"" + rendezvous + '"', request.rank(), request.size(), request.timeout_ns());
}

}  // namespace

LocalCommunicator::LocalCommunicator(const ResourceRequest& request)
    : rank_(request.rank()), size_(request.size()), meeting_(meeting_of(request)) {}

LocalCommunicator::~LocalCommunicator() {
  meeting_->close(rank_);
}

void LocalCommunicator::start(const CollectiveWork& work, const RunContext& context) {
  const std::shared_ptr<LocalMeeting> meeting = meeting_;  // the last step that is completed may let go of this object
  meeting->come(rank_, work, context);
}

Status LocalCommunicator::perform(const CollectiveWork& work, Parts mine) {
  if (size_ == 1) return work.perform(mine);
  return unsupported("a collective of " + std::to_string(size_) +
                     " ranks of one process runs on the host: give the operator the device \"cpu\"");
}

void LocalCommunicator::abort(const char* why) {
  meeting_->leave(rank_, why);
}

Status LocalCommunicator::poll_error() {
  return meeting_->poll(rank_);
}

void LocalCommunicator::follow(const operators::RankPositions* positions) {
  meeting_->follow(rank_, positions);
}

bool LocalCommunicator::give_up(bool late, const std::string& why) {
  return late ? meeting_->give_up_late(rank_) : meeting_->leave(rank_, why);
}

Status LocalCommunicator::check_all_there() {
  return meeting_->check_all_there(rank_);
}

Status LocalCommunicator::exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns) {
  return meeting_->exchange(rank_, mine, bytes, all, deadline_ns);
}

}  // namespace heddle::cpu

#include "collective/process_communicator.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

namespace heddle::cpu {
namespace {

using operators::RankPlace;
using operators::RankReport;

// How long ranks have to report. Those whose connections broke have done it before, if they could, but for the time that the store takes:
// many times as long as for this rank's own.
constexpr std::chrono::milliseconds answer_of_ended(300), answer_of_others(2000);
constexpr int store_times = 10;
constexpr std::chrono::milliseconds look_again(20);  // whether a connection has broken, while a thread waits

// Its text needs none.
Status no_memory() {
  return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory"};
}

// Does what may fail for want of memory; returns whether it did not.
template <class Act>
bool with_memory(const Act& act) {
  try {
    act();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

RankClock::time_point time_limit(std::chrono::nanoseconds timeout, int64_t deadline_ns) {
  const RankClock::time_point late = RankClock::now() + timeout;
  if (deadline_ns <= 0) return late;
  return std::min(late, RankClock::time_point(std::chrono::nanoseconds{deadline_ns}));  // RankClock is CLOCK_MONOTONIC
}

}  // namespace

ProcessCommunicator::ProcessCommunicator(const ResourceRequest& request, operators::RankTransport& transport)
    : rank_(request.rank()),
      size_(request.size()),
      name_("communicator \"" + std::string(request.communicator()) + "\" of \"" + request.rendezvous() + '"'),
      timeout_(request.timeout_ns()) {
  const RankPlace place = {rank_, size_, request.communicator(), request.rendezvous(), time_limit(timeout_, request.deadline_ns()), [&] {
                             return request.cancelled();
                           }};
  status_ = transport.connect(place, &connections_);
  if (!status_.ok()) return;
  collectives_ = std::make_unique<RankCollectives>(*connections_, rank_, size_);
  thread_ = std::thread([this] { work(); });
}

ProcessCommunicator::~ProcessCommunicator() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  connections_->wake();
  thread_.join();
}

// ---------------------------------------------------------------- what others ask

void ProcessCommunicator::start(const CollectiveWork& work, const RunContext& context) {
  Status refused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!over_.ok())
      refused = over_;
    else if (task_)
      refused = {HEDDLE_ERROR_INTERNAL,
                 "rank " + std::to_string(rank_) + " is in a collective of " + name_ + " already: two steps use it at once"};
    else {
      started_ = Task();
      started_.work = &work;
      started_.started = &context;
      started_.mine = Parts(&started_.started, 1);
      started_.until = RankClock::now() + timeout_;
      task_ = &started_;
    }
  }
  if (refused.ok())
    connections_->wake();
  else
    Completion{context}(refused);
}

Status ProcessCommunicator::wait_for(Task& task) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!over_.ok()) return over_;
  if (task_) return {HEDDLE_ERROR_INTERNAL, "rank " + std::to_string(rank_) + " of " + name_ + " is asked for two things at once"};
  task_ = &task;
  connections_->wake();
  while (!changed_.wait_for(lock, look_again, [&] { return task.done; })) {
    lock.unlock();
    connections_->look();
    lock.lock();
  }
  return std::move(task.status);
}

Status ProcessCommunicator::perform(const CollectiveWork& work, Parts mine) {
  Task task;
  task.work = &work;
  task.mine = mine;
  task.until = RankClock::now() + timeout_;
  return wait_for(task);
}

Status ProcessCommunicator::exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns) {
  Task task;
  task.given = mine;
  task.all = all;
  task.bytes = bytes;
  task.until = time_limit(timeout_, deadline_ns);
  return wait_for(task);
}

void ProcessCommunicator::abort(const char* why) {
  ask_to_leave(Asked::abort, why);
}

bool ProcessCommunicator::give_up(bool late, const std::string& why) {
  return ask_to_leave(late ? Asked::give_up_late : Asked::give_up, why);
}

// The first reason counts.
bool ProcessCommunicator::ask_to_leave(Asked how, const std::string& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!over_.ok() || asked_ != Asked::nothing) return false;
    asked_ = how;
    why_ = why;
  }
  connections_->abort();
  return true;
}

void ProcessCommunicator::follow(const operators::RankPositions* positions) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (positions_) last_position_ = positions_->position();
  positions_ = positions;
  follows_ = true;
}

Status ProcessCommunicator::poll_error() {
  connections_->look();
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool are_closed = !over_.ok() && positions_ && done_by_closed_;
  return are_closed && positions_->last() <= *done_by_closed_ ? Status() : over_;
}

Status ProcessCommunicator::check_all_there() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return over_;
}

// ---------------------------------------------------------------- its thread

void ProcessCommunicator::work() {
  // A peer that has gone is an error of the connection, not the end of the process.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  for (;;) {
    Task* task = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      task = task_;
      if (!task && ends_) break;
    }
    Status status;
    if (task) {
      status = do_task(*task);
    } else if (!with_memory([&] { status = idle(); })) {
      status = no_memory();
    }
    if (!status.ok()) return leave(task, status);
  }
  const uint64_t number = follows_ ? last_position_.number : collectives_->number();
  with_memory([&] { (void)connections_->report({number, "", session_closed, {}, exchanges_, exchanged_}); });
}

// Waits until there is something to do. Fails if this rank is asked to leave, or is left by others.
Status ProcessCommunicator::idle() {
  if (done_by_gone_ && collectives_->number() >= *done_by_gone_) return {HEDDLE_ERROR_DEVICE, "other ranks have closed their sessions"};
  Status status = connections_->idle();
  return status.code == HEDDLE_ERROR_DEVICE && goes_on() ? Status() : status;
}

// Fails if the communicator is over with that. What is invalid is found before anything is sent, and fails the task alone; after any other
// failure, also for want of memory, messages may be under way into the memory of the task, which leave() ends before the task.
Status ProcessCommunicator::do_task(Task& task) {
  Status status;
  try {
    collectives_->begin(task.until);
    status = task.work ? task.work->perform_between(task.mine, *collectives_) : exchange_all(task);
  } catch (const std::exception&) {
    status = no_memory();
  }
  if (!status.ok() && status.code != HEDDLE_ERROR_INVALID) return status;
  finish(task, std::move(status));
  return {};
}

// Messages come to memory of this object: connections keep what they make for each place, and callers' memory is elsewhere each time.
Status ProcessCommunicator::exchange_all(const Task& task) {
  coming_.resize(task.bytes * static_cast<uint64_t>(size_));
  HEDDLE_PLUGIN_CHECK(collectives_->exchange(task.given, task.bytes, coming_.data()));
  exchanged_.assign(coming_.data(), coming_.size());
  ++exchanges_;
  std::memcpy(task.all, coming_.data(), coming_.size());
  return {};
}

// The step or the waiting thread may go on from here: nothing that it owns is used any more.
void ProcessCommunicator::finish(Task& task, Status status) {
  const RunContext* started = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    task_ = nullptr;
    started = task.started;
    if (!started) {
      task.status = std::move(status);
      task.done = true;
      changed_.notify_all();
      return;
    }
  }
  Completion{*started}(status);
}

// Reads what the others report: waits for those whose connections have broken, which have reported before if they could, and for the
// others.
void ProcessCommunicator::hear(LostRanks* lost, std::chrono::nanoseconds of_ended, std::chrono::nanoseconds of_others) {
  const RankClock::time_point now = RankClock::now();
  for (std::chrono::milliseconds pause(2);; pause = std::min(2 * pause, std::chrono::milliseconds(32))) {
    const Status read = connections_->reports(&lost->reports);
    lost->unread = read.text;
    bool again = false;
    for (int32_t rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || lost->reports[static_cast<size_t>(rank)]) continue;
      const bool is_broken = std::find(lost->broken.begin(), lost->broken.end(), rank) != lost->broken.end();
      again = again || RankClock::now() < now + (is_broken ? of_ended : of_others);
    }
    if (!again) return;
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, pause, [&] { return ends_; })) return;
  }
}

// Whether this rank goes on without those whose connections have broken: they have closed their sessions, or have left because others had,
// between collectives. It does so until it has done what they had. What another library does is not counted here.
bool ProcessCommunicator::goes_on() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (follows_) return false;
  }
  LostRanks gone;
  gone.broken = connections_->broken();
  hear(&gone, answer_of_ended, std::chrono::nanoseconds(0));
  for (const int32_t rank : gone.broken) {
    const std::optional<RankReport>& report = gone.reports[static_cast<size_t>(rank)];
    if (!report || !report->collective.empty() || (report->reason != session_closed && report->missing.empty())) return false;
    done_by_gone_ = std::min(done_by_gone_.value_or(UINT64_MAX), report->number);
  }
  return true;
}

std::vector<int32_t> ProcessCommunicator::other_ranks() const {
  std::vector<int32_t> others;
  for (int32_t rank = 0; rank < size_; ++rank)
    if (rank != rank_) others.push_back(rank);
  return others;
}

// Tells the others where this rank is, and why it leaves.
ProcessCommunicator::Cause ProcessCommunicator::report(const Task* task, const Status& failure, LostRanks* lost) {
  bool late = failure.code == HEDDLE_PENDING;
  Cause cause = late || failure.code == HEDDLE_ERROR_DEVICE ? Cause::other_ranks : Cause::own;
  operators::RankPosition position = {collectives_->number(), !task ? "" : task->work ? '"' + task->work->node() + '"' : "an exchange"};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    late = late || asked_ == Asked::give_up_late;
    if (asked_ == Asked::abort || ends_) cause = Cause::asked;
    if (asked_ == Asked::give_up_late) cause = Cause::other_ranks;
    if (asked_ == Asked::give_up) cause = Cause::own;
    lost->mine.reason = late && cause == Cause::other_ranks ? waited_too_long
                        : asked_ != Asked::nothing          ? why_
                        : ends_                             ? session_closed
                                                            : failure.text;
    if (positions_ && !task) position = positions_->position();
  }
  lost->rank = rank_;
  lost->communicator = name_;
  lost->timeout = timeout_;
  lost->broken = connections_->broken();
  lost->mine.number = position.number;
  lost->mine.collective = position.collective;
  if (cause == Cause::other_ranks) lost->mine.missing = !late ? lost->broken : task ? connections_->missing() : other_ranks();
  lost->mine.exchanges = exchanges_;
  lost->mine.exchanged = exchanged_;
  lost->unread = connections_->report(lost->mine).text;
  return cause;
}

// Returns the number of the last collective that every rank had done which closed its session; null if none closed, or if a rank left for
// another reason. A rank that left because others had left is passed over: what it was in may still end.
std::optional<uint64_t> ProcessCommunicator::done_by_closed(const std::vector<std::optional<RankReport>>& reports) const {
  std::optional<uint64_t> done;
  for (int32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const auto at = static_cast<size_t>(rank);
    if (at >= reports.size() || !reports[at]) return {};
    if (reports[at]->reason == session_closed)
      done = std::min(done.value_or(UINT64_MAX), reports[at]->number);
    else if (reports[at]->missing.empty())
      return {};
  }
  return done;
}

// Ends all: nothing comes after. Without memory for its report it is for the others as if this rank had died.
void ProcessCommunicator::leave(Task* task, const Status& failure) {
  LostRanks lost;
  Cause cause = Cause::own;
  bool completed = false;
  Status over = no_memory(), of_task = no_memory();
  const RankClock::time_point begun = RankClock::now();
  const bool reported = with_memory([&] { cause = report(task, failure, &lost); });
  const std::chrono::nanoseconds store_takes = RankClock::now() - begun;
  connections_->close();
  with_memory([&] {
    if (!reported) return;
    // It need not know of the others if it leaves for a reason of its own, unless an exchange is open.
    const bool asks = cause == Cause::other_ranks || (task && !task->work);
    const auto of_ended = std::clamp<std::chrono::nanoseconds>(store_times * store_takes, answer_of_ended, answer_of_others);
    // A store that took no report has none to give, and may take long to say so.
    if (asks && lost.unread.empty()) {
      const bool they_may_go_on = done_by_gone_ && !task;
      hear(&lost, of_ended, they_may_go_on ? std::chrono::milliseconds(0) : answer_of_others);
      const bool one_closed = std::any_of(lost.reports.begin(), lost.reports.end(),
                                          [](const auto& report) { return report && report->reason == session_closed; });
      if (they_may_go_on && !one_closed) hear(&lost, of_ended, answer_of_others);
    }
    completed = task && !task->work && complete_exchange(*task, lost.reports);
    over = cause == Cause::other_ranks              ? Status(HEDDLE_ERROR_DEVICE, text_of(lost))
           : cause == Cause::asked                  ? Status(HEDDLE_ERROR_CANCELLED, lost.mine.reason)
           : failure.code == HEDDLE_ERROR_CANCELLED ? Status(HEDDLE_ERROR_DEVICE, lost.mine.reason)  // it was asked to give up
                                                    : failure;
    of_task = over;
  });
  Task* next = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = std::move(over);
    done_by_closed_ = reported && cause == Cause::other_ranks ? done_by_closed(lost.reports) : std::nullopt;
    next = task_;  // one that came meanwhile, if there was none
  }
  if (next) finish(*next, completed ? Status() : std::move(of_task));
}

// Fills in the bytes of all ranks, if one of them has got them all.
bool ProcessCommunicator::complete_exchange(Task& task, const std::vector<std::optional<RankReport>>& reports) const {
  for (const std::optional<RankReport>& report : reports) {
    if (!report || report->exchanges != exchanges_ + 1 || report->exchanged.size() != task.bytes * static_cast<uint64_t>(size_)) continue;
    std::memcpy(task.all, report->exchanged.data(), report->exchanged.size());
    return true;
  }
  return false;
}

}  // namespace heddle::cpu

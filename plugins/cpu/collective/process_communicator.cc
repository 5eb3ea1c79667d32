#include "collective/process_communicator.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

#include "collective/lost_ranks.h"

namespace heddle::cpu {
namespace {

using operators::RankPlace;
using operators::RankReport;

// How long ranks have to report: those whose connections broke have done it before, if they could.
constexpr std::chrono::milliseconds answer_of_ended(300), answer_of_others(2000);

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
  changed_.wait(lock, [&] { return task.done; });
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
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!over_.ok() || std::exchange(aborted_, true)) return;
    why_ = why;
  }
  connections_->abort();
}

Status ProcessCommunicator::poll_error() {
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
    const Status status = task ? do_task(*task) : connections_->idle();
    if (!status.ok()) return leave(task, status);
  }
  connections_->report({collectives_->number(), "", "its session has closed", {}, exchanges_, exchanged_});
}

// Fails if the communicator is over with that. What is invalid is found before anything is sent, and fails the task alone; after any other
// failure, also for want of memory, messages may be under way into the memory of the task, which leave() ends before the task.
Status ProcessCommunicator::do_task(Task& task) {
  Status status;
  try {
    collectives_->begin(task.until);
    status = task.work ? task.work->perform_between(task.mine, *collectives_) : collectives_->exchange(task.given, task.bytes, task.all);
    if (status.ok() && !task.work) {
      exchanged_.assign(static_cast<const char*>(task.all), task.bytes * static_cast<uint64_t>(size_));
      ++exchanges_;
    }
  } catch (const std::exception& error) {
    status = {HEDDLE_ERROR_OUT_OF_MEMORY, error.what()};
  }
  if (!status.ok() && status.code != HEDDLE_ERROR_INVALID) return status;
  finish(task, std::move(status));
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
    }
  }
  if (started) Completion{*started}(status);
}

// Returns what the others report: waits for those whose connections have broken, which have reported before if they could, and longer for
// the others.
std::vector<std::optional<RankReport>> ProcessCommunicator::answers(const std::vector<int32_t>& broken) {
  const RankClock::time_point now = RankClock::now();
  for (std::chrono::milliseconds pause(2);; pause = std::min(2 * pause, std::chrono::milliseconds(32))) {
    std::vector<std::optional<RankReport>> reports = connections_->reports();
    bool again = false;
    for (int32_t rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || reports[static_cast<size_t>(rank)]) continue;
      const bool is_broken = std::find(broken.begin(), broken.end(), rank) != broken.end();
      again = again || RankClock::now() < now + (is_broken ? answer_of_ended : answer_of_others);
    }
    if (!again) return reports;
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, pause, [&] { return ends_; })) return reports;
  }
}

// Ends all: nothing comes after.
void ProcessCommunicator::leave(Task* task, const Status& failure) {
  LostRanks lost;
  const bool late = failure.code == HEDDLE_PENDING, broken = failure.code == HEDDLE_ERROR_DEVICE;
  bool aborted = false, ends = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    aborted = aborted_;
    ends = ends_;
    lost.mine.reason = aborted ? why_ : ends ? "its session has closed" : late ? waited_too_long : failure.text;
  }
  lost.rank = rank_;
  lost.communicator = name_;
  lost.timeout = timeout_;
  lost.broken = connections_->broken();
  lost.mine.number = collectives_->number();
  lost.mine.collective = !task ? "" : task->work ? '"' + task->work->node() + '"' : "an exchange";
  const bool of_others = !aborted && !ends && (late || broken);  // else this rank leaves for a reason of its own
  if (of_others) lost.mine.missing = late ? connections_->missing() : lost.broken;
  lost.mine.exchanges = exchanges_;
  lost.mine.exchanged = exchanged_;
  connections_->report(lost.mine);
  connections_->close();
  // Then it need not know of the others, unless an exchange is open.
  if (of_others || (task && !task->work)) lost.reports = answers(lost.broken);
  const Status over = of_others         ? Status(HEDDLE_ERROR_DEVICE, text_of(lost))
                      : aborted || ends ? Status(HEDDLE_ERROR_CANCELLED, lost.mine.reason)
                                        : failure;
  const bool completed = task && !task->work && complete_exchange(*task, lost.reports);
  Task* next = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = over;
    next = task_;  // one that came meanwhile, if there was none
  }
  if (next) finish(*next, completed ? Status() : over);
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

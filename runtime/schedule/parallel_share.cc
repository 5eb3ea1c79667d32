// How threads of a run find each other: offers, calls for help, and waiting.
//
// No offer is missed: a thread that shows work writes the offer and then reads the count of idle threads; an idle thread writes that count
// and then reads the offers once more. Both are in the single order of sequentially consistent operations, so at least one sees the other.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/threads/clock.h"
#include "schedule/parallel.h"
#include "schedule/run_stop.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

// To wake a thread takes about 20 us: done only for this much work, or if so much is still to come that there will be more for it. A thread
// that is awake and waiting is given less.
constexpr float worth_a_call_ns = 5000;
constexpr float worth_a_call_ahead_ns = 15000;
constexpr float worth_an_offer_ns = 20000;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// How a thread waits without blocking: a few microseconds of pauses, then only between yields, so that it never keeps the processor
// from a thread that has work.
class SpinBeforePark {
 public:
  explicit SpinBeforePark(double ns) : ns_(ns) {}
  // Waits a moment. False: it has waited long enough.
  bool wait() noexcept {
    if (++waits_ <= pauses) {
      pause_briefly();
      return true;
    }
    if (waits_ == pauses + 1) since_ = ticks();
    sched_yield();
    return ticks_to_ns(ticks() - since_) < ns_;
  }

 private:
  static constexpr int pauses = 100;
  double ns_;
  int waits_ = 0;
  uint64_t since_ = 0;
};
// During a run this exceeds any difference between the halves of a large shared step: to sleep and be woken costs more than to yield.
constexpr double spin_in_run_ns = 500000;
constexpr double spin_between_runs_ns = 15000;

constexpr double look_again_ns = 1000000;
constexpr double poll_ns = 5000000;

}  // namespace

// ---------------------------------------------------------------- showing work

// Shows the steps that are ready beside `next`, which this thread is about to run, if another thread should take them.
void ParallelEngine::share(Worker& w, uint32_t next) noexcept {
  const StepTable::Entry& entry = table_[next];
  const bool in_full = shuffle_seed_ != 0 || (entry.flags & StepTable::lengthy) != 0;
  if (!in_full && hungry_.load(std::memory_order_relaxed) <= 0 && helpers_.idle() == 0) return;
  if (const uint64_t shown = w.offer.load(std::memory_order_relaxed); shown != 0) {
    // The current offer may keep the other threads busy during this step; otherwise show all of it, in the right order.
    const uint32_t own = w.ready.empty() ? w.small.count : w.ready.count;
    const uint32_t enough = std::max(threads_ - 1, own / 2);
    if (!in_full || own > few || Offer::chain(shown).count >= enough) return;
    take_back(w);
  }
  StepChain& list = w.ready.empty() ? w.small : w.ready;
  if (w.ready.empty() && w.small.count < many_small) return;
  uint32_t count = (list.count + 1) / 2;
  if (in_full) {
    if (list.count <= few) count = list.count;
  } else {
    const float cost = table_[list.head].cost_ns;
    const bool awake = hungry_.load(std::memory_order_relaxed) > 0;
    if (!awake && cost * static_cast<float>(list.count) < worth_a_call_ns && table_[list.head].rank_ns < worth_a_call_ahead_ns) return;
    count = std::min(count, 1 + static_cast<uint32_t>(worth_an_offer_ns / cost));
  }
  offer(w, list.split(std::min(count, Offer::max_steps), nodes_.data()));
}

void ParallelEngine::offer(Worker& w, StepChain chain) noexcept {
  w.offer.store(Offer::pack(chain, table_[chain.head].rank_ns), std::memory_order_seq_cst);
  call_help(chain.count);
}

// Puts this thread's own offer, if no thread has taken it, back into its lists.
void ParallelEngine::take_back(Worker& w) noexcept {
  // Acquire even if it is empty: after the taker took its token, this thread may release its own.
  if (w.offer.load(std::memory_order_acquire) == 0) return;
  const uint64_t offer = w.offer.exchange(0, std::memory_order_acq_rel);
  if (offer == 0) return;
  StepChain chain = Offer::chain(offer);
  if (w.ready.empty() && (table_[chain.head].flags & StepTable::small) == 0) {
    w.ready = chain;
    return;
  }
  uint32_t behind = no_step;
  while (!chain.empty()) keep(w, chain.pop(nodes_.data()), behind);
}

// Calls helpers after work was shown that `wanted` threads could take.
void ParallelEngine::call_help(uint32_t wanted) noexcept {
  const int64_t here = hungry_.load(std::memory_order_seq_cst);
  if (here <= wanted) wake_caller();
  if (outer_) outer_->call_help(wanted);
  const int64_t missing = static_cast<int64_t>(wanted) - here - helpers_.coming();
  if (missing > 0 && helpers_.idle() > 0) helpers_.call(static_cast<uint32_t>(missing));
}

// ---------------------------------------------------------------- taking work

// Returns a step to begin, with a token for it, and no longer counts the calling thread as idle; or no_step, and nothing has changed.
uint32_t ParallelEngine::take(Worker& w) noexcept {
  uint32_t step = steal(w);
  if (step == no_step) step = take_completed(w);
  if (step == no_step) step = join_tiles(w);
  if (step == no_step && visit_nested(w)) ++w.joined;
  return step;
}

// ---------------------------------------------------------------- runs inside steps

void ParallelEngine::host(uint32_t worker, ParallelEngine& nested) noexcept {
  workers_[worker].nested.store(&nested, std::memory_order_seq_cst);
}

// Afterwards no other thread uses the nested engine.
void ParallelEngine::end_hosting(uint32_t worker) noexcept {
  workers_[worker].nested.store(nullptr, std::memory_order_seq_cst);
  while (workers_[worker].visitors.load(std::memory_order_seq_cst) != 0) sched_yield();
}

// Helps runs inside the steps of others, as long as there is something to take. False: there was nothing.
bool ParallelEngine::visit_nested(const Worker& w) noexcept {
  bool helped = false;
  for (Worker& other : workers_) {
    if (&other == &w || !other.nested.load(std::memory_order_relaxed)) continue;
    other.visitors.fetch_add(1, std::memory_order_seq_cst);
    // This counts first and looks second; end_hosting() writes `nested` first and looks at the count second.
    ParallelEngine* const nested = other.nested.load(std::memory_order_seq_cst);
    if (nested && nested->threads_ > 1 && nested->anything_to_take()) {
      hungry_.fetch_sub(1, std::memory_order_relaxed);
      // The nested run's own thread is its worker 0; the others keep their order.
      const uint32_t index = w.index < other.index ? w.index + 1 : w.index;
      if (index < nested->threads_) nested->visit(index), helped = true;
      hungry_.fetch_add(1, std::memory_order_relaxed);
    }
    other.visitors.fetch_sub(1, std::memory_order_seq_cst);
  }
  return helped;
}

// [a thread of the outer run] Works as worker `worker` as long as there is something to take.
void ParallelEngine::visit(uint32_t worker) noexcept {
  const WorkerScope scope(worker, this);
  Worker& w = workers_[worker];
  for (;;) {
    hungry_.fetch_add(1, std::memory_order_relaxed);
    const uint32_t step = take(w);
    if (step == no_step) break;
    const FairSharedMutex::Helping helping(control_->holds);  // while this thread has a token, the run cannot end
    work(w, step);
  }
  hungry_.fetch_sub(1, std::memory_order_relaxed);
}

// Takes an offer. Independent steps come before shared tiles: running them side by side is faster than sharing one.
uint32_t ParallelEngine::steal(Worker& w) noexcept {
  Worker* victim = nullptr;
  uint64_t best = 0;
  for (Worker& other : workers_) {
    const uint64_t offer = other.offer.load(std::memory_order_relaxed);
    if (offer == 0 || (victim && Offer::rank_ns(offer) <= Offer::rank_ns(best))) continue;
    victim = &other;
    best = offer;
  }
  if (!victim) return no_step;
  gain_token();
  const uint64_t offer = victim->offer.exchange(0, std::memory_order_acq_rel);
  if (offer == 0) {
    release_token();
    return no_step;
  }
  hungry_.fetch_sub(1, std::memory_order_relaxed);
  StepChain chain = Offer::chain(offer);
  const uint32_t step = chain.pop(nodes_.data());
  ((table_[step].flags & StepTable::small) != 0 ? w.small : w.ready) = chain;
  if (worth_showing(w)) share(w, step);
  return step;
}

uint32_t ParallelEngine::take_completed(Worker& w) noexcept {
  if (completed_.load(std::memory_order_relaxed) == no_step) return no_step;
  gain_token();
  hungry_.fetch_sub(1, std::memory_order_relaxed);
  const uint32_t step = choose(w, no_step);
  if (step == no_step) {
    hungry_.fetch_add(1, std::memory_order_relaxed);
    release_token();
  }
  return step;
}

bool ParallelEngine::anything_to_take() const noexcept {
  if (completed_.load(std::memory_order_seq_cst) != no_step) return true;
  for (const Worker& w : workers_) {
    if (w.offer.load(std::memory_order_seq_cst) != 0) return true;
    const uint32_t step = w.tiled.load(std::memory_order_seq_cst);
    if (step != no_step && !tiles_[table_[step].tile_slot - 1].unclaimed.empty()) return true;
    if (!w.nested.load(std::memory_order_seq_cst)) continue;
    w.visitors.fetch_add(1, std::memory_order_seq_cst);
    const ParallelEngine* const nested = w.nested.load(std::memory_order_seq_cst);
    const bool wanted = nested && nested->threads_ > 1 && nested->anything_to_take();
    w.visitors.fetch_sub(1, std::memory_order_seq_cst);
    if (wanted) return true;
  }
  return false;
}

// ---------------------------------------------------------------- waiting

// [helper] Returns a step, with a token for it; no_step: there was nothing for a while, or there is no run.
uint32_t ParallelEngine::wait_as_helper(Worker& w) noexcept {
  hungry_.fetch_add(1, std::memory_order_relaxed);
  bool during_run = running_.load(std::memory_order_relaxed) != 0;
  SpinBeforePark spin(during_run ? spin_in_run_ns : spin_between_runs_ns);
  do {
    const uint32_t joined = w.joined;
    const uint32_t step = take(w);
    if (step != no_step) return step;
    if (w.joined != joined) spin = SpinBeforePark(spin_in_run_ns);
    if (during_run && running_.load(std::memory_order_relaxed) == 0) {
      during_run = false;
      spin = SpinBeforePark(spin_between_runs_ns);
    }
  } while (spin.wait());
  hungry_.fetch_sub(1, std::memory_order_seq_cst);
  return no_step;
}

void ParallelEngine::help(uint32_t worker) noexcept {
  Worker& w = workers_[worker];
  for (uint32_t step = wait_as_helper(w); step != no_step; step = wait_as_helper(w)) {
    const FairSharedMutex::Helping helping(control_->holds);  // while this thread has a token, the run cannot end
    work(w, step);
  }
}

// Returns a step, with a token for it; no_step: the run is over, or the steps in flight have been given up; left_thread_step.
uint32_t ParallelEngine::wait_as_caller() noexcept {
  if (busy_.load(std::memory_order_acquire) == 0) return no_step;
  Worker& w = workers_[0];
  hungry_.fetch_add(1, std::memory_order_relaxed);
  SpinBeforePark spin(spin_in_run_ns);
  do {
    const uint32_t joined = w.joined;
    const uint32_t step = take(w);
    if (step != no_step) return step;
    if (w.joined != joined) spin = SpinBeforePark(spin_in_run_ns);
    const bool leaves = leave_.go_on && at_work_.load() == 0;  // only asynchronous steps are left
    if (!leaves && spin.wait()) continue;
    if (!table_.has_asynchronous()) {
      park_caller(0, true);  // other threads of the run are at work
      continue;
    }
    if (look_at_end()) break;
    const bool told = patience_.told();
    uint64_t until = told ? std::max(patience_.until(), ticks() + ns_to_ticks(look_again_ns)) : control_->deadline_ticks;
    if (control_->look || (control_->outer_stops && !leave_.go_on)) {
      const uint64_t next = ticks() + ns_to_ticks(poll_ns);
      until = until == 0 ? next : std::min(until, next);
    }
    const bool visited = outer_ && at_work_.load() != 0;  // threads of the outer run help here, found through this run's thread
    if (visited) {
      const uint64_t next = ticks() + ns_to_ticks(look_again_ns);
      until = until == 0 ? next : std::min(until, next);
    }
    if (!leave_.go_on || visited)
      park_caller(until, told);
    else if (leave_thread(until, told))
      return left_thread_step;
  } while (busy_.load(std::memory_order_acquire) != 0);
  hungry_.fetch_sub(1, std::memory_order_relaxed);
  return no_step;
}

// Whether the run ends without the asynchronous steps that are under way: it was requested to stop, they were signalled, and did not
// complete in time. Steps of the update phase are signalled last, since variables are at stake.
bool ParallelEngine::look_at_end() noexcept {
  // Also after a request to stop: otherwise a failure that was not reported keeps the run for all the time that steps have to complete.
  if (control_->look) control_->look(control_->user);
  return tell_or_give_up(patience_, *control_, stop_requested(), reached_tail()) && give_up();
}

// Whether the run was requested to stop, in the update phase too, whose steps still begin: steps that never complete end no other way.
bool ParallelEngine::stop_requested() const noexcept {
  return stop_->load() != 0 || heddle::stop_requested(*control_);
}

// Gives up the asynchronous steps in flight. True: no thread is at work, only asynchronous steps are left, and the run is over without
// them. A thread that takes up work takes a token before it reads given_up_, so either this function sees the token or the thread sees
// given_up_. Steps that run other graphs are never given up: those graphs give up their own steps. `begun_` is read twice, since between
// the reads of the other members such a step may leave its thread, or be resumed and done.
bool ParallelEngine::give_up() noexcept {
  const auto going_on = [this] { return begun_.load() != 0 || at_work_.load() != 0 || completed_.load() != no_step || begun_.load() != 0; };
  if (going_on() || busy_.load() == 0) return false;
  given_up_.store(true);
  if (going_on()) {
    given_up_.store(false);
    return false;
  }
  request_stop(*stop_, stop_failed);
  request_stop(control_->stop, stop_deadline);
  return true;
}

bool ParallelEngine::something_to_do(bool told) const noexcept {
  return anything_to_take() || busy_.load(std::memory_order_seq_cst) == 0 || (!told && control_->stop.load() != 0);
}

// Sleeps until there is something to do, the run is requested to stop (unless the caller knows: `told`), or `until` (ticks; 0: none).
void ParallelEngine::park_caller(uint64_t until, bool told) noexcept {
  caller_parked_.store(caller_asleep, std::memory_order_seq_cst);
  if (something_to_do(told)) {
    caller_parked_.store(caller_awake, std::memory_order_relaxed);
    return;
  }
  const MutexLock lock(park_mutex_);
  while (caller_parked_.load(std::memory_order_relaxed) != caller_awake) {
    if (until == 0) {
      parked_.wait(park_mutex_);
      continue;
    }
    const auto left = left_until(until);
    if (left.count() == 0) break;
    parked_.wait_for(park_mutex_, left);
  }
  caller_parked_.store(caller_awake, std::memory_order_relaxed);
}

// Like park_caller(), but gives the thread back: the thread that wakes the caller makes the run continue elsewhere. False: there was
// something to do after all. True: this object may not be touched any more, since the run may be over and destroyed.
bool ParallelEngine::leave_thread(uint64_t until, bool told) noexcept {
  hungry_.fetch_sub(1, std::memory_order_seq_cst);
  completing_.fetch_add(1, std::memory_order_relaxed);  // keeps the run from ending while this thread still looks
  if (until != 0) alarm_.set(until);
  caller_parked_.store(caller_left, std::memory_order_seq_cst);
  bool left = true;
  if (something_to_do(told) || (until != 0 && ticks() >= until)) {
    uint32_t ours = caller_left;
    left = !caller_parked_.compare_exchange_strong(ours, caller_awake, std::memory_order_seq_cst);
  }
  if (!left) hungry_.fetch_add(1, std::memory_order_relaxed);
  completing_.fetch_sub(1, std::memory_order_release);
  return left;
}

void ParallelEngine::wake_caller() noexcept {
  if (caller_parked_.load(std::memory_order_seq_cst) == caller_awake) return;
  const uint32_t was = caller_parked_.exchange(caller_awake, std::memory_order_seq_cst);
  if (was == caller_left) leave_.go_on(leave_.user);
  if (was != caller_asleep) return;
  // Lock and unlock, so that the caller has either seen that it is awake or is waiting: otherwise the notify could be lost.
  { const MutexLock lock(park_mutex_); }
  parked_.notify_one();
}

void ParallelEngine::release_step() noexcept {
  if (busy_.fetch_sub(1, std::memory_order_seq_cst) == 1) wake_caller();
}

}  // namespace heddle

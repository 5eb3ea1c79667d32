#include "schedule/parallel.h"

#include <sched.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "base/threads/clock.h"
#include "schedule/run_stop.h"
#include "schedule/step_call.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

// A waiting path is preferred if it is longer by this plus one and a half times the cost of the thread's own next step.
constexpr float longer_by_ns = 500;

}  // namespace

ParallelEngine::ParallelEngine(const StepGraph& graph, Executor* executor, uint32_t threads, uint64_t shuffle_seed)
    : graph_(graph),
      table_(graph),
      threads_(threads),
      shuffle_seed_(shuffle_seed),
      workers_(threads),
      nodes_(graph.count),
      completions_(table_.has_asynchronous() ? graph.count : 0),
      helpers_(*this, executor, executor ? threads - 1 : 0) {
  for (uint32_t i = 0; i < threads; ++i) workers_[i].index = i;
}
ParallelEngine::~ParallelEngine() = default;

void ParallelEngine::set_costs(const Step* steps, const float* cost_ns) {
  table_.set_costs(steps, cost_ns);
  if (tiles_.size() != table_.tiled_steps()) tiles_ = std::vector<Tiles>(table_.tiled_steps());
}

uint32_t ParallelEngine::executing_threads() const noexcept {
  uint32_t count = 0;
  for (const Worker& w : workers_) count += w.took_part ? 1 : 0;
  return count;
}

// ---------------------------------------------------------------- the run

bool ParallelEngine::start(const Step* steps, RunControl& control, float* measured_ns, const RunLeave& leave) noexcept {
  steps_ = steps;
  control_ = &control;
  stop_ = &control.stop;
  deadline_ = control.deadline_ticks;
  measured_ns_ = measured_ns;
  leave_ = leave;
  complete_ = false;
  patience_.begin();
  timed_ = measured_ns != nullptr || control.profile != nullptr;
  tail_stop_.store(0, std::memory_order_relaxed);
  given_up_.store(false, std::memory_order_relaxed);
  if (table_.count() != 0) std::memcpy(nodes_.data(), table_.initial_nodes().data(), nodes_.size() * sizeof(StepNode));
  ++shuffles_;
  for (Worker& w : workers_) {
    w.finished = 0;
    w.took_part = false;
    w.random = shuffle_seed_ + shuffles_ * 0x632be59bd9b4e019u + w.index;
  }
  if (helpers_.executor()) helpers_.executor()->run_begins();
  running_.store(1, std::memory_order_relaxed);
  return go_on(begin_phase(table_.roots()));
}

bool ParallelEngine::resume() noexcept {
  return go_on(wait_as_caller());
}

// Runs `step` and everything else that there is to do. True: the run is over; false: it has left this thread.
bool ParallelEngine::go_on(uint32_t step) noexcept {
  for (;;) {
    for (; step != no_step; step = wait_as_caller()) {
      if (step == left_thread_step) return false;
      work(workers_[0], step);
    }
    if (!end_phase()) break;
    step = begin_phase(table_.tail_roots());
  }
  running_.store(0, std::memory_order_relaxed);
  if (leave_.go_on) alarm_.cancel();
  while (completing_.load(std::memory_order_acquire) != 0) sched_yield();
  return true;
}

// Makes `roots` ready and returns the first step, with a token for it; no_step: there is none.
uint32_t ParallelEngine::begin_phase(const std::vector<uint32_t>& roots) noexcept {
  gain_token();
  uint32_t behind = no_step;
  for (const uint32_t root : roots) keep(workers_[0], root, behind);
  const uint32_t step = choose(workers_[0], no_step);
  if (step == no_step) release_token();
  return step;
}

// Decides how the phase ended. True: the update phase is next.
bool ParallelEngine::end_phase() noexcept {
  uint32_t finished = 0;
  for (const Worker& w : workers_) finished += w.finished;
  const uint32_t expected = reached_tail() ? graph_.count : graph_.tail_begin;
  complete_ = finished == expected && !given_up_.load(std::memory_order_relaxed);
  if (!complete_ || expected == graph_.count) return false;
  complete_ = update_phase_begins(*control_);
  // From here on neither cancellation nor deadline stops the updates of variables.
  stop_ = &tail_stop_;
  deadline_ = 0;
  return complete_;
}

// Runs `step` and its successors, as long as this thread has work, and releases the token. REQUIRES: the caller holds a token.
void ParallelEngine::work(Worker& w, uint32_t step) noexcept {
  while (step != no_step) step = execute(w, step) ? follow(w, step) : choose(w, no_step);
  release_token();
}

// In a random schedule: now and then lets other threads run for a while before the step begins.
void ParallelEngine::dawdle(Worker& w) noexcept {
  const uint64_t drawn = next_random(w.random);
  if (drawn % 8 == 0) sched_yield();
  if (drawn % 64 == 1) std::this_thread::sleep_for(std::chrono::microseconds(drawn / 64 % 256));
}

// Executes the step. True: it is finished and this thread must count down its successors.
bool ParallelEngine::execute(Worker& w, uint32_t step) noexcept {
  if (stopped() && !is_begun(step)) return false;
  const uint8_t flags = table_[step].flags;
  w.took_part = true;
  if (shuffle_seed_ != 0) dawdle(w);
  if ((flags & StepTable::shared) != 0 && steps_[step].tiles > 1) return own_tiles(w, step);
  if ((flags & StepTable::asynchronous) != 0) return start_asynchronous(w, step);
  if ((flags & StepTable::suspends) != 0) return run_suspending(w, step);
  if (!timed_) [[likely]]
    return call_step(step);
  const uint64_t begin = ticks();
  const bool ok = call_step(step);
  const uint64_t end = ticks();
  if (measured_ns_) measured_ns_[step] = static_cast<float>(ticks_to_ns(end - begin));
  note_span(w, step, begin, end);
  return ok;
}

bool ParallelEngine::call_step(uint32_t step) noexcept {
  const Step& s = steps_[step];
  heddle_status status = call_run(s, 0, s.tiles);
  if (status == HEDDLE_OK) status = call_finish(graph_, s, step);
  if (status == HEDDLE_OK) [[likely]]
    return true;
  fail(step, status);
  return false;
}

uint32_t ParallelEngine::follow(Worker& w, uint32_t done) noexcept {
  return choose(w, count_down(w, done));
}

// Counts down the successors of a finished step. Returns the best of those that became ready; the others go to the lists.
uint32_t ParallelEngine::count_down(Worker& w, uint32_t done) noexcept {
  ++w.finished;
  const StepTable::Entry& entry = table_[done];
  uint32_t best = no_step;
  uint32_t behind = no_step;
  for (uint32_t e = entry.first; e < entry.last; ++e) {
    const uint32_t next = table_.successors()[e];
    // Acquire what the other predecessors wrote, release what we did.
    if ((table_[next].flags & StepTable::one_predecessor) == 0 &&
        std::atomic_ref<uint32_t>(nodes_[next].pending).fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    if (best == no_step)
      best = next;
    else
      keep(w, next, behind);
  }
  return best;
}

// Puts a ready step into this thread's lists; `behind` as StepChain::insert returns it, for steps that come sorted.
void ParallelEngine::keep(Worker& w, uint32_t step, uint32_t& behind) noexcept {
  const StepTable::Entry& entry = table_[step];
  if ((entry.flags & StepTable::small) != 0)
    w.small.push(step, nodes_.data());
  else
    behind = w.ready.insert(step, behind, nodes_.data(), [&](uint32_t other) { return table_[other].rank_ns > entry.rank_ns; });
}

// Returns the next step for this thread and shows other work that it has. `best`: the best step that its last step made ready.
uint32_t ParallelEngine::choose(Worker& w, uint32_t best) noexcept {
  if (table_.has_asynchronous()) absorb_completed(w);
  if (shuffle_seed_ != 0) return choose_randomly(w, best);
  if (best == no_step || (table_[best].flags & StepTable::small) == 0) best = choose_waiting(w, best);
  if (best != no_step && worth_showing(w)) share(w, best);
  return best;
}

// Returns a small step first, for the steps that it makes ready; else `best`, whose inputs are warm, unless a longer path is waiting.
uint32_t ParallelEngine::choose_waiting(Worker& w, uint32_t best) noexcept {
  uint32_t behind = no_step;
  if (w.small.empty()) {
    // A path longer by more than a step is worth leaving warm inputs or re-sorting the offer, while there is little to choose from. With
    // much to choose from every order keeps all threads busy, and the steps made ready last have the warmest inputs.
    const uint32_t own = best != no_step ? best : w.ready.head;
    const bool much = w.ready.count > few;
    const float enough = own == no_step ? 0 : table_[own].rank_ns + longer_by_ns + table_[own].cost_ns * 3 / 2;
    if (own == no_step || (!much && Offer::rank_ns(w.offer.load(std::memory_order_relaxed)) > enough)) take_back(w);
    if (w.small.empty()) {
      if (w.ready.empty() || (best != no_step && (much || table_[w.ready.head].rank_ns <= enough))) return best;
      const uint32_t waiting = w.ready.pop(nodes_.data());
      if (best != no_step) keep(w, best, behind);
      return waiting;
    }
  }
  if (best != no_step) keep(w, best, behind);
  return w.small.pop(nodes_.data());
}

uint32_t ParallelEngine::choose_randomly(Worker& w, uint32_t best) noexcept {
  if (best != no_step) w.ready.push(best, nodes_.data());
  if (w.ready.empty() && w.small.empty()) take_back(w);
  while (!w.small.empty()) w.ready.push(w.small.pop(nodes_.data()), nodes_.data());
  if (w.ready.empty()) return no_step;
  const uint64_t range = std::min<uint32_t>(w.ready.count, 64);
  const uint32_t chosen = w.ready.pop_at(static_cast<uint32_t>(next_random(w.random) % range), nodes_.data());
  if (worth_showing(w)) share(w, chosen);
  return chosen;
}

// ---------------------------------------------------------------- stopping, reporting

bool ParallelEngine::stopped() noexcept {
  if (deadline_ != 0 && ticks() >= deadline_) request_stop(*stop_, stop_deadline);
  if (control_->outer_stops && !reached_tail() && control_->outer_stops(control_->user)) request_stop(*stop_, stop_cancelled);
  return stop_->load(std::memory_order_relaxed) != 0;
}

void ParallelEngine::fail(uint32_t step, heddle_status status) noexcept {
  if (given_up_.load()) return;  // the failures of the run have been reported
  if (control_->failed) control_->failed(control_->user, step, status);
  request_stop(*stop_, stop_failed);
  // If the update phase failed, stop_ is tail_stop_: set the caller's stop word too.
  request_stop(control_->stop, stop_failed);
  wake_caller();  // it may wait for asynchronous steps, from now on with a time limit
}

void ParallelEngine::note_span(const Worker& w, uint32_t step, uint64_t begin, uint64_t end) noexcept {
  if (!control_->profile) return;
  control_->profile[step] = {begin, end, uint64_t{1} << std::min(w.index, 63u)};
}

// ---------------------------------------------------------------- asynchronous steps

// Starts an asynchronous step. In flight it has a token in `busy_`; the thread that takes its completion inherits that.
bool ParallelEngine::start_asynchronous(Worker& w, uint32_t step) noexcept {
  if (timed_) note_span(w, step, ticks(), 0);
  gain_step();
  const Step& s = steps_[step];
  const heddle_status status = call_run(s, 0, s.tiles);
  if (status == HEDDLE_OK) return false;
  release_step();
  fail(step, status);
  return false;
}

// Runs a step that may suspend. Suspended, it counts like an asynchronous step in flight. Once begun it always runs to its end.
bool ParallelEngine::run_suspending(Worker& w, uint32_t step) noexcept {
  if (!is_begun(step)) {
    nodes_[step].pending = step_begun;
    begun_.fetch_add(1);
    if (measured_ns_) measured_ns_[step] = 0;
    if (timed_) note_span(w, step, ticks(), 0);
  } else if (control_->profile) {
    control_->profile[step].workers |= uint64_t{1} << std::min(w.index, 63u);
  }
  gain_step();  // before it runs: another thread may complete it before call_run() returns
  const Step& s = steps_[step];
  const uint64_t before = measured_ns_ ? ticks() : 0;
  heddle_status status = call_run(s, 0, s.tiles);
  // The step may be running again on another thread by now.
  if (measured_ns_)
    std::atomic_ref<float>(measured_ns_[step]).fetch_add(static_cast<float>(ticks_to_ns(ticks() - before)), std::memory_order_relaxed);
  if (status == HEDDLE_PENDING) return false;
  release_step();
  if (status == HEDDLE_OK) status = call_finish(graph_, s, step);
  if (control_->profile) control_->profile[step].end = ticks();
  begun_.fetch_sub(1);
  if (status == HEDDLE_OK) return true;
  fail(step, status);
  return false;
}

bool ParallelEngine::is_begun(uint32_t step) const noexcept {
  return (table_[step].flags & StepTable::suspends) != 0 && nodes_[step].pending == step_begun;
}

// Counts the step as started. Called by the thread that runs its predecessor.
void ParallelEngine::expect(uint32_t step) noexcept {
  if (timed_) note_span(workers_[worker_index()], step, ticks(), 0);
  gain_step();
}

void ParallelEngine::unexpect() noexcept {
  release_step();
}

void ParallelEngine::complete(uint32_t step, heddle_status status) noexcept {
  completing_.fetch_add(1, std::memory_order_relaxed);
  completions_[step] = {status, ticks()};
  uint32_t top = completed_.load(std::memory_order_relaxed);
  do {
    nodes_[step].link = top;
  } while (!completed_.compare_exchange_weak(top, step, std::memory_order_seq_cst, std::memory_order_relaxed));
  wake_caller();
  // From here on the run may be over and the scheduler destroyed.
  completing_.fetch_sub(1, std::memory_order_release);
}

// Counts down the successors of asynchronous steps that have completed, and releases their tokens. REQUIRES: the thread holds a token.
void ParallelEngine::absorb_completed(Worker& w) noexcept {
  if (completed_.load(std::memory_order_relaxed) == no_step) return;
  uint32_t step = completed_.exchange(no_step, std::memory_order_acq_rel);
  while (step != no_step) {
    const uint32_t next = nodes_[step].link;
    const Completion completion = completions_[step];
    if (completion.status == HEDDLE_PENDING && is_begun(step)) {  // never of a run that was given up
      uint32_t behind = no_step;
      keep(w, step, behind);
      release_step();
      step = next;
      continue;
    }
    // Completions after the run was given up have no effect.
    if (!given_up_.load()) {
      if (control_->profile) control_->profile[step].end = completion.at;
      const heddle_status status = completion.status == HEDDLE_OK ? call_finish(graph_, steps_[step], step) : completion.status;
      uint32_t behind = no_step;
      if (status != HEDDLE_OK) {
        fail(step, status);
      } else if (const uint32_t ready = count_down(w, step); ready != no_step) {
        keep(w, ready, behind);
      }
    }
    release_step();
    step = next;
  }
}

bool ParallelEngine::answered() noexcept {
  if (busy_.load(std::memory_order_acquire) == 0) return true;
  // The run was requested to stop: steps that completions make ready are not begun.
  gain_token();
  work(workers_[0], choose(workers_[0], no_step));
  if (busy_.load(std::memory_order_acquire) != 0) return false;
  while (completing_.load(std::memory_order_acquire) != 0) sched_yield();
  return true;
}

}  // namespace heddle

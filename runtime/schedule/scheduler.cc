#include "schedule/scheduler.h"

#include <algorithm>

#include "base/exceptions.h"
#include "base/threads/clock.h"
#include "heddle/limits.h"
#include "schedule/run_stop.h"
#include "schedule/step_call.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

uint32_t thread_count(Executor* executor, const SchedulerOptions& options, const Scheduler* outer) {
  if (outer) return options.mode == ScheduleMode::serial ? 1 : std::min(std::max(1u, options.max_threads), outer->max_threads());
  if (!executor || options.mode == ScheduleMode::serial) return 1;
  const auto available = static_cast<uint32_t>(std::max(1, executor->concurrency()));
  const uint32_t wanted = options.max_threads == 0 ? available : options.max_threads;
  return std::min({available, wanted, uint32_t{max_threads}});
}

bool has_steps(const StepGraph& graph, uint8_t kinds) {
  return std::any_of(graph.flags.begin(), graph.flags.end(), [kinds](uint8_t flags) { return (flags & kinds) != 0; });
}

// Until this is destroyed, other threads of `outer` help the calling thread, which is a worker of it.
class Hosting {
 public:
  // `worker`: the calling thread's number in `outer`; no_worker: nothing is hosted.
  Hosting(ParallelEngine* outer, uint32_t worker, ParallelEngine& nested) : outer_(worker == no_worker ? nullptr : outer), worker_(worker) {
    if (outer_) outer_->host(worker_, nested);
  }
  ~Hosting() {
    if (outer_) outer_->end_hosting(worker_);
  }
  Hosting(const Hosting&) = delete;
  Hosting& operator=(const Hosting&) = delete;

 private:
  ParallelEngine* const outer_;
  const uint32_t worker_;
};

// The extras that a run requests beside its results; without any, the plain loop is used.
struct SerialExtras {
  RunControl& control;
  float* cost_ns = nullptr;        // set to how long each step took, nanoseconds
  AwaitedStep* awaited = nullptr;  // null: the run is not observed, or has no asynchronous steps
  uint64_t deadline_ticks = 0;
  bool tail = false;      // in the update phase
  bool given_up = false;  // set when an asynchronous step was given up
  bool timed() const { return cost_ns || control.profile || deadline_ticks != 0; }
  bool none() const { return !timed() && !control.outer_stops && !control.observe; }
};

// Runs steps [s, end) until one fails or `stop` is set. `s` belongs to the caller, so that it is the current step when a step throws.
using SerialLoop = heddle_status (*)(const StepGraph&, const Step*, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop, SerialExtras&);

// The reference for every other way to run: steps in plan order on the calling thread. No atomics beyond reading the stop word, no locks,
// no allocation. The checks of a loop are decided once per run: each combination is a loop of its own.
template <bool finishes>
heddle_status plain_loop(const StepGraph& graph, const Step* steps, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop, SerialExtras&) {
  uint32_t i = s;
  heddle_status status = HEDDLE_OK;
  for (; i < end; ++i) {
    s = i;
    if (stop.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return HEDDLE_OK;
    status = steps[i].run(steps[i].context, 0, steps[i].tiles);
    if (status != HEDDLE_OK) [[unlikely]]
      return status;
    if constexpr (finishes) {
      if (graph.finish[i]) status = graph.finish[i](steps[i].context);
      if (status != HEDDLE_OK) [[unlikely]]
        return status;
    }
  }
  s = end;
  return HEDDLE_OK;
}

heddle_status run_step(const StepGraph& graph, const Step* steps, uint32_t s, SerialExtras& extras) {
  const bool waits = extras.awaited && (graph.flags[s] & step_async) != 0;
  if (waits) extras.awaited->begin();
  heddle_status status = call_run(steps[s], 0, steps[s].tiles);
  if (status == HEDDLE_OK && waits) status = extras.awaited->wait(extras.control, extras.tail, &extras.given_up);
  return status == HEDDLE_OK ? call_finish(graph, steps[s], s) : status;
}

heddle_status checked_loop(const StepGraph& graph, const Step* steps, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop,
                           SerialExtras& extras) {
  const double scale = ns_per_tick();
  RunControl& control = extras.control;
  const bool timed = extras.timed();
  uint64_t before = timed ? ticks() : 0;
  for (; s < end; ++s) {
    if (control.outer_stops && control.outer_stops(control.user)) request_stop(stop, stop_cancelled);
    if (extras.deadline_ticks != 0 && before >= extras.deadline_ticks) request_stop(stop, stop_deadline);
    if (stop.load(std::memory_order_relaxed) != 0) return HEDDLE_OK;
    const heddle_status status = run_step(graph, steps, s, extras);
    uint64_t after = timed ? ticks() : 0;
    if (control.profile) control.profile[s] = {before, after, 1};
    if (status != HEDDLE_OK) return status;
    if (extras.cost_ns) extras.cost_ns[s] = static_cast<float>(static_cast<double>(after - before) * scale);
    if (control.observe) {
      if (!control.observe(control.user, s) && !extras.tail) return HEDDLE_OK;
      after = timed ? ticks() : 0;  // the observer's time is no step's
    }
    before = after;
  }
  return HEDDLE_OK;
}

}  // namespace

Scheduler::Scheduler(const StepGraph& graph, Executor* executor, const SchedulerOptions& options, Scheduler* outer)
    : graph_(graph), options_(options), outer_(outer), threads_(thread_count(executor, options, outer)) {
  if (threads_ == 1 && options.shuffle_seed == 0 && !has_steps(graph, step_async | step_awaited | step_suspends)) return;
  ns_per_tick();
  if (has_steps(graph, step_async)) awaited_ = std::make_unique<AwaitedStep>();
  engine_ = std::make_shared<ParallelEngine>(graph, threads_ > 1 && !outer ? executor : nullptr, threads_, options.shuffle_seed);
  if (outer) engine_->set_outer(outer->engine_.get());
  hosts_ = threads_ > 1 && has_steps(graph, step_hosts);
  const bool learns = options.mode == ScheduleMode::automatic || options.measure;
  if (threads_ > 1 && options.shuffle_seed == 0 && learns) run_mode_ = std::make_unique<RunMode>(engine_->table(), graph.cost_ns, threads_);
}
Scheduler::~Scheduler() = default;

ParallelEngine* Scheduler::outer_engine() const noexcept {
  return outer_ ? outer_->engine_.get() : nullptr;
}

uint32_t Scheduler::worker_of_outer() const noexcept {
  return outer_engine() ? worker_index(outer_engine()) : no_worker;
}

void Scheduler::run(const Step* steps, RunControl& control) noexcept {
  const uint32_t host = worker_of_outer();
  const WorkerScope scope(0, standing_for());
  observed_ = control.observe != nullptr;
  const RunMode::Choice choice = engine_ && !observed_ ? choose(steps) : RunMode::Choice();
  const uint64_t begin = choice.timed ? ticks() : 0;
  float* const cost_ns = choice.measure ? run_mode_->measured_ns() : nullptr;
  last_parallel_ = choice.parallel;
  if (choice.parallel) {
    const Hosting hosting(outer_engine(), host, *engine_);
    last_complete_ = engine_->run(steps, control, cost_ns);
    last_given_up_ = engine_->given_up();
  } else {
    SerialExtras extras = {control, cost_ns, awaited_.get(), control.deadline_ticks};
    const SerialLoop loop = !extras.none() ? checked_loop : graph_.finish.empty() ? plain_loop<false> : plain_loop<true>;
    uint32_t s = 0;
    heddle_status status = HEDDLE_OK;
    try {
      status = loop(graph_, steps, s, graph_.tail_begin, control.stop, extras);
      if (s < graph_.count && s == graph_.tail_begin && update_phase_begins(control)) {
        // From here on neither cancellation nor deadline stops the updates of variables.
        extras.deadline_ticks = 0;
        extras.tail = true;
        std::atomic<uint32_t> tail_stop{0};
        status = loop(graph_, steps, s, graph_.count, tail_stop, extras);
      }
    } catch (...) {
      status = say_threw(steps[s].context);
    }
    if (status != HEDDLE_OK) {
      if (control.failed) control.failed(control.user, s, status);
      request_stop(control.stop, stop_failed);
    }
    last_complete_ = s == graph_.count;
    last_given_up_ = extras.given_up;
  }
  if (choice.timed && last_complete_) learn(choice, steps, ticks_to_ns(ticks() - begin));
}

bool Scheduler::start(const Step* steps, RunControl& control, const RunLeave& leave) noexcept {
  if (!engine_ || !engine_->table().has_asynchronous()) {
    run(steps, control);
    return true;
  }
  const uint32_t host = worker_of_outer();
  const WorkerScope scope(0, standing_for());
  prepare(steps);
  last_parallel_ = true;
  const Hosting hosting(outer_engine(), host, *engine_);
  observed_ = false;
  return engine_->start(steps, control, nullptr, leave) && note_end();
}

bool Scheduler::resume() noexcept {
  const uint32_t host = worker_of_outer();
  const WorkerScope scope(0, standing_for());
  const Hosting hosting(outer_engine(), host, *engine_);
  return engine_->resume() && note_end();
}

bool Scheduler::note_end() noexcept {
  last_complete_ = engine_->complete();
  last_given_up_ = engine_->given_up();
  return true;
}

// Costs are learned in mode parallel too: they decide what is offered and in which order.
RunMode::Choice Scheduler::choose(const Step* steps) noexcept {
  prepare(steps);
  RunMode::Choice choice;
  choice.parallel = true;
  if (!run_mode_) return choice;
  choice = run_mode_->next();
  // Asynchronous steps need the engine, which then runs them on one thread or several.
  // Steps that host other runs need it too: those find helpers here.
  if (options_.mode == ScheduleMode::parallel || hosts_ || engine_->table().has_asynchronous()) choice.parallel = true;
  return choice;
}

// If there is no memory for the simulation, the choice is kept.
void Scheduler::learn(const RunMode::Choice& choice, const Step* steps, double duration_ns) noexcept {
  without_exceptions([&] {
    if (run_mode_->ran(choice, duration_ns)) engine_->set_costs(steps, run_mode_->cost_ns().data());
  });
}

void Scheduler::prepare_engine(const Step* steps) {
  const std::vector<float> unknown(graph_.count, 0.0F);
  const bool declared = options_.shuffle_seed == 0 && graph_.cost_ns.size() == graph_.count;
  engine_->set_costs(steps, declared ? graph_.cost_ns.data() : unknown.data());
  if (run_mode_) run_mode_->set_tiles(steps);
  prepared_ = true;
}

}  // namespace heddle

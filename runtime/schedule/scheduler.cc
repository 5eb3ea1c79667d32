#include "schedule/scheduler.h"

#include <algorithm>

#include "base/exceptions.h"
#include "base/threads/clock.h"
#include "heddle/limits.h"
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

}  // namespace

Scheduler::Scheduler(const StepGraph& graph, Executor* executor, const SchedulerOptions& options, Scheduler* outer)
    : graph_(graph), options_(options), outer_(outer), serial_(graph), threads_(thread_count(executor, options, outer)) {
  if (threads_ == 1 && options.shuffle_seed == 0 && !has_steps(graph, step_async | step_awaited | step_suspends)) return;
  ns_per_tick();
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
  observed_ = control.seen != nullptr;
  const RunMode::Choice choice = engine_ && !observed_ ? choose(steps) : RunMode::Choice();
  const uint64_t begin = choice.timed ? ticks() : 0;
  float* const cost_ns = choice.measure ? run_mode_->measured_ns() : nullptr;
  last_parallel_ = choice.parallel;
  if (choice.parallel) {
    const Hosting hosting(outer_engine(), host, *engine_);
    last_complete_ = engine_->run(steps, control, cost_ns);
    last_given_up_ = engine_->given_up();
  } else {
    const SerialRun::End end = serial_.run(steps, control, cost_ns);
    last_complete_ = end.complete;
    last_given_up_ = end.given_up;
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

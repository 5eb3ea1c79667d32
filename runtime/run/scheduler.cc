#include "run/scheduler.h"

#include <algorithm>

#include "base/clock.h"
#include "run/serial_loop.h"
#include "run/step_call.h"
#include "run/worker.h"

namespace heddle {
namespace {

uint32_t thread_count(Executor* executor, const SchedulerOptions& options) {
  constexpr uint32_t most_threads = 64;
  if (!executor || options.mode == ScheduleMode::serial) return 1;
  const auto available = static_cast<uint32_t>(std::max(1, executor->concurrency()));
  const uint32_t wanted = options.max_threads == 0 ? available : options.max_threads;
  return std::min({available, wanted, most_threads});
}

bool has_asynchronous_steps(const StepGraph& graph) {
  return std::any_of(graph.flags.begin(), graph.flags.end(), [](uint8_t flags) { return (flags & step_async) != 0; });
}

}  // namespace

Scheduler::Scheduler(const StepGraph& graph, Executor* executor, const SchedulerOptions& options)
    : graph_(graph), options_(options), threads_(thread_count(executor, options)) {
  if (threads_ == 1 && options.shuffle_seed == 0 && !has_asynchronous_steps(graph)) return;
  ns_per_tick();
  engine_ = std::make_shared<ParallelEngine>(graph, threads_ > 1 ? executor : nullptr, threads_, options.shuffle_seed);
  const bool learns = options.mode == ScheduleMode::automatic || options.measure;
  if (threads_ > 1 && options.shuffle_seed == 0 && learns) run_mode_ = std::make_unique<RunMode>(engine_->table(), graph.cost_ns, threads_);
}
Scheduler::~Scheduler() = default;

void Scheduler::run(const Step* steps, RunControl& control) noexcept {
  const WorkerScope scope(0);
  if (!engine_) {
    run_alone(steps, control, nullptr);
    return;
  }
  if (!prepared_) [[unlikely]]
    prepare_engine(steps);
  if (!run_mode_) {
    run_together(steps, control, nullptr);
    return;
  }
  const RunMode::Choice choice = choose();
  const uint64_t begin = choice.timed ? ticks() : 0;
  float* const cost_ns = choice.measure ? run_mode_->measured_ns() : nullptr;
  if (choice.parallel)
    run_together(steps, control, cost_ns);
  else
    run_alone(steps, control, cost_ns);
  if (choice.timed && last_complete_) learn(choice, steps, ticks_to_ns(ticks() - begin));
}

// In mode parallel costs are learned all the same: they decide what is offered and in which order.
RunMode::Choice Scheduler::choose() noexcept {
  RunMode::Choice choice = run_mode_->next();
  // Asynchronous steps need the engine, which then runs them on one thread or several.
  if (options_.mode == ScheduleMode::parallel || engine_->table().has_asynchronous()) choice.parallel = true;
  return choice;
}

void Scheduler::learn(const RunMode::Choice& choice, const Step* steps, double duration_ns) {
  if (run_mode_->ran(choice, duration_ns)) engine_->set_costs(steps, run_mode_->cost_ns().data());
}

void Scheduler::prepare_engine(const Step* steps) {
  prepared_ = true;
  const std::vector<float> unknown(graph_.count, 0.0F);
  const bool declared = options_.shuffle_seed == 0 && graph_.cost_ns.size() == graph_.count;
  engine_->set_costs(steps, declared ? graph_.cost_ns.data() : unknown.data());
  if (run_mode_) run_mode_->set_tiles(steps);
}

void Scheduler::run_alone(const Step* steps, RunControl& control, float* cost_ns) noexcept {
  last_parallel_ = false;
  const SerialExtras extras = {cost_ns, control.profile, control.deadline_ticks};
  last_complete_ = run_serially(graph_, steps, 0, graph_.tail_begin, control, control.stop, extras) == graph_.tail_begin;
  if (!last_complete_ || graph_.tail_begin == graph_.count) return;
  // The tail: from here on neither cancellation nor deadline stops the updates of variables.
  if (control.deadline_ticks != 0 && ticks() >= control.deadline_ticks) request_stop(control.stop, stop_deadline);
  last_complete_ = control.stop.load(std::memory_order_relaxed) == 0;
  if (!last_complete_) return;
  std::atomic<uint32_t> tail_stop{0};
  const uint32_t tail = graph_.count - graph_.tail_begin;
  last_complete_ = run_serially(graph_, steps, graph_.tail_begin, graph_.count, control, tail_stop, {cost_ns, control.profile, 0}) == tail;
  if (!last_complete_) request_stop(control.stop, stop_failed);
}

void Scheduler::run_together(const Step* steps, RunControl& control, float* cost_ns) noexcept {
  last_parallel_ = true;
  last_complete_ = engine_->run(steps, control, cost_ns);
}

}  // namespace heddle

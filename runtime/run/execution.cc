#include "run/execution.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "run/device_run.h"
#include "run/late_step.h"
#include "schedule/step_call.h"

namespace heddle {
namespace {

// One run of a context at a time.
class RunningMark {
 public:
  explicit RunningMark(std::atomic<bool>& running) : running_(running), first_(!running.exchange(true, std::memory_order_acquire)) {}
  ~RunningMark() {
    if (first_) running_.store(false, std::memory_order_release);
  }
  RunningMark(const RunningMark&) = delete;
  RunningMark& operator=(const RunningMark&) = delete;
  bool first() const { return first_; }

 private:
  std::atomic<bool>& running_;
  const bool first_;
};

}  // namespace

int64_t Execution::unplanned_bytes() const {
  int64_t total = 0;
  for (const auto& late : late_)
    if (late) total += late->unplanned_bytes();
  return total;
}

int64_t Execution::allocated_bytes(uint8_t device) const {
  if (device != 0) return own_ ? own_->bytes_on(*plan_->devices[device - 1u].device) : 0;
  int64_t total = (own_ ? own_->host_bytes() : 0) + unplanned_bytes();
  for (const auto& subnets : nested_)
    for (const auto& nested : subnets) total += nested->allocated_bytes();
  return total;
}

// ---------------------------------------------------------------- running

void Execution::begin(const RunSettings& settings, uint64_t deadline) {
  control_.stop.store(0, std::memory_order_relaxed);
  subnet_runs_.store(0, std::memory_order_relaxed);
  if (settings.cancelled) {
    // Who cancels sets the flag and then the stop word, with one total order of all four accesses: at least one of the two is seen. (No
    // fence: ThreadSanitizer knows none.)
    control_.stop.store(0, std::memory_order_seq_cst);
    if (settings.cancelled->load(std::memory_order_seq_cst)) request_stop(control_.stop, stop_cancelled);
  }
  control_.deadline_ticks = deadline;
  control_.holds = Turns::held_here();
  control_.profile = settings.profile;
  info_.seed = settings.seed;
  observed_ = 0;
  left_behind_ = false;
  for (auto& of_step : trips_)
    for (Trips& trips : of_step) trips.count = 0;
  if (devices_) devices_->begin(settings.seen != nullptr, told_to_end_by, this);
  info_.step = settings.step;
  if (plan_->step_counter >= 0) std::memcpy(&info_.step, variables_->data(static_cast<size_t>(plan_->step_counter)), sizeof(info_.step));
  failures_.clear();
}

void Execution::mark_torn() {
  for (const PlanStep& step : plan_->steps)
    for (const Operand& out : step.outputs)
      if (step.updates_variable && out.value.valid() && plan_->values[out.value.index].placement.kind == Placement::Kind::variable)
        variables_->mark_torn(plan_->values[out.value.index].placement.index);
}

// An extent is what a kernel wrote: it must lie within the bound before anybody believes it.
Status Execution::check_extents() const {
  for (const PlanValue& value : plan_->values) {
    if (value.extent_slot < 0) continue;
    const int64_t extent = extents_[static_cast<size_t>(value.extent_slot)], bound = value.type.shape[value.type.bounded_axis];
    if (extent >= 0 && extent <= bound) continue;
    Status bad(Code::kernel_failed,
               "wrote extent " + std::to_string(extent) + ", the bound is " + std::to_string(bound) + ", for " + quoted(value.name),
               "mend the kernel");
    for (const PlanStep& step : plan_->steps)
      for (const Operand& out : step.outputs)
        if (out.value.valid() && &plan_->values[out.value.index] == &value)
          return std::move(bad).at(step.name, display_name(step.domain, step.type)).in_net(plan_->net_name);
    return bad;
  }
  return {};
}

// Whether the updates of variables had begun when the run ended before its end.
bool Execution::updates_begun() const {
  const uint32_t tail = plan_->graph.tail_begin;
  const bool early = tail == plan_->graph.count;
  return early || observed_ > tail || (unanswered() && scheduler_->last_run_reached_tail()) || failures_.reported_from(tail);
}

// Copies outputs out, or says why the run did not get there. A cancellation may come too late: then everything has been done.
Status Execution::end(bool complete, Status stopped) {
  if (complete && stopped.ok() && plan_->extent_slots > 0) stopped = check_extents();
  if (complete && stopped.ok()) [[likely]] {
    if (copies_) copy_outputs();
    return {};
  }
  if (devices_) note_device_failures();
  if (!complete && plan_->has_variable_updates && updates_begun()) mark_torn();
  if (unanswered() && plan_->has_variable_updates) variables_->block(unanswered());
  Status status = stopped.ok() ? failures_.error(control_.stop.load(std::memory_order_relaxed)) : std::move(stopped);
  return unanswered() ? std::move(status).during(unanswered()->message()) : status;
}

// The plain loop, with somebody looking on. What it does is the judge of the scheduler.
Status Execution::run_observed(const std::function<Status(uint32_t)>& seen) {
  for (; observed_ < steps_.size(); ++observed_) {
    const uint32_t i = observed_;
    // The updates of variables are all made or none.
    if (i <= plan_->graph.tail_begin && told_to_end()) return {};
    const uint64_t before = ticks();
    heddle_status status = call_run(steps_[i], 0, steps_[i].tiles);
    if (status == HEDDLE_OK) status = call_finish(plan_->graph, steps_[i], i);
    if (control_.profile) control_.profile[i] = {before, ticks(), 1};
    if (status != HEDDLE_OK) {
      step_failed(this, i, status);
      request_stop(control_.stop, stop_failed);
      return {};
    }
    HEDDLE_CHECK(seen(i));
  }
  return {};
}

// Whether the caller wants the run to end: its deadline has passed, or it was cancelled.
bool Execution::told_to_end() {
  if (control_.deadline_ticks != 0 && ticks() >= control_.deadline_ticks) request_stop(control_.stop, stop_deadline);
  return control_.stop.load(std::memory_order_relaxed) != 0;
}

Status Execution::run(const RunSettings& settings) {
  const RunningMark mark(running_);
  if (!mark.first()) return {Code::busy, "this context is running already", "use a context per thread, or wait"};
  if (devices_) HEDDLE_CHECK(answered());
  HEDDLE_CHECK(admit());
  const uint64_t deadline = settings.deadline();
  Turns::Hold turn;
  if (variables_ && variables_->size() > 0) {
    const Turns::Use use = plan_->has_variable_updates ? Turns::Use::alone : Turns::Use::shared;
    const Interruption until(deadline, settings.cancelled);
    HEDDLE_CHECK(variables_->enter(turn, use, until));
    HEDDLE_CHECK(variables_->whole());
    if (variables_->has_homes()) [[unlikely]]
      HEDDLE_CHECK(freshen_variables(until));
  }
  begin(settings, deadline);
  Status stopped;
  bool complete = false;
  if (settings.seen) [[unlikely]] {
    stopped = run_observed(*settings.seen);
    complete = observed_ == steps_.size();
  } else {
    scheduler_->run(steps_.data(), control_);
    complete = scheduler_->last_run_complete();
  }
  // Updates that were made stay made; results that came too late are none.
  if (complete && !plan_->has_variable_updates && told_to_end()) complete = false;
  return end(complete, std::move(stopped));
}

}  // namespace heddle

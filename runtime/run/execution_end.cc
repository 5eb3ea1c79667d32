// How a run of an execution ends: its results are copied out, or it is found why it has failed and what it has left outstanding.
#include <fmt/format.h>

#include <cstring>
#include <thread>
#include <utility>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "run/execution.h"
#include "schedule/run_stop.h"

namespace heddle {

// True if updates may have been made when the run ended early. Once the first commit of a phase that joins on devices has let them go, any
// step after it that fails or is aborted leaves some of them undone.
bool Execution::updates_begun() const {
  const uint32_t tail = plan_->graph.tail_begin;
  if (tail == plan_->graph.count) return true;  // updates are made among the other steps
  const uint32_t first = tail + (plan_->joins_tail ? 1 : 0);
  return updating() && (has_left_work() || gave_up() || failures_.reported_from(first) || (aborted_at_ && *aborted_at_ >= first));
}

// True if asynchronous steps of the run did not complete in the time that they had.
bool Execution::gave_up() const {
  return pending_.any() && scheduler_.last_run_given_up();
}

// Copies outputs out, or returns why the run did not complete. If a cancellation came too late, the run is complete.
Status Execution::end(bool complete, Status stopped) {
  try {
    if (complete && stopped.ok() && devices_) complete = check_faults(plan_->graph.count) && !was_held();
    if (complete && stopped.ok() && plan_->extent_slots > 0) stopped = views_.check_extents();
    if (complete && stopped.ok()) [[likely]]
      return copy_outputs();
  } catch (...) {
    stopped = status_of_exception();
  }
  settle(complete);
  try {
    return why(std::move(stopped));
  } catch (...) {
    return status_of_exception();
  }
}

// Cleans up after a run that did not complete: notes failures and outstanding work, marks torn variables. Works without memory too: steps
// and streams that there is no memory to note are waited for.
void Execution::settle(bool complete) noexcept {
  const auto note_steps = [&] { return without_exceptions([&] { pending_.note_unanswered(left_); }); };
  while (gave_up() && !note_steps()) std::this_thread::yield();
  if (devices_) {
    without_exceptions([&] { note_device_failures(); });
    note_streams();
    if (gave_up()) note_steps();  // of several the steps are the ones that are told of
  }
  // Late completions are absorbed, so that the next run begins with none.
  if (devices_ || gave_up())
    while (!has_left_work() && !scheduler_.answered()) std::this_thread::yield();
  if (!complete && plan_->has_variable_updates && updates_begun()) variables_.mark_torn();
}

// Waits for streams with outstanding work that drain() had no memory to register.
void Execution::note_streams() noexcept {
  while (!devices_->answers().noted()) without_exceptions([&] { devices_->answers().drain(answer_after_stop_ns, left_); });
}

// Returns true if the run was requested to stop before a commit: its updates were not made.
bool Execution::was_held() const {
  return plan_->joins_tail && devices_->streams().commit_words().outcome != 0;
}

// Reads what the devices have reported before step `end`. Returns false if an index was out of range.
bool Execution::check_faults(uint32_t end) noexcept {
  if (outer_devices_) return true;  // the outer run reads it
  const DeviceStreams& streams = devices_->streams();
  bool clear = true;
  for (uint32_t i = 0; i < end; ++i) {
    const DeviceWork* const work = plan_->steps[i].on_device.get();
    if (!work || work->kind != DeviceWork::Kind::faults) continue;
    heddle_fault fault = {};
    std::memcpy(&fault, streams.reported(work->device), sizeof(fault));
    clear = clear && fault.mark == 0;
    if (fault.mark != 0) note_fault(fault);
  }
  if (clear && end == plan_->graph.count) devices_->streams().faults_were_clear();
  return clear;
}

// Without memory for the text the failure has none.
void Execution::note_fault(const heddle_fault& fault) noexcept {
  std::optional<DeviceStreams::Origin> origin;
  std::string text;
  without_exceptions([&] {
    origin = devices_->streams().origin_of(fault.mark - 1);
    text = fmt::format("index {} is outside [{}, {}]", fault.index, fault.lower, fault.upper);
    if (origin) text += origin->inside;
  });
  failures_.report(origin ? origin->step : 0, HEDDLE_ERROR_INVALID, text);
  request_stop(scope_.control().stop, stop_failed);
}

bool Execution::outer_stop_requested() {
  return scope_.is_subnet() && scope_.outer_should_stop();
}

// A call of stop() that began before this run, and ended during it, has told steps of this one to end, although it did not stop the run.
bool Execution::told_from_outside() {
  return outer_stop_requested() || stops_begun_ != stops_before_;
}

Status Execution::why(Status stopped) {
  Status status = stopped.ok() ? failures_.error(scope_.stop_reason(), told_from_outside()) : std::move(stopped);
  const bool told = scope_.stop_reason() == stop_deadline || scope_.stop_reason() == stop_cancelled;
  if (devices_ && told && aborted_at_ && !has_left_work()) {
    const PlanStep& at = plan_->steps[*aborted_at_];
    status = std::move(status).during(fmt::format("while {} was at {}", plan_->device_of(at), quoted(at.name)));
  }
  const auto left = unanswered();
  return left ? std::move(status).during(left->message()) : status;
}

// ---------------------------------------------------------------- devices

// Afterwards nothing is in flight, or the execution has outstanding work. A failed fence only means that something before it failed: the
// actual failure is reported in its place.
void Execution::note_device_failures() {
  const uint32_t stop = scope_.stop_reason();
  const bool impatient = stop == stop_deadline || stop == stop_cancelled;
  const double ns = scheduler_.last_run_given_up() ? 0 : impatient ? answer_after_stop_ns : answer_after_failure_ns;
  const std::vector<StreamAnswers::Failure> failures = devices_->answers().drain(ns, left_);
  while (!has_left_work() && !scheduler_.answered()) std::this_thread::yield();
  failure_outside_.reset();
  aborted_at_.reset();
  std::string abort_text;
  for (const StreamAnswers::Failure& found : failures) {
    if (found.of_the_outer) {
      failure_outside_ = found;
      continue;
    }
    failures_.forget_fences(plan_->steps[found.step].on_device->device);
    // An aborted step ended because the run did.
    if (found.status == HEDDLE_ERROR_CANCELLED)
      note_abort(found.step), abort_text = found.text;
    else
      failures_.report(found.step, found.status, found.text);
  }
  // Nothing requested the step to stop: its kernel reports a cancellation by mistake.
  if (aborted_at_ && !impatient && !failures_.reported_from(0) && !failure_outside_ && !told_from_outside())
    failures_.report(*aborted_at_, HEDDLE_ERROR_CANCELLED, abort_text);
}

// If several steps were aborted, the last in the plan tells whether updates were under way. A step with a communicator that had to be
// aborted is the one that waited in it.
void Execution::note_abort(uint32_t step) {
  aborted_at_ = std::max(aborted_at_.value_or(step), step);
  if (plan_->steps[step].uses_communicator()) failures_.move_suspicion(step);
}

bool Execution::look_for_answers() noexcept {
  bool all = false;
  return without_exceptions([&] { all = answered().ok(); }) && all;
}

Status Execution::answered() {
  if (!left_work()) return {};
  HEDDLE_CHECK(drained());
  state_.on_alone(RunRules::Event::answer);
  return {};
}

// Drains what has completed of the work of the last run. The failures that drain() returns here are dropped: the run has been reported.
Status Execution::drained() {
  do {  // again, if the last of it completes between the look and the question
    subnets_.look();
    if (devices_) devices_->answers().drain(0, left_);
    if (pending_.left_work()) pending_.note_unanswered(left_);
    HEDDLE_CHECK(left_.busy());
  } while (has_left_work());
  while (!scheduler_.answered()) std::this_thread::yield();  // other threads of the run absorb the completions
  if (resources_->uses_communicators()) resources_->release_communicators();
  return {};
}

}  // namespace heddle

#include "run/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "base/element.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "run/device/entered_device.h"
#include "schedule/run_stop.h"

namespace heddle {
namespace {

SchedulerOptions scheduling(const Plan& plan, const ExecutionOptions& options) {
  SchedulerOptions made = options.scheduler;
  made.max_threads = std::min<uint32_t>(plan.max_threads, static_cast<uint32_t>(std::max(1, options.max_threads)));
  return made;
}

std::shared_ptr<OutstandingWork> list_of(const ExecutionOptions& options) {
  if (options.outstanding) return options.outstanding;
  return options.outer_left ? options.outer_left->list() : std::make_shared<OutstandingWork>();
}

}  // namespace

// ---------------------------------------------------------------- made and moved

Result<std::unique_ptr<Execution>> Execution::create(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables,
                                                     const ExecutionOptions& options) {
  std::unique_ptr<DeviceRun> devices;
  if (!plan->devices.empty()) {
    HEDDLE_TRY(devices, DeviceRun::create(*plan));
    HEDDLE_CHECK(make_homes(*plan, variables.get()));
  }
  auto made = options.outer_devices
                  ? ContextMemory::create_inside(*plan, *options.workspace, static_cast<std::byte*>(options.transient), options.device_part)
                  : ContextMemory::create(*plan, options.workspace, options.transient, options.transient_bytes);
  HEDDLE_TRY(ContextMemory memory, std::move(made));
  if (devices && options.outer_devices)
    devices->streams().follow(options.outer_devices->streams(), options.outer_step, options.subnet, memory);
  else if (devices)
    devices->streams().follow(memory.workspace(), memory);
  auto resources = std::make_unique<StepResources>(*plan, options.outer_resources, options.communicators);
  HEDDLE_CHECK(resources->create(devices.get(), memory.workspace()));
  std::unique_ptr<Execution> self(
      new Execution(std::move(plan), std::move(variables), std::move(memory), std::move(resources), std::move(devices), options));
  HEDDLE_CHECK(self->subnets_.create_planned());
  return self;
}

Execution::Execution(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables, ContextMemory memory,
                     std::unique_ptr<StepResources> resources, std::unique_ptr<DeviceRun> devices, const ExecutionOptions& options)
    : Kept(new_busy_name()),
      plan_(std::move(plan)),
      variables_(*plan_, std::move(variables)),
      scope_(plan_->graph, options.outer, options.outer_step),
      failures_(*plan_),
      memory_(std::move(memory)),
      left_(list_of(options), name(), memory_, variables_.busy_name(), options.outer_left),
      views_(*plan_, memory_, variables_.store()),
      bindings_(*plan_, memory_, views_),
      scheduler_(plan_->graph, scheduling(*plan_, options).max_threads > 1 ? options.executor : nullptr, scheduling(*plan_, options),
                 options.outer_scheduler),
      subnets_(*plan_, memory_, scope_, failures_, scheduler_, *resources, devices.get(), left_),
      resources_(std::move(resources)),
      pending_(*plan_, step_done, this),
      steps_({*plan_, memory_, scope_, failures_, subnets_, pending_, *resources_, scheduler_, devices.get()}, views_),
      update_indices_(*plan_),
      devices_(std::move(devices)),
      outer_step_(options.outer_step),
      subnet_(options.subnet),
      outer_devices_(options.outer_devices) {
  RunControl& control = scope_.control();
  control.failed = step_failed;
  control.end_soon = may_leave() || devices_ ? end_soon : nullptr;
  control.tail_begins = tail_begins;
  control.updating = plan_->joins_tail ? may_be_updating : nullptr;
  const bool forgetful = devices_ && devices_->answers().must_look();
  const bool steps_may_break = pending_.any() && (resources_->may_break() || plan_->has_late_steps);
  const bool peers_may_break = (pending_.any() || devices_) && resources_->uses_communicators();
  control.look = forgetful || steps_may_break || peers_may_break ? look : nullptr;
  control.outer_stops = scope_.is_subnet() ? outer_stops : nullptr;
  control.user = this;
  for (size_t d = 0; devices_ && d < plan_->devices.size(); ++d)
    if (int64_t* const extents = devices_->streams().extents_on(static_cast<uint8_t>(d + 1)))
      views_.extents_on(static_cast<uint8_t>(d + 1), extents);
}

// Resources of a stream must be destroyed before the stream.
Execution::~Execution() {
  resources_->let_go();
}

Status Execution::moved() {
  if (devices_) {
    if (outer_devices_)
      devices_->streams().follow(outer_devices_->streams(), outer_step_, subnet_, memory_);
    else
      devices_->streams().follow(memory_.workspace(), memory_);
    HEDDLE_CHECK(resources_->follow(devices_.get(), memory_.workspace()));
  }
  views_.move();
  bindings_.move();
  steps_.move();
  return subnets_.move();
}

Status Execution::follow(Workspace& workspace, std::byte* transient, std::byte* device_part) {
  memory_.move_inside(workspace, transient, device_part);
  return moved();
}

int64_t Execution::allocated_bytes(uint8_t device) const {
  const int64_t own = memory_.own_bytes(device);
  return own + steps_.unplanned_bytes(device) + (device == 0 ? subnets_.allocated_bytes() : 0);
}

Result<void*> Execution::on_host(ValueId value, std::vector<std::byte>& staging) const {
  const MemoryPlace& at = plan_->values[value.index].place;
  const heddle_tensor& here = view(value);
  if (at.device == 0 || !here.data) return here.data;
  staging.resize(here.byte_size);
  HEDDLE_CHECK(plan_->devices[at.device - 1u].device->read(staging.data(), here.data, static_cast<int64_t>(here.byte_size)));
  return static_cast<void*>(staging.data());
}

// ---------------------------------------------------------------- running

// Signals asynchronous steps under way, runs of subnets that may leave their thread, and devices to end soon; with `all`, steps of the
// update phase too. `why`: as of abort_communicators().
void Execution::tell(bool all, const Status* why) {
  if (pending_.any()) pending_.abort(all ? plan_->graph.count : plan_->graph.tail_begin);
  abort_communicators(why);
  if (may_leave()) subnets_.tell(all);
  if (devices_ && !outer_devices_) devices_->answers().abort(all);
}

void Execution::stop(bool all) {
  ++stops_begun_;
  scope_.cancel();
  Status cancelled;  // any thread may be here while the next run begins, and forgets the failures of this one
  if (resources_->uses_communicators()) without_exceptions([&] { cancelled = Status(Code::cancelled, "its run was cancelled"); });
  tell(all, &cancelled);
  resources_->wake();
  scheduler_.wake();
  ++stops_ended_;
}

// The run has failed: work under way is signalled to end, except that the other steps of the update phase may still make their updates.
void Execution::step_failed(void* self, uint32_t step, heddle_status status) {
  auto& execution = *static_cast<Execution*>(self);
  execution.failures_.report(step, status);
  request_stop(execution.scope_.control().stop, stop_failed);  // set first: steps that are signalled look at it
  without_exceptions([&] { execution.tell(false); });
}

void Execution::end_soon(void* self, bool all) {
  without_exceptions([&] { static_cast<Execution*>(self)->tell(all); });
}

// Called while only asynchronous steps are left, or a device is waited for: a resource that they use may break without a notice to them.
void Execution::look(void* self) {
  auto& execution = *static_cast<Execution*>(self);
  without_exceptions([&] {  // on failure the next call comes soon
    if (execution.devices_) execution.devices_->answers().look();
    const Status broken = execution.resources_->poll();
    if (broken.ok() || execution.scope_.stop_requested()) return;  // the run ends already, for a reason that is known
    if (execution.blame(broken.diagnostic().message)) request_stop(execution.scope_.control().stop, stop_failed);
  });
}

// Reports `text` as the failure of a step that is under way: an asynchronous one, or the first on a device that uses a communicator. False:
// there is none, and what has broken is of no more use to the run.
bool Execution::blame(const std::string& text) {
  if (pending_.blame(failures_, text)) return true;
  for (uint32_t i = 0; devices_ && i < steps_.size(); ++i) {
    if (!plan_->steps[i].uses_communicator() || !plan_->steps[i].on_device || !devices_->answers().may_be_under_way(i)) continue;
    failures_.report_suspect(i, text);
    return true;
  }
  return false;
}

// [any thread] An asynchronous step has completed.
void Execution::step_done(void* self, uint32_t step, heddle_status status) {
  static_cast<Execution*>(self)->scheduler_.complete(step, status);
}

bool Execution::outer_stops(void* self) {
  return static_cast<Execution*>(self)->scope_.outer_should_stop();
}

bool Execution::tail_begins(void* self) {
  auto& execution = *static_cast<Execution*>(self);
  if (execution.devices_) execution.devices_->answers().end_aborts(false);
  execution.check_update_indices();
  if (execution.devices_ && !execution.plan_->joins_tail) execution.check_faults(execution.plan_->graph.tail_begin);
  if (!execution.plan_->joins_tail && execution.finite_outputs_ != 0) execution.check_finite_outputs();
  if (!heddle::stop_requested(execution.scope_.control())) execution.have_variables_alone();
  if (heddle::stop_requested(execution.scope_.control())) return false;
  // Where the tail joins on devices nothing is known here of the work there.
  if (!execution.plan_->joins_tail && execution.resources_->has_ranks() && !execution.agree()) return false;
  execution.state_.on_alone(RunRules::Event::update);
  return true;
}

// After it has returned true all ranks update their variables: whether the run is to stop is not asked any more.
bool Execution::agree() noexcept {
  Status agreed;
  const bool known = without_exceptions([&] { agreed = resources_->agree(); });
  if (known && agreed.ok()) return true;
  uint32_t step = plan_->graph.tail_begin;  // the last one with a communicator
  while (step > 0 && !plan_->steps[step - 1].uses_communicator()) --step;
  // A run that was asked to stop has left the others by itself.
  const uint32_t stop = scope_.stop_reason();
  const bool asked = stop == stop_cancelled || stop == stop_deadline || told_from_outside();
  const heddle_status status = asked ? HEDDLE_ERROR_CANCELLED : HEDDLE_ERROR_DEVICE;
  if (step > 0) failures_.report(step - 1, status, known ? agreed.diagnostic().message : std::string_view());
  request_stop(scope_.control().stop, stop_failed);
  return false;
}

// If others still read when the run's time is over, it ends without an update.
void Execution::have_variables_alone() noexcept {
  if (!variables_.any()) return;
  Status alone;
  const bool known = without_exceptions([&] { alone = variables_.begin_updates(turn_, until_); });
  // Where a snapshot needs a variable's bytes, they were copied from a device, which the thread has left.
  if (devices_) forget_entered_device();
  if (known && alone.ok()) return;
  request_stop(scope_.control().stop, alone.code() == Code::deadline_exceeded ? stop_deadline : stop_cancelled);
}

// Called when all steps but the updates are done: an output that is not finite ends the run before it updates anything.
void Execution::check_finite_outputs() noexcept {
  for (size_t i = 0; i < std::min<size_t>(plan_->outputs.size(), 64); ++i) {
    if ((finite_outputs_ >> i & 1) == 0) continue;
    const ValueId id = plan_->outputs[i];
    uint32_t step = plan_->graph.count;  // the one that makes it
    for (uint32_t s = 0; s < plan_->graph.tail_begin; ++s)
      for (const Operand& out : plan_->steps[s].outputs)
        if (out.value == id) step = s;
    if (step == plan_->graph.count) continue;  // it is made of variables that are yet to be updated
    const heddle_tensor& value = view(id);
    if (value.space != HEDDLE_SPACE_HOST || !value.data) continue;
    const TensorView number = {static_cast<DType>(value.dtype), Shape(value.dims, value.rank), value.data};
    if (number.shape.element_count() != 1 || !is_float(number.dtype) || std::isfinite(element(number, 0))) continue;
    without_exceptions([&] {
      failures_.note_cause(step, {Code::numerics, fmt::format("its output is {}", element(number, 0)), "no variable was updated"});
    });
    failures_.report(step, HEDDLE_ERROR_INVALID);
    request_stop(scope_.control().stop, stop_failed);
  }
}

bool Execution::may_be_updating(void* self) {
  return static_cast<Execution*>(self)->updating();
}

// Where the update phase joins on devices, it begins there when a commit finds that the run was not requested to stop.
bool Execution::updating() const {
  if (state_.state() != RunState::State::updating) return false;
  return !plan_->joins_tail || std::atomic_ref(devices_->streams().commit_words().outcome).load(std::memory_order_acquire) == 0;
}

// Without memory for the text the update itself reports the error.
void Execution::check_update_indices() noexcept {
  if (!update_indices_.any() || scope_.stop_reason() != 0) return;
  without_exceptions([&] {
    const std::optional<UpdateIndices::Outside> outside = update_indices_.find(steps_);
    if (!outside) return;
    failures_.report(outside->step, HEDDLE_ERROR_INVALID, outside->text);
    request_stop(scope_.control().stop, stop_failed);
  });
}

// Shows the step to the observer. The update phase runs to its end without one that has refused: either all updates of variables are made
// or none.
// A step that is launched by another one is shown after that, with all steps of its group.
bool Execution::observe(void* self, uint32_t step) {
  auto& execution = *static_cast<Execution*>(self);
  if (!execution.refused_.ok()) return false;
  if (const DeviceWork* const work = execution.plan_->steps[step].on_device.get(); work) {
    if (work->launched_by >= 0) return true;
    for (const uint32_t member : work->group)
      if (member != step && !execution.show(member)) return false;
  }
  return execution.show(step);
}

bool Execution::show(uint32_t step) {
  try {
    refused_ = (*observer_)(step);
  } catch (...) {
    refused_ = status_of_exception();
  }
  return refused_.ok();
}

// `failure`: why the run ends, Ok if there was no memory to say it; null: it is found here, by a thread of the run. The other ranks are
// told.
void Execution::abort_communicators(const Status* failure) noexcept {
  if (!resources_->uses_communicators()) return;
  std::string why;
  without_exceptions([&] {
    if (failure && failure->ok()) return;
    const Status ends = failure ? *failure : failures_.error(scope_.stop_reason());
    const Diagnostic& told = ends.diagnostic();
    why = told.node.empty() ? told.message : fmt::format("{}: {}", quoted(told.node), told.message);
  });
  resources_->abort_communicators(why);
}

// Asked by a step that waits for its own work on a device, which may wait for peers.
bool Execution::stop_requested(void* self) {
  auto& execution = *static_cast<Execution*>(self);
  const bool peers = execution.resources_->uses_communicators() && !execution.updating();
  if (peers) look(self);
  const bool stops = execution.scope_.stop_requested();
  if (peers && stops) execution.abort_communicators();
  return stops;
}

Status Execution::admit() {
  HEDDLE_CHECK(bindings_.check_bound());
  if (scope_.is_subnet()) return {};  // the subnet was chosen for these contents, and is bound by the runtime
  HEDDLE_CHECK(bindings_.check_contents());
  return bindings_.check_overlaps();
}

void Execution::begin(const RunSettings& settings, uint64_t deadline) {
  stops_before_ = stops_ended_;
  scope_.begin(settings, deadline, variables_.step_counter(settings.step));
  failures_.clear();
  bindings_.begin_run();
  if (pending_.any()) pending_.begin();
  steps_.begin(scope_.deadline_ticks());
  observer_ = settings.observer;
  finite_outputs_ = settings.finite_outputs;
  refused_ = {};
  scope_.control().observe = settings.observer ? observe : nullptr;
  if (may_leave()) subnets_.begin(!settings.observer);
  if (devices_) devices_->begin(settings.observer != nullptr, stop_requested, this);
  state_.on_alone(RunRules::Event::begin);
}

Status Execution::enter_variables() {
  Status entered;
  try {
    entered = variables_.enter(turn_, until_);
  } catch (...) {
    entered = status_of_exception();
  }
  if (entered.ok() && plan_->has_variable_updates && plan_->graph.tail_begin == plan_->graph.count && resources_->has_ranks())
    entered =
        Status(Code::invalid_argument,
               "the net updates variables before the run can no longer fail, and works with other ranks, which would update theirs or not",
               "let the session commit late (SessionOptions::commit_late)");
  if (!entered.ok()) abort_communicators(&entered);
  return entered;
}

// A run that fails here has taken no step, but its peers may have.
Status Execution::enter_communicators(const Interruption& until) {
  Status entered;
  try {
    entered = resources_->enter(until);
  } catch (...) {
    entered = status_of_exception();
  }
  if (!entered.ok()) abort_communicators(&entered);
  return entered;
}

// Does everything that comes before the first step. If it returns Ok, the caller must call close(), or end the run with an Ending.
Status Execution::open(const RunSettings& settings) {
  if (!state_.try_on(RunRules::Event::request)) return {Code::busy, "this context is running already", "use a context per thread, or wait"};
  Ending ending(*this);
  if (state_.state() == RunState::State::looking) {
    HEDDLE_CHECK(drained());
    state_.on_alone(RunRules::Event::answer);
  }
  HEDDLE_CHECK(admit());
  if (devices_) HEDDLE_CHECK(devices_->streams().usable());
  if (!devices_ && !settings.streams.empty()) return DeviceStreams::stream_without_work(settings.streams.front());
  if (resources_->may_break()) HEDDLE_CHECK(resources_->poll());
  scheduler_.prepare(steps_.steps());
  const uint64_t deadline = settings.deadline();
  until_ = Interruption(deadline, settings.cancelled);
  // First communicators: a run that waits for one must not keep another from having the variables alone.
  if (resources_->uses_communicators()) HEDDLE_CHECK(enter_communicators(until_));
  if (variables_.any()) HEDDLE_CHECK(enter_variables());
  begin(settings, deadline);
  if (devices_) {
    Status refused;
    try {
      refused = devices_->streams().clear_faults();
      if (refused.ok()) refused = devices_->worker().wait_for_callers(settings.streams);
      if (refused.ok()) refused = devices_->worker().send_state(scope_.state(), variables_);
    } catch (...) {  // enqueued work is waited for in this case too
      refused = status_of_exception();
    }
    if (!refused.ok()) {
      abort_communicators(&refused);
      devices_->answers().end_aborts(true);
      without_exceptions([&] { devices_->answers().drain(answer_after_failure_ns, left_); });
      note_streams();
      const auto left = unanswered();
      return left ? std::move(refused).during(left->message()) : refused;
    }
  }
  ending.release();
  return {};
}

Status Execution::close(bool complete) {
  const Ending ending(*this);
  const bool aborted = devices_ && devices_->answers().end_aborts(true);
  // Updates that were made are kept; results that came too late are discarded.
  if (complete && !plan_->has_variable_updates && scope_.stop_requested()) complete = false;
  const bool ends_early = !complete || !refused_.ok();
  if (ends_early) abort_communicators(refused_.ok() ? nullptr : &refused_);
  Status status = end(complete, std::move(refused_));
  if (!ends_early && !status.ok()) abort_communicators(&status);  // only now it is found why
  if (aborted && complete) {                                      // the abort came when all steps were done
    without_exceptions([&] { devices_->answers().drain(answer_after_failure_ns, left_); });
    note_streams();
  }
  return status;
}

Status Execution::run(const RunSettings& settings) {
  HEDDLE_CHECK(open(settings));
  scheduler_.run(steps_.steps(), scope_.control());
  return close(scheduler_.last_run_complete());
}

Status Execution::enqueue(const RunSettings& settings) {
  HEDDLE_CHECK(open(settings));
  const Ending ending(*this);
  const WorkerScope alone = scheduler_.alone();
  Status status;
  for (uint32_t i = 0; i < steps_.size() && status.ok(); ++i) {
    if (plan_->steps[i].on_device->kind == DeviceWork::Kind::fence) continue;
    const heddle_status failed = devices_->worker().enqueue(i, &steps_.abi(i), devices_->worker().planned_kernel(i), false);
    if (failed != HEDDLE_OK) failures_.report(i, failed), status = failures_.error(stop_failed, outer_stop_requested());
  }
  return status.ok() ? copy_outputs() : status;
}

Status Execution::copy_outputs() {
  return bindings_.copy_outputs([this](uint8_t device, void* to, const void* from, int64_t bytes) {
    if (plan_->only_enqueues && outer_devices_) return devices_->worker().copy_after(device, to, from, bytes);
    return plan_->devices[device - 1u].device->copy_within(to, from, bytes);
  });
}

bool Execution::start(const RunSettings& settings, const RunLeave& leave, Status* status) {
  // A run that has a turn keeps its thread: otherwise the threads that wait for the turn could be all those that it needs to continue.
  // The run of a subnet leaves its thread even if the outer run keeps its own.
  const bool takes_turns = variables_.any() || (!scope_.is_subnet() && (resources_->uses_communicators() || FairSharedMutex::held_here()));
  if (settings.observer || !may_leave() || takes_turns) {
    *status = run(settings);
    return true;
  }
  *status = open(settings);
  if (!status->ok()) return true;
  if (!scheduler_.start(steps_.steps(), scope_.control(), leave)) return false;
  *status = close(scheduler_.last_run_complete());
  return true;
}

bool Execution::resume(Status* status) {
  const FairSharedMutex::Helping holds(scope_.control().holds);
  if (!scheduler_.resume()) return false;
  *status = close(scheduler_.last_run_complete());
  return true;
}

}  // namespace heddle

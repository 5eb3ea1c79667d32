// An execution whose plan has steps on devices: what it has there, and what becomes of failures that come to light later.
#include <thread>

#include "run/device_run.h"
#include "run/execution.h"

namespace heddle {

Status Execution::reach_devices() {
  if (plan_->devices.empty()) return {};
  HEDDLE_TRY(devices_, DeviceRun::create(*plan_));
  for (const PlanValue& value : plan_->values)
    if (value.placement.kind == Placement::Kind::variable && value.placement.device != 0)
      HEDDLE_CHECK(variables_->make_home(value.placement.index, plan_->devices[value.placement.device - 1u].device));
  return {};
}

void Execution::find_variables() {
  if (!variables_) return;
  const auto use = [&](const Operand& operand, bool updated) {
    if (!operand.value.valid()) return;
    const Placement& at = plan_->values[operand.value.index].placement;
    if (at.kind != Placement::Kind::variable) return;
    const Device* device = at.device == 0 ? nullptr : plan_->devices[at.device - 1u].device.get();
    for (VariableUse& known : variable_uses_)
      if (known.variable == at.index) {
        known.updated = known.updated || updated;
        return;
      }
    variable_uses_.push_back({at.index, device, updated});
  };
  for (const PlanStep& step : plan_->steps) {
    for (const Operand& operand : step.inputs) use(operand, false);
    for (const Operand& operand : step.outputs) use(operand, step.updates_variable);
  }
}

// Brings what the run reads to where it reads it. What it updates is older elsewhere from then on, however the run ends.
Status Execution::freshen_variables(const Interruption& until) {
  // begin() reads the step counter on the host, whether or not a step does.
  if (plan_->step_counter >= 0) HEDDLE_CHECK(variables_->freshen(static_cast<size_t>(plan_->step_counter), nullptr, until));
  for (const VariableUse& use : variable_uses_) HEDDLE_CHECK(variables_->freshen(use.variable, use.device, until));
  for (const VariableUse& use : variable_uses_)
    if (use.updated) variables_->written(use.variable, use.device);
  return {};
}

heddle_status Execution::enqueue(const heddle_run_context* context, int64_t, int64_t) {
  const StepContext& c = context_of(context);
  Execution& self = *c.owner;
  const int32_t fence = self.plan_->steps[c.step].on_device->fence;
  // An observed step has waited for its own work.
  if (fence < 0 || self.devices_->observed()) return self.devices_->enqueue(c.step, context);
  const auto awaited = static_cast<uint32_t>(fence);
  self.scheduler_->expect(awaited);
  heddle_status status = self.devices_->enqueue(c.step, context);
  if (status == HEDDLE_OK) status = self.devices_->notify(c.step, context, fence_passed, &self.contexts_[awaited]);
  if (status != HEDDLE_OK) self.scheduler_->unexpect();
  return status;
}

void Execution::fence_passed(void* user, heddle_status failed, const char*) {
  const StepContext& c = *static_cast<StepContext*>(user);
  if (failed == HEDDLE_OK) c.owner->devices_->passed(c.step);
  // From here on the run may be over and the execution gone.
  c.owner->scheduler_->complete(c.step, failed);
}

Result<void*> Execution::on_host(ValueId value, std::vector<std::byte>& staging) const {
  const Placement& at = plan_->values[value.index].placement;
  const heddle_tensor& here = view(value);
  if (at.device == 0 || !here.data) return here.data;
  staging.resize(here.byte_size);
  HEDDLE_CHECK(plan_->devices[at.device - 1u].device->read(staging.data(), here.data, static_cast<int64_t>(here.byte_size)));
  return static_cast<void*>(staging.data());
}

// Nothing is in flight afterwards, or the execution is unanswered. A failed fence only says that something before it failed: what it was
// takes its place.
void Execution::note_device_failures() {
  const uint32_t stop = control_.stop.load(std::memory_order_relaxed);
  const bool impatient = stop == stop_deadline || stop == stop_cancelled;
  const double ns = scheduler_->last_run_given_up() ? 0 : impatient ? answer_after_stop_ns : answer_after_failure_ns;
  const std::vector<DeviceRun::Failure> failures = devices_->drain(ns);
  while (!unanswered() && !scheduler_->answered()) std::this_thread::yield();
  for (const DeviceRun::Failure& found : failures) {
    failures_.forget_fences(plan_->steps[found.step].on_device->device);
    failures_.report(found.step, found.status, found.text);
  }
}

// What the device says by now of a run that has been reported already is nothing new.
Status Execution::answered() {
  if (!unanswered()) return {};
  devices_->drain(0);
  if (unanswered()) return {Code::busy, unanswered()->message(), "use another context, or wait until the device answers"};
  while (!scheduler_->answered()) std::this_thread::yield();  // threads of ours take in what has been answered
  return {};
}

std::shared_ptr<const Unanswered> Execution::unanswered() const {
  return devices_ ? devices_->unanswered() : nullptr;
}

bool Execution::told_to_end_by(void* self) {
  return static_cast<Execution*>(self)->told_to_end();
}

}  // namespace heddle

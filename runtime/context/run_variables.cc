#include "context/run_variables.h"

#include <cstring>
#include <utility>

namespace heddle {

Status make_homes(const Plan& plan, VariableStore* store) {
  for (const PlanValue& value : plan.values)
    if (value.place.kind == MemoryPlace::Kind::variable && value.place.device != 0)
      HEDDLE_CHECK(store->make_home(value.place.index, plan.devices[value.place.device - 1u].device));
  return {};
}

RunVariables::RunVariables(const Plan& plan, std::shared_ptr<VariableStore> store) : plan_(plan), store_(std::move(store)) {
  if (!store_) return;
  counter_on_host_ = plan.step_counter >= 0 && plan.draws_on_host;
  for (const PlanStep& step : plan.steps) {
    for (const Operand& operand : step.inputs) note_use(operand, false);
    for (const Operand& operand : step.outputs) note_use(operand, step.updates_variable);
    if (plan.step_counter >= 0 && step.draws && step.on_device && !step_counter_on(step.on_device->device)) counter_on_host_ = true;
  }
}

// Steps before the update phase may read the device's counter only if it is counted in the update phase alone.
const void* RunVariables::step_counter_on(uint8_t device) const {
  const bool counted_last = !plan_.has_variable_updates || plan_.graph.tail_begin < plan_.graph.count;
  if (plan_.step_counter < 0 || device == 0 || plan_.step_counter_device != device || !counted_last) return nullptr;
  return store_->data_on(static_cast<size_t>(plan_.step_counter), *plan_.devices[device - 1u].device);
}

void RunVariables::note_use(const Operand& operand, bool updated) {
  if (!operand.value.valid()) return;
  const MemoryPlace& at = plan_.values[operand.value.index].place;
  if (at.kind != MemoryPlace::Kind::variable) return;
  for (Use& known : uses_)
    if (known.variable == at.index) {
      known.updated = known.updated || updated;
      return;
    }
  uses_.push_back({at.index, at.device == 0 ? nullptr : plan_.devices[at.device - 1u].device.get(), updated});
}

Status RunVariables::enter(FairSharedMutex::Hold& turn, const Interruption& until) {
  const bool has_phase = plan_.graph.tail_begin < plan_.graph.count;
  const FairSharedMutex::Use use = !plan_.has_variable_updates ? FairSharedMutex::Use::shared
                                   : has_phase                 ? FairSharedMutex::Use::updating
                                                               : FairSharedMutex::Use::alone;
  HEDDLE_CHECK(store_->enter(turn, use, until));
  HEDDLE_CHECK(store_->whole());
  if (store_->has_homes()) HEDDLE_CHECK(freshen(until));
  return use == FairSharedMutex::Use::alone ? note_updates(until) : Status();
}

Status RunVariables::begin_updates(FairSharedMutex::Hold& turn, const Interruption& until) {
  if (!turn.updates()) return {};
  HEDDLE_CHECK(turn_status(turn.upgrade(until), "the session's variables"));
  return note_updates(until);
}

// Other copies of variables that the run updates are stale from now on, however it ends.
Status RunVariables::note_updates(const Interruption& until) {
  for (const Use& use : uses_)
    if (use.updated) HEDDLE_CHECK(store_->before_write(use.variable, until));
  for (const Use& use : uses_) {
    if (!use.updated) continue;
    store_->mark_trained(use.variable);
    if (store_->has_homes()) store_->written(use.variable, use.device);
  }
  return {};
}

// Brings variables up to date where the run reads them.
Status RunVariables::freshen(const Interruption& until) {
  // The step counter is read by the run itself: it is among no step's uses.
  if (counter_on_host_) HEDDLE_CHECK(store_->freshen(static_cast<size_t>(plan_.step_counter), nullptr, until));
  if (plan_.step_counter >= 0 && step_counter_on(plan_.step_counter_device))
    HEDDLE_CHECK(
        store_->freshen(static_cast<size_t>(plan_.step_counter), plan_.devices[plan_.step_counter_device - 1u].device.get(), until));
  for (const Use& use : uses_) HEDDLE_CHECK(store_->freshen(use.variable, use.device, until));
  return {};
}

int64_t RunVariables::read_step_counter() const {
  int64_t step = 0;
  std::memcpy(&step, store_->data(static_cast<size_t>(plan_.step_counter)), sizeof(step));
  return step;
}

void RunVariables::mark_torn() {
  for (const PlanStep& step : plan_.steps)
    for (const Operand& out : step.outputs)
      if (step.updates_variable && out.value.valid() && plan_.values[out.value.index].place.kind == MemoryPlace::Kind::variable)
        store_->mark_torn(plan_.values[out.value.index].place.index);
}

std::optional<BusyName> RunVariables::busy_name() const {
  if (!store_ || !plan_.has_variable_updates) return std::nullopt;
  return store_->busy_name();
}

}  // namespace heddle

#include "run/step_contexts.h"

#include <cassert>

#include "base/threads/clock.h"
#include "run/late/late_step.h"
#include "run/pending_steps.h"
#include "run/step_entries.h"
#include "run/step_resources.h"

namespace heddle {
namespace {

// Fails a step for which there is no way to call it.
heddle_status refuse(const heddle_run_context* context, int64_t, int64_t) {
  const StepContext& c = StepContext::of(*context);
  c.services().failures.note(c.step, HEDDLE_ERROR_INTERNAL, "is of a kind that no step should be");
  return HEDDLE_ERROR_INTERNAL;
}

}  // namespace

StepContexts::StepContexts(const StepServices& services, ValueViews& views) : services_(services) {
  const Plan& plan = services.plan;
  contexts_ = std::vector<StepContext>(plan.steps.size());
  abi_.resize(plan.steps.size());
  steps_.resize(plan.steps.size());
  if (plan.has_late_steps) late_.resize(plan.steps.size());
  heddle_tensor** next = views.operands();
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    StepContext& c = contexts_[i];
    c.all = this;
    c.step = i;
    heddle_run_context& abi = abi_[i];
    abi.struct_size = sizeof(heddle_run_context);
    abi.input_count = static_cast<uint32_t>(step.inputs.size());
    abi.output_count = static_cast<uint32_t>(step.outputs.size());
    abi.random_stream = step.random_stream;
    abi.random_first = step.random_first;
    abi.inputs = next;
    next += step.inputs.size();
    abi.outputs = next;
    next += step.outputs.size();
    abi.state = step.state.get();
    abi.scratch = services.memory.scratch(i);
    if (step.data_scratch_bytes > 0) abi.data_scratch = services.memory.data_scratch(i);
    abi.host = host_table();
    abi.call = &c;
    if (step.on_device) abi.stream = services.devices->streams().stream(*step.on_device);
    const std::span<void* const> resources = services.resources.of(i);
    abi.resources = resources.data();
    abi.resource_count = static_cast<uint32_t>(resources.size());
    if (step.draws) abi.run_state = step.on_device ? services.devices->streams().run_state(*step.on_device) : &services.scope.state();
    if (step.on_device) set_faults(i);
    if (step.late) late_[i] = std::make_unique<LateStep>(c);
    steps_[i] = step_for(i);
    const bool may_wait = (plan.graph.flags[i] & step_async) != 0 || step.uses_communicator();
    if (may_wait || (step.late && !plan.communicators.empty())) timed_.push_back(i);
  }
  find_parts();
  services.pending.give_tokens([](void* self, uint32_t step) -> heddle_call& { return static_cast<StepContexts*>(self)->contexts_[step]; },
                               this);
}

StepContexts::~StepContexts() = default;

void StepContexts::find_parts() {
  const std::vector<PlanStep>& steps = services_.plan.steps;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].on_device || steps[i].on_device->group.empty()) continue;
    parts_.resize(steps.size());
    for (const uint32_t member : steps[i].on_device->group) parts_[i].push_back(&abi_[member]);
  }
}

void StepContexts::set_faults(uint32_t index) {
  const PlanStep& step = services_.plan.steps[index];
  const DeviceStreams& streams = services_.devices->streams();
  const uint32_t device = step.on_device->device;
  if (!streams.block_on(device)) return;
  heddle_run_context& abi = abi_[index];
  if (step.on_device->kind == DeviceWork::Kind::kernel && (step.kernel->kernel->flags & HEDDLE_KERNEL_USES_FAULT) != 0) {
    abi.fault = streams.fault_on(device);
    abi.fault_mark = streams.mark_of(index);
  }
  if (!step.on_device->held) return;
  abi.holds = streams.holds_on(device);
  abi.hold_count = streams.hold_count();
}

Step StepContexts::step_for(uint32_t index) {
  const PlanStep& step = services_.plan.steps[index];
  heddle_run_context* const context = &abi_[index];
  const StepEntry* const entry = find_entry(traits_of(step));
  assert(entry && "a step that impossible_steps() excludes");
  if (!entry) return {refuse, context, 1};
  // A late step finds its kernel when it starts.
  if ((services_.plan.graph.flags[index] & step_async) != 0 && !step.late) services_.pending.set(index, step.kernel->kernel, context);
  const heddle_run_function run = entry->run ? entry->run : step.kernel->kernel->run;
  switch (entry->tiles) {
    case StepEntry::Tiles::one:
      return {run, context, 1};
    case StepEntry::Tiles::planned:
      return {run, context, step.tiles};
    case StepEntry::Tiles::late:
      break;
  }
  return {run, context, late_[index]->tiles()};
}

void StepContexts::set_deadline(uint64_t deadline) {
  const int64_t at = steady_deadline_ns(deadline);
  for (const uint32_t step : timed_) abi_[step].deadline_ns = at;
}

void StepContexts::move() {
  for (uint32_t i = 0; i < abi_.size(); ++i) {
    abi_[i].scratch = services_.memory.scratch(i);
    if (services_.plan.steps[i].data_scratch_bytes > 0) abi_[i].data_scratch = services_.memory.data_scratch(i);
    const DeviceWork* const work = services_.plan.steps[i].on_device.get();
    if (!work) continue;
    abi_[i].stream = services_.devices->streams().stream(*work);
    set_faults(i);
  }
  for (const auto& late : late_)
    if (late) late->move();
}

int64_t StepContexts::unplanned_bytes(uint8_t device) const {
  int64_t total = 0;
  for (const auto& late : late_)
    if (late) total += late->unplanned_bytes(device);
  return total;
}

}  // namespace heddle

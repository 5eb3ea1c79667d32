// How a plan becomes something that runs: memory, the views that steps see, the steps themselves, and what is patched when inputs and
// outputs are bound. Everything that a run needs is allocated here.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/checked.h"
#include "base/text.h"
#include "run/device_run.h"
#include "run/execution.h"
#include "run/late_step.h"

namespace heddle {
namespace {

// From how long on, as far as anything is known, a step of several tiles looks between ranges of them whether the run is to end.
constexpr double long_step_ns = 10e6;

// A step whose shapes leave nothing to do.
heddle_status run_nothing(const heddle_run_context*, int64_t, int64_t) {
  return HEDDLE_OK;
}

}  // namespace

Status reserve(Workspace& workspace, const Plan& plan) {
  HEDDLE_CHECK(workspace.reserve(plan.context_bytes()));
  return reserve_on_devices(workspace, plan);
}

Status reserve_on_devices(Workspace& workspace, const Plan& plan) {
  for (const PlanDevice& planned : plan.devices) HEDDLE_CHECK(workspace.reserve_on(planned.device, planned.arena_bytes));
  return {};
}

Execution::Execution(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)), failures_(*plan_) {}
Execution::~Execution() = default;

Result<std::unique_ptr<Execution>> Execution::create(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables,
                                                     const ExecutionOptions& options) {
  std::unique_ptr<Execution> self(new Execution(std::move(plan)));
  self->variables_ = std::move(variables);
  HEDDLE_CHECK(self->build(options));
  return self;
}

Status Execution::reach_memory(const ExecutionOptions& options) {
  const int64_t bytes = plan_->context_bytes();
  if (options.transient && (options.transient_bytes < bytes || reinterpret_cast<uintptr_t>(options.transient) % arena_alignment != 0))
    return {Code::invalid_argument,
            "the transient buffer has " + std::to_string(options.transient_bytes) + " bytes, the plan needs " + std::to_string(bytes) +
                ", aligned to 64",
            "ask transient_bytes() first"};
  const Workspace* workspace = options.workspace;
  if (!workspace) {
    own_ = std::make_unique<Workspace>();
    HEDDLE_CHECK(options.transient ? reserve_on_devices(*own_, *plan_) : reserve(*own_, *plan_));
    workspace = own_.get();
  }
  place_ = workspace->place();
  arena_ = options.transient ? static_cast<std::byte*>(options.transient) : workspace->host();
  thread_scratch_ = arena_ + plan_->arena_bytes;
  if (devices_) devices_->follow(*workspace);
  if (devices_) devices_->stage_in(arena_ + plan_->staging_offset());
  return {};
}

Status Execution::build(const ExecutionOptions& options) {
  HEDDLE_CHECK(reach_devices());
  HEDDLE_CHECK(reach_memory(options));
  find_variables();
  extents_.assign(plan_->extent_slots, 0);  // 0 is within every bound
  build_views();
  build_steps();
  build_bindings();
  HEDDLE_CHECK(build_nested());
  SchedulerOptions scheduling = options.scheduler;
  scheduling.max_threads = std::min<uint32_t>(plan_->max_threads, static_cast<uint32_t>(std::max(1, options.max_threads)));
  scheduler_ = std::make_unique<Scheduler>(plan_->graph, scheduling.max_threads > 1 ? options.executor : nullptr, scheduling);
  control_.failed = step_failed;
  control_.user = this;
  info_.struct_size = sizeof(info_);
  return {};
}

std::byte* Execution::home_of(const PlanValue& value) const {
  const Placement& at = value.placement;
  switch (at.kind) {
    case Placement::Kind::arena:
      return (at.device == 0 ? arena_ : devices_->arena(at.device)) + at.offset;
    case Placement::Kind::constant:
      if (at.device != 0) return static_cast<std::byte*>(plan_->devices[at.device - 1u].constants[at.index]->get());
      return const_cast<std::byte*>(plan_->constants[at.index]->data);
    case Placement::Kind::variable:
      if (at.device != 0) return variables_->data_on(at.index, *plan_->devices[at.device - 1u].device);
      return variables_->data(at.index);
    default:
      return nullptr;
  }
}

void Execution::build_views() {
  const size_t count = plan_->values.size();
  views_.reserve(count);
  view_of_value_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const PlanValue& value = plan_->values[i];
    heddle_tensor view = tensor_view(value.type.dtype, value.type.shape, home_of(value));
    view.layout = value.layout;
    view.extent_axis = value.type.bounded_axis;
    if (value.placement.device != 0) view.space = HEDDLE_SPACE_DEVICE;
    if (value.extent_slot >= 0) view.extent = &extents_[static_cast<size_t>(value.extent_slot)];
    if (value.placement.kind == Placement::Kind::constant) view.flags = HEDDLE_TENSOR_CONSTANT;
    view_of_value_[i] = static_cast<uint32_t>(views_.size());
    views_.push_back(view);
  }
}

// The view of an operand: the value's own, or one more when a step reads the bytes under an equivalent layout.
uint32_t Execution::view_index(const Operand& operand) {
  const uint32_t own = view_of_value_[operand.value.index];
  if (std::memcmp(&views_[own].layout, &operand.layout, sizeof(heddle_layout)) == 0) return own;
  heddle_tensor view = views_[own];
  view.layout = operand.layout;
  views_.push_back(view);
  return static_cast<uint32_t>(views_.size() - 1);
}

void Execution::build_steps() {
  const size_t count = plan_->steps.size();
  size_t operand_count = 0;
  for (const PlanStep& step : plan_->steps) operand_count += step.inputs.size() + step.outputs.size();
  // Views grow while operands are looked up: collect indices first, pointers afterwards.
  std::vector<uint32_t> indices;
  indices.reserve(operand_count);
  for (const PlanStep& step : plan_->steps)
    for (const auto* list : {&step.inputs, &step.outputs})
      for (const Operand& operand : *list) indices.push_back(operand.value.valid() ? view_index(operand) : UINT32_MAX);
  operands_.reserve(operand_count);
  for (const uint32_t index : indices) operands_.push_back(index == UINT32_MAX ? nullptr : &views_[index]);
  contexts_.resize(count);
  steps_.resize(count);
  if (plan_->has_late_steps) late_.resize(count);
  heddle_tensor** next = operands_.data();
  for (size_t i = 0; i < count; ++i) {
    const PlanStep& step = plan_->steps[i];
    StepContext& c = contexts_[i];
    c.owner = this;
    c.step = static_cast<uint32_t>(i);
    c.abi.struct_size = sizeof(heddle_run_context);
    c.abi.input_count = static_cast<uint32_t>(step.inputs.size());
    c.abi.output_count = static_cast<uint32_t>(step.outputs.size());
    c.abi.random_stream = step.random_stream;
    c.abi.inputs = next;
    next += step.inputs.size();
    c.abi.outputs = next;
    next += step.outputs.size();
    c.abi.state = step.state.get();
    c.abi.scratch = arena_ + step.scratch_offset;
    c.abi.info = &info_;
    c.abi.host = host();
    steps_[i] = {step.kernel->kernel->run, &c.abi, step.tiles};
    if (step.tiles == 0) steps_[i] = {run_nothing, &c.abi, 1};
    if (step.reads_extents && step.tiles > 0) steps_[i].run = run_with_extents;
    if (step.tiles > 1 && (step.cost_ns <= 0 || step.cost_ns >= long_step_ns)) steps_[i].run = run_in_ranges;
    if (step.late) {
      late_[i] = std::make_unique<LateStep>(*this, c.step);
      steps_[i] = {LateStep::run, &c.abi, 1};
    }
    if (const DeviceWork* work = step.on_device.get()) {
      c.abi.stream = devices_->stream(*work);
      c.abi.scratch = devices_->arena(work->device) + step.scratch_offset;
      steps_[i] = {work->kind == DeviceWork::Kind::fence ? run_nothing : enqueue, &c.abi, 1};
    }
  }
}

void Execution::build_bindings() {
  // Views beyond the values' own belong to the value whose own view they copy.
  std::vector<const PlanValue*> value_of_view(views_.size(), nullptr);
  for (size_t i = 0; i < plan_->values.size(); ++i) value_of_view[view_of_value_[i]] = &plan_->values[i];
  const auto note = [&](const std::vector<Operand>& list, const heddle_tensor* const* pointers) {
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k].value.valid()) value_of_view[static_cast<size_t>(pointers[k] - views_.data())] = &plan_->values[list[k].value.index];
  };
  for (size_t i = 0; i < plan_->steps.size(); ++i) {
    note(plan_->steps[i].inputs, contexts_[i].abi.inputs);
    note(plan_->steps[i].outputs, contexts_[i].abi.outputs);
  }
  inputs_.assign(plan_->inputs.size(), nullptr);
  input_views_.resize(plan_->inputs.size());
  recognised_.resize(plan_->known_inputs.size());
  unbound_inputs_ = inputs_.size();
  outputs_.resize(plan_->outputs.size());
  regions_.reserve(1 + inputs_.size() + outputs_.size());
  copies_ = std::count_if(plan_->output_staging.begin(), plan_->output_staging.end(), [](int64_t at) { return at >= 0; });
  for (size_t o = 0; o < outputs_.size(); ++o) outputs_[o].home = home_of(plan_->values[plan_->outputs[o].index]);
  // The first output of a storage in the arena may move it; a second one of the same storage is copied. What a device reads or writes stays
  // in memory of ours: a run may end before the device does.
  std::unordered_map<uint32_t, OutputBinding*> mover;
  for (const PlanStep& step : plan_->steps)
    for (const auto* list : {&step.inputs, &step.outputs})
      for (const Operand& operand : *list)
        if (step.on_device && operand.value.valid()) {
          const Placement& at = plan_->values[operand.value.index].placement;
          if (at.kind == Placement::Kind::arena && at.device == 0) mover.emplace(at.index, nullptr);
        }
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const PlanValue& out = plan_->values[plan_->outputs[o].index];
    if (out.placement.kind == Placement::Kind::arena) mover.emplace(out.placement.index, out.type.late() ? nullptr : &outputs_[o]);
  }
  for (uint32_t v = 0; v < views_.size(); ++v) {
    if (!value_of_view[v]) continue;
    const Placement& placement = value_of_view[v]->placement;
    if (placement.kind == Placement::Kind::input) input_views_[placement.index].push_back(v);
    if (placement.kind != Placement::Kind::arena) continue;
    arena_views_.push_back({v, placement.device, placement.offset});
    if (const auto it = mover.find(placement.index); it != mover.end() && it->second) it->second->views.push_back(v);
  }
}

void Execution::move_to(const Workspace& workspace) {
  place_ = workspace.place();
  left_behind_ = true;
  if (devices_) devices_->follow(workspace);
  rebase(workspace.host());
}

void Execution::rebase(std::byte* host) {
  arena_ = host;
  thread_scratch_ = arena_ + plan_->arena_bytes;
  if (devices_) devices_->stage_in(arena_ + plan_->staging_offset());
  for (const ArenaView& v : arena_views_) views_[v.view].data = (v.device == 0 ? arena_ : devices_->arena(v.device)) + v.offset;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    outputs_[o].home = home_of(plan_->values[plan_->outputs[o].index]);
    if (outputs_[o].user) bind_output(o, outputs_[o].user);
  }
  for (size_t i = 0; i < contexts_.size(); ++i) {
    const DeviceWork* work = plan_->steps[i].on_device.get();
    contexts_[i].abi.scratch = (work ? devices_->arena(work->device) : arena_) + plan_->steps[i].scratch_offset;
  }
  for (size_t i = 0; i < nested_.size(); ++i)
    for (const auto& nested : nested_[i])
      if (!plan_->steps[i].late) nested->rebase(nested_memory(static_cast<uint32_t>(i)));
}

// One subnet of a step runs at a time: they share the step's scratch, behind the kernel's own.
std::byte* Execution::nested_memory(uint32_t step) const {
  return static_cast<std::byte*>(contexts_[step].abi.scratch) + align_up(plan_->steps[step].scratch_bytes, arena_alignment);
}

void Execution::set_parent(Execution& parent, uint32_t step) {
  parent_ = &parent;
  parent_step_ = step;
  control_.outer_stops = outer_stops;
}

Status Execution::build_nested() {
  const bool any = std::any_of(plan_->steps.begin(), plan_->steps.end(), [](const PlanStep& s) { return !s.nested.empty(); });
  if (!any && !plan_->has_late_steps) return {};
  nested_.resize(plan_->steps.size());
  trips_.resize(plan_->steps.size());
  for (size_t i = 0; i < plan_->steps.size(); ++i) {
    const PlanStep& step = plan_->steps[i];
    for (const NestedPlan& nested : step.nested) {
      ExecutionOptions options;
      options.transient = nested_memory(static_cast<uint32_t>(i));
      options.transient_bytes = nested.plan->context_bytes();
      if (options.transient_bytes == 0) options.transient = nullptr;
      HEDDLE_TRY(auto execution, Execution::create(nested.plan, nullptr, options));
      execution->set_parent(*this, static_cast<uint32_t>(i));
      execution->subnet_ = nested.subnet.get();
      nested_[i].push_back(std::move(execution));
    }
  }
  return {};
}

}  // namespace heddle

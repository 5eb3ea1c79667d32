#include "run/execution.h"

#include <algorithm>
#include <cstring>
#include <shared_mutex>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "plugin/attributes.h"
#include "plugin/host.h"
#include "run/late_step.h"
#include "run/worker.h"

namespace heddle {
namespace {

// A step whose shapes leave nothing to do.
heddle_status run_nothing(const heddle_run_context*, int64_t, int64_t) {
  return HEDDLE_OK;
}

}  // namespace

Execution::Execution() = default;
Execution::~Execution() = default;

// ---------------------------------------------------------------- host functions

const heddle_host* Execution::host() {
  static const heddle_host table = [] {
    heddle_host h = *base_host();
    h.set_error = [](const void* context, heddle_status code, const char* text, size_t length) {
      StepContext& c = context_of(context);
      c.owner->note_failure(c.step, code, false, text, length);
    };
    h.thread_scratch = [](const void* context) -> void* {
      const StepContext& c = context_of(context);
      if (c.thread_scratch) return c.thread_scratch;
      const Execution& owner = *c.owner;
      // A plan for one thread (a subnet's) has one scratch, whichever thread runs it.
      const uint32_t index = owner.plan_->max_threads > 1 ? worker_index() : 0;
      return owner.thread_scratch_ + static_cast<size_t>(index) * static_cast<size_t>(owner.plan_->thread_scratch_bytes);
    };
    h.thread_index = [](const void* context) -> uint32_t { return context_of(context).owner->plan_->max_threads > 1 ? worker_index() : 0; };
    h.cancelled = [](const void* context) -> int32_t {
      for (const Execution* e = context_of(context).owner; e; e = e->parent_)
        if (e->control_.stop.load(std::memory_order_relaxed) != 0) return 1;
      return 0;
    };
    h.allocate_output = [](const void* context, uint32_t output, const int64_t* dims, int32_t rank) -> void* {
      StepContext& c = context_of(context);
      LateStep* late = c.owner->late_.empty() ? nullptr : c.owner->late_[c.step].get();
      return late ? late->allocate_output(output, dims, rank) : nullptr;
    };
    h.run_subnet = [](const void* context, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                      heddle_tensor* const* outputs, uint32_t output_count) -> heddle_status {
      StepContext& c = context_of(context);
      return c.owner->run_subnet(c.step, subnet, inputs, input_count, outputs, output_count);
    };
    return h;
  }();
  return &table;
}

void Execution::note_failure(uint32_t step, heddle_status status, bool reported, const char* text, size_t length) {
  const std::lock_guard lock(failure_mutex_);
  for (Failure& f : failures_)
    if (f.step == step) {
      f.reported = f.reported || reported;
      if (reported) f.status = status;
      if (text) f.text.assign(text, std::min<size_t>(length, 4096));
      return;
    }
  failures_.push_back({step, status, reported, text ? std::string(text, std::min<size_t>(length, 4096)) : std::string()});
}

std::string Execution::failure_text(uint32_t step) {
  const std::lock_guard lock(failure_mutex_);
  for (const Failure& f : failures_)
    if (f.step == step && !f.text.empty()) return f.text;
  return "the kernel failed and said nothing";
}

void Execution::step_failed(void* user, uint32_t step, heddle_status status) {
  static_cast<Execution*>(user)->note_failure(step, status, true, nullptr, 0);
}

heddle_status Execution::run_subnet(uint32_t step, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                                    heddle_tensor* const* outputs, uint32_t output_count) {
  const auto refuse = [&](heddle_status code, const std::string& text) {
    note_failure(step, code, false, text.data(), text.size());
    return code;
  };
  const Net* net = from_abi(subnet);
  Execution* nested = nullptr;
  if (!nested_.empty())
    for (const auto& candidate : nested_[step]) {
      const Plan& plan = candidate->plan();
      bool fits = plan.inputs.size() == input_count && plan.outputs.size() >= output_count;
      const auto& entries = plan_->steps[step].nested;
      fits = fits && entries[static_cast<size_t>(&candidate - nested_[step].data())].subnet.get() == net;
      for (uint32_t i = 0; fits && i < input_count; ++i) {
        const TensorType& type = plan.values[plan.inputs[i].index].type;
        fits = static_cast<DType>(inputs[i]->dtype) == type.dtype && Shape(inputs[i]->dims, inputs[i]->rank) == type.shape;
      }
      if (fits) nested = candidate.get();
    }
  if (!nested) return refuse(HEDDLE_ERROR_UNSUPPORTED, "a subnet is run with shapes for which it was not planned");
  for (uint32_t i = 0; i < input_count; ++i) nested->bind_input(i, inputs[i]->data);
  for (uint32_t i = 0; i < output_count; ++i) {
    const TensorType& type = nested->plan().values[nested->plan().outputs[i].index].type;
    if (!outputs[i] || type.late()) continue;
    if (outputs[i]->byte_size < static_cast<uint64_t>(type.byte_size()))
      return refuse(HEDDLE_ERROR_INVALID, "an output of a subnet does not fit");
    nested->bind_output(i, outputs[i]->data);
  }
  RunSettings settings;
  settings.seed = info_.seed;
  const Status status = nested->run(settings);
  if (!status.ok()) return refuse(HEDDLE_ERROR_INTERNAL, "in subnet " + quoted(net->name) + ": " + status.text());
  return HEDDLE_OK;
}

// ---------------------------------------------------------------- building

Result<std::unique_ptr<Execution>> Execution::create(std::shared_ptr<const Plan> plan, VariableStore* variables,
                                                     const ExecutionOptions& options) {
  std::unique_ptr<Execution> self(new Execution());
  self->plan_ = std::move(plan);
  self->variables_ = variables;
  HEDDLE_CHECK(self->build(options));
  return self;
}

Status Execution::build(const ExecutionOptions& options) {
  const int64_t bytes = plan_->context_bytes();
  if (options.transient) {
    if (options.transient_bytes < bytes || reinterpret_cast<uintptr_t>(options.transient) % 64 != 0)
      return {Code::invalid_argument,
              "the transient buffer has " + std::to_string(options.transient_bytes) + " bytes, the plan needs " + std::to_string(bytes) +
                  ", aligned to 64",
              "ask transient_bytes() first"};
    arena_ = static_cast<std::byte*>(options.transient);
  } else if (bytes > 0) {
    try {
      own_memory_ = Blob::allocate(DType::u8, Shape{bytes}, &arena_);
    } catch (const std::bad_alloc&) {
      return {Code::out_of_memory, "no memory for an arena of " + human_bytes(bytes), "use smaller inputs or fewer contexts"};
    }
  }
  thread_scratch_ = arena_ + plan_->arena_bytes;
  extents_.assign(plan_->extent_slots, 0);  // 0 is within every bound
  build_views();
  build_steps();
  build_bindings();
  HEDDLE_CHECK(build_nested(this));
  SchedulerOptions scheduling = options.scheduler;
  scheduling.max_threads = std::min<uint32_t>(plan_->max_threads, static_cast<uint32_t>(std::max(1, options.max_threads)));
  scheduler_ = std::make_unique<Scheduler>(plan_->graph, scheduling.max_threads > 1 ? options.executor : nullptr, scheduling);
  control_.failed = step_failed;
  control_.user = this;
  failures_.reserve(16);
  info_.struct_size = sizeof(info_);
  return {};
}

std::byte* Execution::home_of(const PlanValue& value) const {
  switch (value.placement.kind) {
    case Placement::Kind::arena:
      return arena_ + value.placement.offset;
    case Placement::Kind::constant:
      return const_cast<std::byte*>(plan_->constants[value.placement.index]->data);
    case Placement::Kind::variable:
      return variables_->data(value.placement.index);
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
    c.abi.state = step.state;
    c.abi.scratch = arena_ + step.scratch_offset;
    c.abi.info = &info_;
    c.abi.host = host();
    steps_[i] = {step.kernel->kernel->run, &c.abi, step.tiles};
    if (step.tiles == 0) steps_[i] = {run_nothing, &c.abi, 1};
    if (step.late) {
      late_[i] = std::make_unique<LateStep>(*this, c.step);
      steps_[i] = {LateStep::run, &c.abi, 1};
    }
  }
}

void Execution::build_bindings() {
  const auto same_storage = [](const Placement& a, const Placement& b) { return a.kind == b.kind && a.index == b.index; };
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
  unbound_inputs_ = inputs_.size();
  outputs_.resize(plan_->outputs.size());
  for (size_t o = 0; o < outputs_.size(); ++o) outputs_[o].home = home_of(plan_->values[plan_->outputs[o].index]);
  for (uint32_t v = 0; v < views_.size(); ++v) {
    if (!value_of_view[v]) continue;
    const Placement& placement = value_of_view[v]->placement;
    if (placement.kind == Placement::Kind::input) input_views_[placement.index].push_back(v);
    if (placement.kind != Placement::Kind::arena) continue;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const PlanValue& out = plan_->values[plan_->outputs[o].index];
      // The first output of a storage may move it; a second one of the same storage is copied.
      const bool first = std::none_of(plan_->outputs.begin(), plan_->outputs.begin() + static_cast<std::ptrdiff_t>(o),
                                      [&](ValueId other) { return same_storage(plan_->values[other.index].placement, out.placement); });
      if (first && same_storage(placement, out.placement) && !out.type.late()) outputs_[o].views.push_back(v);
    }
  }
}

Status Execution::build_nested(Execution* parent) {
  const bool any = std::any_of(plan_->steps.begin(), plan_->steps.end(), [](const PlanStep& s) { return !s.nested.empty(); });
  if (!any) return {};
  nested_.resize(plan_->steps.size());
  for (size_t i = 0; i < plan_->steps.size(); ++i) {
    const PlanStep& step = plan_->steps[i];
    for (const NestedPlan& nested : step.nested) {
      // One subnet of a step runs at a time: they share the step's scratch, behind the kernel's own.
      ExecutionOptions options;
      options.transient = static_cast<std::byte*>(contexts_[i].abi.scratch) + align_up(step.scratch_bytes, 64);
      options.transient_bytes = nested.plan->context_bytes();
      if (options.transient_bytes == 0) options.transient = nullptr;
      HEDDLE_TRY(auto execution, Execution::create(nested.plan, nullptr, options));
      execution->parent_ = parent;
      nested_[i].push_back(std::move(execution));
    }
  }
  return {};
}

// ---------------------------------------------------------------- bindings

void Execution::bind_input(size_t i, const void* data) {
  if (!inputs_[i] && data) --unbound_inputs_;
  if (inputs_[i] && !data) ++unbound_inputs_;
  inputs_[i] = data;
  for (const uint32_t v : input_views_[i]) views_[v].data = const_cast<void*>(data);
}

void Execution::bind_output(size_t i, void* data) {
  OutputBinding& binding = outputs_[i];
  binding.user = data;
  for (const uint32_t v : binding.views) views_[v].data = data ? data : binding.home;
  copies_ = std::any_of(outputs_.begin(), outputs_.end(), [](const OutputBinding& o) { return o.user && o.views.empty(); });
}

TensorView Execution::output(size_t i) const {
  const ValueId id = plan_->outputs[i];
  const heddle_tensor& v = views_[view_of_value_[id.index]];
  TensorView out;
  out.dtype = static_cast<DType>(v.dtype);
  out.shape = Shape(v.dims, v.rank);
  if (v.extent && v.extent_axis >= 0) out.shape[v.extent_axis] = *v.extent;
  out.data = outputs_[i].user ? outputs_[i].user : v.data;
  return out;
}

void Execution::copy_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputBinding& o = outputs_[i];
    if (!o.user || !o.views.empty()) continue;
    const heddle_tensor& v = views_[view_of_value_[plan_->outputs[i].index]];
    int64_t bytes = byte_width(static_cast<DType>(v.dtype));
    const TensorView out = output(i);
    bytes *= out.shape.element_count();
    if (bytes > 0 && v.data != o.user) std::memmove(o.user, v.data, static_cast<size_t>(bytes));
  }
}

int64_t Execution::unplanned_bytes() const {
  int64_t total = 0;
  for (const auto& late : late_)
    if (late) total += late->unplanned_bytes();
  return total;
}

// ---------------------------------------------------------------- running

Status Execution::admit() const {
  if (unbound_inputs_ == 0) return {};
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const PlanValue& value = plan_->values[plan_->inputs[i].index];
    if (!inputs_[i] && value.type.byte_size() > 0) missing.push_back(quoted(value.name));
  }
  if (missing.empty()) return {};
  return {Code::missing_input, "no data for input " + join(missing, ", "), "bind every input of the net"};
}

void Execution::begin(const RunSettings& settings) {
  control_.stop.store(0, std::memory_order_relaxed);
  control_.deadline_ticks = settings.deadline_ns > 0 ? ticks() + ns_to_ticks(static_cast<double>(settings.deadline_ns)) : 0;
  control_.profile = settings.profile;
  info_.seed = settings.seed;
  if (plan_->step_counter >= 0) std::memcpy(&info_.step, variables_->data(static_cast<size_t>(plan_->step_counter)), sizeof(info_.step));
  if (!failures_.empty()) failures_.clear();
}

void Execution::mark_torn() {
  for (const PlanStep& step : plan_->steps)
    for (const Operand& out : step.outputs)
      if (step.updates_variable && out.value.valid() && plan_->values[out.value.index].placement.kind == Placement::Kind::variable)
        variables_->mark_torn(plan_->values[out.value.index].placement.index);
}

Status Execution::failure() {
  std::vector<Failure> reported;
  for (const Failure& f : failures_)
    if (f.reported) reported.push_back(f);
  const uint32_t stop = control_.stop.load(std::memory_order_relaxed);
  if (reported.empty()) {
    if (stop == stop_deadline)
      return {Code::deadline_exceeded, "the deadline passed before the run was done", "allow more time, or more threads"};
    return {Code::cancelled, "the run was cancelled"};
  }
  std::sort(reported.begin(), reported.end(), [](const Failure& a, const Failure& b) { return a.step < b.step; });
  Status first;
  for (const Failure& f : reported) {
    const PlanStep& step = plan_->steps[f.step];
    Status status = plugin_error(Code::kernel_failed, f.status, {f.status, f.text});
    if (f.status == HEDDLE_ERROR_CANCELLED && stop == stop_deadline) status = Status(Code::deadline_exceeded, "the deadline passed");
    std::vector<std::string> shapes;
    for (const Operand& in : step.inputs)
      shapes.push_back(in.value.valid() ? std::string(to_string(plan_->values[in.value.index].type.dtype)) +
                                              plan_->values[in.value.index].type.shape.text()
                                        : "-");
    status = std::move(status)
                 .at(step.name, display_name(step.domain, step.type))
                 .in_net(plan_->net_name)
                 .during("on " + step.device + " with inputs " + join(shapes, ", "));
    if (first.ok())
      first = std::move(status);
    else
      first.diagnostic().attached.push_back(std::move(status.diagnostic()));
  }
  return first;
}

// An extent is what a kernel wrote: it must lie within the bound before anybody believes it.
Status Execution::check_extents() const {
  for (const PlanValue& value : plan_->values) {
    if (value.extent_slot < 0) continue;
    const int64_t extent = extents_[static_cast<size_t>(value.extent_slot)], bound = value.type.shape[value.type.bounded_axis];
    if (extent >= 0 && extent <= bound) continue;
    const Status bad(Code::kernel_failed,
                     "wrote extent " + std::to_string(extent) + ", the bound is " + std::to_string(bound) + ", for " + quoted(value.name),
                     "mend the kernel");
    for (const PlanStep& step : plan_->steps)
      for (const Operand& out : step.outputs)
        if (out.value.valid() && &plan_->values[out.value.index] == &value)
          return Status(bad).at(step.name, display_name(step.domain, step.type)).in_net(plan_->net_name);
    return bad;
  }
  return {};
}

Status Execution::end(const Status& stopped) {
  if (plan_->extent_slots > 0 && control_.stop.load(std::memory_order_relaxed) == 0 && stopped.ok()) HEDDLE_CHECK(check_extents());
  if (stopped.ok() && control_.stop.load(std::memory_order_relaxed) == 0) [[likely]] {
    if (copies_) copy_outputs();
    return {};
  }
  if (scheduler_->last_run_complete() && failures_.empty() && stopped.ok()) {
    // Cancelled too late: everything has been done.
    if (copies_) copy_outputs();
    return {};
  }
  return stopped.ok() ? failure() : stopped;
}

// The plain loop, with somebody looking on. What it does is the judge of the scheduler.
void Execution::run_serially(const std::function<Status(uint32_t)>& seen, Status& stopped) {
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    if (control_.stop.load(std::memory_order_relaxed) != 0) return;
    heddle_status status = call_run(steps_[i], 0, steps_[i].tiles);
    if (status == HEDDLE_OK) status = call_finish(plan_->graph, steps_[i], i);
    if (status != HEDDLE_OK) {
      step_failed(this, i, status);
      request_stop(control_.stop, stop_failed);
      return;
    }
    stopped = seen(i);
    if (!stopped.ok()) return;
  }
}

Status Execution::run_admitted(const RunSettings& settings, const std::function<Status(uint32_t)>* seen) {
  begin(settings);
  Status stopped;
  if (seen)
    run_serially(*seen, stopped);
  else
    scheduler_->run(steps_.data(), control_);
  return end(stopped);
}

Status Execution::run(const RunSettings& settings) {
  if (running_.exchange(true, std::memory_order_acquire))
    return {Code::busy, "this context is running already", "use a context per thread, or wait"};
  Status status = admit();
  if (status.ok()) {
    if (!variables_ || variables_->size() == 0) [[likely]] {
      status = run_admitted(settings, nullptr);
    } else if (plan_->has_variable_updates) {
      const std::unique_lock lock(variables_->mutex());
      status = variables_->whole();
      if (status.ok()) {
        status = run_admitted(settings, nullptr);
        const bool in_tail = !status.ok() && std::any_of(failures_.begin(), failures_.end(),
                                                         [&](const Failure& f) { return f.reported && f.step >= plan_->graph.tail_begin; });
        if (in_tail || (!status.ok() && plan_->graph.tail_begin == plan_->graph.count)) mark_torn();
      }
    } else {
      const std::shared_lock lock(variables_->mutex());
      status = variables_->whole();
      if (status.ok()) status = run_admitted(settings, nullptr);
    }
  }
  running_.store(false, std::memory_order_release);
  return status;
}

Status Execution::run_observed(const RunSettings& settings, const std::function<Status(uint32_t)>& seen) {
  if (running_.exchange(true, std::memory_order_acquire)) return {Code::busy, "this context is running already"};
  Status status = admit();
  if (status.ok()) {
    std::unique_lock<std::shared_mutex> lock;
    if (variables_ && variables_->size() > 0) lock = std::unique_lock(variables_->mutex());
    status = run_admitted(settings, &seen);
  }
  running_.store(false, std::memory_order_release);
  return status;
}

}  // namespace heddle

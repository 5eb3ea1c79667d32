#include "run/subnets/subnets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/random.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "compile/compiled_subnet.h"
#include "heddle/limits.h"
#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"
#include "plugin/infer_operator.h"
#include "run/execution.h"

namespace heddle {
namespace {

constexpr size_t max_subnets = 16;  // compiled subnets that a late step keeps

// No plan bounds the memory that these subnets take together: a loop whose values grow forever must reach a limit before the machine's
// memory is used up.
int64_t memory_for_growth() {
  return machine_memory_bytes() / 2;
}

// Whether `wanted` is the memory of an input. Empty tensors have no place.
bool is_input(Subnets::Inputs inputs, const heddle_tensor& wanted) {
  return wanted.byte_size > 0 &&
         std::any_of(inputs.begin(), inputs.end(), [&](const heddle_tensor* in) { return in->byte_size > 0 && in->data == wanted.data; });
}

// Returns a distinct number for each path of trips from the outermost run down, and never the outermost run's own 0.
uint64_t trip_inside(uint64_t around, uint64_t trip) {
  uint64_t state = around + 0x9e3779b97f4a7c15ULL * trip;
  return next_random(state) | 1;
}

const TensorType& output_type(const Plan& plan, size_t i) {
  return plan.values[plan.outputs[i].index].type;
}

}  // namespace

// A subnet as it was compiled for some types.
struct Subnets::Compiled {
  const Net* net = nullptr;
  std::unique_ptr<Execution> execution;
  std::vector<const void*> recognised;  // by Plan::known_inputs: the constant that had this content when it was last passed
  std::vector<Shape> result_shapes;     // the views of results point to them
  std::vector<char> over_input;         // by output: it is wanted in the place of an input, a variable that the operator updates

  Compiled(const Net* of, std::unique_ptr<Execution> made) : net(of), execution(std::move(made)) {
    recognised.resize(plan().known_inputs.size());
    result_shapes.resize(plan().outputs.size());
    over_input.resize(plan().outputs.size());
  }
  const Plan& plan() const { return execution->plan(); }
  bool made_for(Inputs inputs);
};

Subnets::Subnets(const Plan& plan, const ContextMemory& memory, RunScope& scope, FailureLog& failures, Scheduler& scheduler,
                 StepResources& resources, DeviceRun* devices, const LeftWork& left)
    : plan_(plan),
      memory_(memory),
      scope_(scope),
      failures_(failures),
      scheduler_(scheduler),
      resources_(resources),
      devices_(devices),
      left_(left) {}
Subnets::~Subnets() = default;

ExecutionOptions Subnets::options_inside(uint32_t step) {
  ExecutionOptions options;
  options.outer = &scope_;
  options.outer_step = step;
  options.outer_scheduler = &scheduler_;
  options.outer_resources = &resources_;
  options.outer_left = &left_;
  options.max_threads = static_cast<int>(scheduler_.max_threads());
  options.scheduler = scheduler_.options();
  return options;
}

Status Subnets::create_planned() {
  const bool any = std::any_of(plan_.steps.begin(), plan_.steps.end(), [](const PlanStep& s) { return !s.nested->empty(); });
  if (!any && !plan_.has_late_steps) return {};
  steps_.resize(plan_.steps.size());
  for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
    if (plan_.steps[i].suspends) steps_[i].leave = std::make_unique<Leave>(*this, i), any_leave_ = true;
    for (const NestedPlan& nested : *plan_.steps[i].nested) {
      ExecutionOptions options = options_inside(i);
      options.transient_bytes = nested.plan->context_bytes();
      if (options.transient_bytes > 0) options.transient = memory_.subnet_memory(i);
      if (!nested.plan->devices.empty()) {
        options.outer_devices = devices_;
        options.workspace = &memory_.workspace();
        options.device_part = memory_.subnet_memory_on_device(i);
        options.subnet = static_cast<uint32_t>(steps_[i].compiled.size());
      }
      HEDDLE_TRY(auto execution, Execution::create(nested.plan, nullptr, options));
      steps_[i].compiled.push_back(std::make_unique<Compiled>(nested.subnet.get(), std::move(execution)));
    }
  }
  return {};
}

Status Subnets::move() {
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    if (plan_.steps[i].late) continue;  // in memory of their own
    for (const auto& subnet : steps_[i].compiled) {
      Execution& execution = *subnet->execution;
      HEDDLE_CHECK(subnet->plan().devices.empty()
                       ? execution.follow(memory_.subnet_memory(i))
                       : execution.follow(memory_.workspace(), memory_.subnet_memory(i), memory_.subnet_memory_on_device(i)));
    }
  }
  return {};
}

void Subnets::look() {
  bool left = false;
  for (const OfStep& of : steps_)
    for (const auto& subnet : of.compiled) left = !subnet->execution->answered().ok() || left;
  left_work_.store(left);
}

int64_t Subnets::allocated_bytes() const {
  int64_t total = 0;
  for (const OfStep& of : steps_)
    for (const auto& subnet : of.compiled) total += subnet->execution->allocated_bytes();
  return total;
}

// ---------------------------------------------------------------- found or compiled

// Whether the plan was made for inputs of these types, and of these contents where it depends on them.
bool Subnets::Compiled::made_for(Inputs inputs) {
  if (plan().inputs.size() != inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = plan().values[plan().inputs[i].index].type;
    if (static_cast<DType>(inputs[i]->dtype) != type.dtype || Shape(inputs[i]->dims, inputs[i]->rank) != type.shape) return false;
  }
  for (size_t k = 0; k < recognised.size(); ++k) {
    const KnownInput& known = plan().known_inputs[k];
    // An input on a device is what it was declared with: a constant.
    if (plan().values[plan().inputs[known.input].index].place.device != 0) continue;
    const heddle_tensor& input = *inputs[known.input];
    const bool constant = (input.flags & HEDDLE_TENSOR_CONSTANT) != 0;
    if (constant && input.data && input.data == recognised[k]) continue;
    const auto bytes = static_cast<size_t>(known.content->bytes);
    if (bytes > 0 && (!input.data || std::memcmp(input.data, known.content->data, bytes) != 0)) return false;
    if (constant) recognised[k] = input.data;
  }
  return true;
}

// Returns the kept subnet for such inputs; null: there is none.
Subnets::Compiled* Subnets::find(uint32_t step, const Net* net, Inputs inputs, size_t outputs) {
  if (steps_.empty()) return nullptr;
  auto& kept = steps_[step].compiled;
  auto found = kept.end();
  for (auto candidate = kept.begin(); candidate != kept.end(); ++candidate) {
    Compiled& c = **candidate;
    if (c.net != net || c.plan().outputs.size() < outputs || !c.made_for(inputs)) continue;
    // The plan with the most known inputs is the one that inference chose.
    if (found == kept.end() || c.plan().known_inputs.size() > (*found)->plan().known_inputs.size()) found = candidate;
  }
  if (found == kept.end()) return nullptr;
  Compiled* const chosen = found->get();
  if (plan_.steps[step].late) std::rotate(found, found + 1, kept.end());
  return chosen;
}

Result<Subnets::Compiled*> Subnets::find_or_compile(uint32_t step, const Net* net, Inputs inputs) {
  if (Compiled* const found = find(step, net, inputs, 0)) return found;
  const std::shared_ptr<const Net> shared = subnet_attribute(plan_.steps[step].call->attributes()->values, net);
  // Kernels call this through the host's functions, across which nothing may be thrown.
  try {
    const LateCompilation& late = *plan_.late;
    CompilationTarget target = late.target;
    if (target.memory_limit == INT64_MAX) target.memory_limit = memory_for_growth();
    HEDDLE_TRY(auto plan, compile_subnet(*shared, plan_.registry, inputs, target, late.options,
                                         body_id(plan_.steps[step].random_stream, plan_.steps[step].call->attributes()->values, net)));
    OfStep& of = steps_[step];
    HEDDLE_CHECK(make_room(of, plan->context_bytes(), target.memory_limit));
    HEDDLE_TRY(auto execution, Execution::create(std::move(plan), nullptr, options_inside(step)));
    return of.compiled.emplace_back(std::make_unique<Compiled>(net, std::move(execution))).get();
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, fmt::format("no memory for subnet {} at the extents of this run", quoted(shared->name)));
  }
}

// Drops the least recently used subnets; never the last one, whose results a kernel may still be reading.
Status Subnets::make_room(OfStep& of, int64_t bytes, int64_t limit) {
  auto& kept = of.compiled;
  int64_t held = 0;
  for (const auto& subnet : kept) held += subnet->execution->allocated_bytes();
  while (kept.size() > 1 && (kept.size() >= max_subnets || held > limit - bytes)) {
    HEDDLE_CHECK(kept.front()->execution->answered());
    held -= kept.front()->execution->allocated_bytes();
    kept.erase(kept.begin());
  }
  if (held <= limit - bytes) return {};
  return {Code::limit_exceeded,
          fmt::format("a subnet whose values grow needs {} beside the {} of the trip before, the limit is {}", human_bytes(bytes),
                      human_bytes(held), human_bytes(limit)),
          hint_with("raise ", option_names::memory_limit, ", or let the loop end earlier")};
}

Status Subnets::from_outside(uint32_t step, const Net& net, Status status) const {
  const PlanStep& outer = plan_.steps[step];
  return from_subnet(std::move(status), net.name, plan_.net_name, outer.name, display_name(outer.domain, outer.type));
}

// Whether `net`, a pointer from a plugin, is a subnet of the step; nothing is read through it before. A planned step can not run subnets
// that it has not declared.
bool Subnets::is_own(uint32_t step, const Net* net) const {
  const PlanStep& of = plan_.steps[step];
  const auto is_net = [&](const auto& one) { return one.subnet.get() == net; };
  if (std::any_of(of.nested->begin(), of.nested->end(), is_net) || std::any_of(of.impossible->begin(), of.impossible->end(), is_net))
    return true;
  return of.late && subnet_attribute(of.call->attributes()->values, net);
}

Status Subnets::plan(uint32_t step, const heddle_subnet* subnet, Inputs inputs) {
  const Net* const net = from_abi(subnet);
  const auto made = find_or_compile(step, net, inputs);
  return made.ok() ? Status() : from_outside(step, *net, made.status());
}

Status Subnets::infer(uint32_t step, const heddle_subnet* subnet, Inputs inputs, std::span<heddle_type* const> outputs) {
  const Net* const net = from_abi(subnet);
  if (const Compiled* const found = find(step, net, inputs, outputs.size())) {  // declared for an earlier run
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) *outputs[i] = subnet_output_type(output_type(found->plan(), i));
    return {};
  }
  const auto evaluator = make_registry_evaluator(plan_.registry);
  const auto typed = heddle::infer(*net, plan_.registry, subnet_options(inputs, evaluator.get(), plan_.limits));
  if (!typed.ok()) return from_outside(step, *net, typed.status());
  if (typed->net.outputs.size() < outputs.size())
    return from_outside(step, *net, Status(Code::subnet_mismatch, "the subnet has too few outputs"));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) *outputs[i] = subnet_output_type(*typed, i);
  return {};
}

// ---------------------------------------------------------------- run

heddle_status Subnets::refuse(const Call& call, heddle_status code, const std::string& text) {
  failures_.note(call.step, code, text);
  return code;
}

heddle_status Subnets::fail(const Call& call, Status cause) {
  const heddle_status code = status_of(cause.code());
  failures_.note_cause(call.step, std::move(cause));
  return code;
}

heddle_status Subnets::run(uint32_t step, const heddle_subnet* subnet, uint64_t trip, Inputs inputs, Outputs outputs) {
  const Call call = {step, from_abi(subnet), trip, inputs, outputs};
  if (!is_own(step, call.net)) {
    failures_.note_refusal(
        step, {Code::kernel_failed, "the kernel runs a subnet that is none of its operator's, or that the operator has not declared",
               "run the subnets that its attributes give, and declare them in subnets"});
    return HEDDLE_ERROR_INVALID;
  }
  if (Leave* const leave = steps_.empty() ? nullptr : steps_[step].leave.get(); leave && leave->state.is_away()) return go_on(call, *leave);
  Compiled* found = nullptr;
  heddle_status status = admit(call);
  if (status == HEDDLE_OK) status = choose(call, &found);
  if (status == HEDDLE_OK) status = bind(call, *found);
  return status == HEDDLE_OK ? run_bound(call, *found) : status;
}

heddle_status Subnets::admit(const Call& call) {
  if (told_.load() == Told::to_end_updates || scope_.should_stop(call.step)) return refuse(call, HEDDLE_ERROR_CANCELLED, "cancelled");
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (!call.inputs[i])
      return refuse(call, HEDDLE_ERROR_INVALID, fmt::format("input {} of subnet {} is absent", i, quoted(call.net->name)));
  const auto elsewhere = [](const heddle_tensor* t) { return t && t->space != HEDDLE_SPACE_HOST; };
  const bool any_elsewhere =
      std::any_of(call.inputs.begin(), call.inputs.end(), elsewhere) || std::any_of(call.outputs.begin(), call.outputs.end(), elsewhere);
  if (any_elsewhere && !plan_.steps[call.step].on_device)
    return refuse(call, HEDDLE_ERROR_INVALID,
                  fmt::format("subnet {} is given device memory, and its operator runs on the host", quoted(call.net->name)));
  if (scope_.count_subnet_run() >= plan_.limits.loop_trips)
    return fail(call, over_limit(plan_.limits, &Limits::loop_trips, "the loops of the net go round too often"));
  return HEDDLE_OK;
}

heddle_status Subnets::choose(const Call& call, Compiled** found) {
  *found = find(call.step, call.net, call.inputs, call.outputs.size());
  if (!*found && plan_.steps[call.step].late) {
    // Only contents that are the same in each run may be part of a plan.
    std::vector<heddle_tensor> views(call.inputs.size());
    std::vector<const heddle_tensor*> lasting(call.inputs.size());
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      views[i] = *call.inputs[i];
      if (!(views[i].flags & HEDDLE_TENSOR_CONSTANT)) views[i].data = nullptr;
      lasting[i] = &views[i];
    }
    const Result<Compiled*> made = find_or_compile(call.step, call.net, lasting);
    if (!made.ok()) return fail(call, from_outside(call.step, *call.net, made.status()));
    *found = *made;
  }
  if (!*found)
    for (const ImpossibleSubnet& impossible : *plan_.steps[call.step].impossible)
      if (impossible.subnet.get() == call.net) return fail(call, impossible.why);
  if (!*found) return refuse(call, HEDDLE_ERROR_UNSUPPORTED, "a subnet is run with shapes or contents for which it was not planned");
  if ((*found)->plan().outputs.size() < call.outputs.size()) return refuse(call, HEDDLE_ERROR_INVALID, "the subnet has too few outputs");
  return HEDDLE_OK;
}

// Whether the output's result is an input of the subnet in whose place another output is wanted.
bool Subnets::overwrites_result(const Call& call, const Compiled& subnet, size_t output) {
  const Plan& plan = subnet.plan();
  const MemoryPlace& at = plan.values[plan.outputs[output].index].place;
  if (at.kind != MemoryPlace::Kind::input) return false;
  const void* const result = call.inputs[at.index]->data;
  for (size_t k = 0; k < call.outputs.size(); ++k)
    if (k != output && call.outputs[k] && call.outputs[k]->data == result) return true;
  return false;
}

heddle_status Subnets::bind(const Call& call, Compiled& subnet) {
  Execution& execution = *subnet.execution;
  for (size_t i = 0; i < call.inputs.size(); ++i) execution.bind_input(i, call.inputs[i]->data);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const heddle_tensor* const wanted = call.outputs[i];
    const TensorType& type = output_type(subnet.plan(), i);
    const bool where_it_is = !wanted || !wanted->data || type.late();
    // Steps of the subnet may read the input as long as it runs.
    subnet.over_input[i] = !where_it_is && is_input(call.inputs, *wanted);
    if (subnet.over_input[i] && overwrites_result(call, subnet, i))
      return refuse(
          call, HEDDLE_ERROR_INVALID,
          fmt::format("output {} of subnet {} is another variable that is updated too: copy that first", i, quoted(call.net->name)));
    execution.bind_output(i, where_it_is || subnet.over_input[i] ? nullptr : wanted->data);
    // A larger buffer would keep old bytes after the end of the result.
    if (!where_it_is && wanted->byte_size != static_cast<uint64_t>(type.byte_size()))
      return refuse(call, HEDDLE_ERROR_INVALID,
                    fmt::format("output {} of subnet {} takes {} bytes, its place has {}", i, quoted(call.net->name), type.byte_size(),
                                wanted->byte_size));
  }
  return HEDDLE_OK;
}

// Random operators of a subnet have random streams of their own (lay_out.cc), and their numbers differ from trip to trip.
heddle_status Subnets::run_bound(const Call& call, Compiled& subnet) {
  RunSettings settings;
  settings.seed = scope_.state().seed;
  settings.step = static_cast<int64_t>(scope_.state().step);
  settings.trip = trip_inside(scope_.state().trip, call.trip);
  Leave* const leave = steps_[call.step].leave.get();
  Status status;
  if (leave && may_leave_) {
    leave->subnet = &subnet;
    leave->execution = subnet.execution.get();
    leave->trip = call.trip;
    if (!start(*leave, settings, &status)) return HEDDLE_PENDING;
  } else if (plan_.steps[call.step].on_device && subnet.plan().only_enqueues && !devices_->streams().observed()) {
    status = subnet.execution->enqueue(settings);
  } else {
    status = subnet.execution->run(settings);
    if (const auto& outside = subnet.execution->failure_outside(); !status.ok() && outside)
      failures_.report(outside->step, outside->status, outside->text);
  }
  return finish(call, subnet, std::move(status));
}

heddle_status Subnets::go_on(const Call& call, Leave& leave) {
  Compiled& subnet = *leave.subnet;
  if (subnet.net != call.net || leave.trip != call.trip || subnet.plan().inputs.size() != call.inputs.size() ||
      subnet.plan().outputs.size() < call.outputs.size())
    return refuse(call, HEDDLE_ERROR_INVALID, "another subnet is asked for than the one that is under way");
  if (leave.state.has_left()) return HEDDLE_PENDING;  // in this call of the kernel
  Status status;
  return resume(leave, &status) ? finish(call, subnet, std::move(status)) : HEDDLE_PENDING;
}

heddle_status Subnets::finish(const Call& call, Compiled& subnet, Status status) {
  if (status.ok()) return hand_back(call, subnet);
  if (subnet.execution->left_work()) left_work_.store(true);
  if (status.code() == Code::cancelled) return refuse(call, HEDDLE_ERROR_CANCELLED, "cancelled");
  return fail(call, from_outside(call.step, *call.net, std::move(status)));
}

// Copies results that were not produced where they are wanted, or returns views of them.
heddle_status Subnets::hand_back(const Call& call, Compiled& subnet) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    heddle_tensor* const to = call.outputs[i];
    if (!to || (to->data && !output_type(subnet.plan(), i).late() && !subnet.over_input[i])) continue;
    const TensorView result = subnet.execution->output(i);
    if (!to->data) {
      Shape& shape = subnet.result_shapes[i] = result.shape;
      *to = tensor_view(result.dtype, shape, result.data);
      continue;
    }
    const Shape wanted(to->dims, to->rank);
    if (result.shape != wanted || result.dtype != static_cast<DType>(to->dtype))
      return refuse(call, HEDDLE_ERROR_INVALID,
                    fmt::format("output {} of subnet {} is {}{}, expected {}{}", i, quoted(call.net->name), to_string(result.dtype),
                                result.shape.text(), to_string(static_cast<DType>(to->dtype)), wanted.text()));
    if (to->byte_size == 0 || to->data == result.data) continue;
    const uint8_t device = subnet.plan().values[subnet.plan().outputs[i].index].place.device;
    if (device == 0) {
      std::memcpy(to->data, result.data, to->byte_size);
      continue;
    }
    const heddle_status status =
        devices_->worker().move(call.step, HEDDLE_COPY_DEVICE_TO_DEVICE, to->data, result.data, to->byte_size, nullptr);
    if (status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

}  // namespace heddle

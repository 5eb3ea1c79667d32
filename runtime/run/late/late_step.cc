#include "run/late/late_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/text/text.h"
#include "compile/compile.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"
#include "plugin/infer_operator.h"
#include "plugin/kernel_instance.h"
#include "run/pending_steps.h"
#include "run/step_contexts.h"
#include "run/step_resources.h"
#include "run/subnets/subnets.h"
#include "run/tile_ranges.h"
#include "schedule/step_call.h"

namespace heddle {
namespace {

// The services for kernels and inference. Constants are not packed, since the next run may have other extents.
class LateServices : public CallServices {
 public:
  LateServices(const StepContext& step, BoundResources* slots) : step_(step), slots_(slots) {}
  Result<uint32_t> need(const heddle_resource_need& asked) override {
    const Plan& plan = step_.services().plan;
    if (!plan.late->options.resources || !slots_) return CallServices::need(asked);
    HEDDLE_TRY(const ResourceNeed need, need_from_abi(asked));
    const uint8_t placed = step_.planned().placed;
    return slots_->bind(*plan.late->options.resources, plan.registry, need,
                        {plan.device_of(step_.planned()), placed == 0 ? nullptr : plan.devices[placed - 1u].device});
  }
  void* resource(uint32_t slot) override { return slots_ ? slots_->object(slot) : nullptr; }
  const void* prepack(uint32_t, const std::string&, uint64_t, heddle_prepack_fill, void*, std::string& error) override {
    error = "constants of a step with dynamic shapes are not packed";
    return nullptr;
  }
  const std::vector<Attribute>* attributes() const override { return &step_.planned().call->attributes()->values; }
  Status infer_subnet(const heddle_subnet* subnet, heddle_call::Views inputs, std::span<heddle_type* const> outputs) override {
    return step_.services().subnets.infer(step_.step, subnet, inputs, outputs);
  }
  Status declare_subnet(const heddle_subnet* subnet, heddle_call::Views inputs) override {
    return step_.services().subnets.plan(step_.step, subnet, inputs);
  }

 private:
  const StepContext& step_;
  BoundResources* const slots_;
};

}  // namespace

LateStep::LateStep(StepContext& context)
    : context_(context),
      services_(context.services()),
      plan_(services_.plan),
      plan_step_(context.planned()),
      work_(plan_step_.on_device.get()),
      device_(work_ ? plan_.devices[work_->device - 1u].device : nullptr),
      outputs_(plan_step_.outputs.size()) {
  types_.resize(plan_step_.outputs.size());
  operand_contents_.resize(plan_step_.inputs.size());
  known_.resize(plan_step_.inputs.size());
  for (const KnownInput& known : plan_.known_inputs)
    for (size_t i = 0; i < known_.size(); ++i)
      if (plan_step_.inputs[i].value == plan_.inputs[known.input]) known_[i] = known.content->data;
  if (!device_) return;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ValueId value = plan_step_.outputs[i].value;
    const bool to_host = value.valid() && plan_.values[value.index].place.device == 0;
    outputs_[i].memory = GrowingBuffer(device_, to_host);
  }
  extents_there_ = GrowingBuffer(device_);
  extents_ = GrowingBuffer(device_, true);
  if (!work_->from_host) scratch_ = GrowingBuffer(device_);
  data_scratch_ = GrowingBuffer(device_);
}

// True if the device plugin launches a kernel that was written for another kind of device.
bool LateStep::launched() const {
  return work_ && work_->kind == DeviceWork::Kind::launch;
}

int64_t LateStep::unplanned_bytes(uint8_t device) const {
  int64_t total = 0;
  const auto add = [&](const GrowingBuffer& buffer) {
    if (device == (buffer.on_device() ? work_->device : 0)) total += buffer.bytes();
  };
  for (const GrowingBuffer* buffer : {&scratch_, &data_scratch_, &thread_scratch_, &extents_there_, &extents_}) add(*buffer);
  for (const Output& output : outputs_) add(output.memory);
  return total;
}

// Inference may read only contents that are compared from run to run: shape operands, constants, and inputs that the plan was made for.
Status LateStep::infer_outputs() {
  const heddle_run_context& c = context_.abi();
  std::vector<heddle_tensor> storage;
  std::vector<const heddle_tensor*> inputs;
  views(storage, inputs);
  for (uint32_t i = 0; i < c.input_count; ++i)
    if (c.inputs[i] &&
        (c.inputs[i]->space == HEDDLE_SPACE_DEVICE || (!decides_shapes(i) && !(c.inputs[i]->flags & HEDDLE_TENSOR_CONSTANT))))
      storage[i].data = const_cast<std::byte*>(known_[i]);
  std::vector<char> wanted;
  for (const Operand& out : plan_step_.outputs) wanted.push_back(out.value.valid() ? 1 : 0);
  LateServices services(context_, nullptr);
  const OperatorSchema& schema = plan_step_.call->schema();
  const AttributeTable& attributes = plan_step_.call->attributes()->table;
  HEDDLE_CHECK(infer_operator(schema, attributes, inputs, wanted, types_, &services));
  if (schema.op->subnets) HEDDLE_CHECK(ask_subnets(schema, attributes, inputs, wanted, services));
  for (size_t i = 0; i < types_.size(); ++i) {
    const DType planned = wanted[i] ? plan_.values[plan_step_.outputs[i].value.index].type.dtype : types_[i].dtype;
    if (types_[i].dtype != planned)
      return {Code::dtype_mismatch,
              fmt::format("output {} is {}, the plan took it for {}", i, to_string(types_[i].dtype), to_string(planned))};
  }
  return {};
}

// Rebuilds the kernel call if ranks have changed, since kernels may depend on ranks when they are created. True: it was rebuilt.
bool LateStep::adopt_ranks() {
  std::vector<int> ranks;
  for (size_t i = 0; i < input_shapes_.size(); ++i) ranks.push_back(context_.abi().inputs[i] ? input_shapes_[i].rank() : 0);
  for (const TensorType& type : types_) ranks.push_back(type.shape.rank());
  if (kernel_call_ && ranks == ranks_) return false;
  kernel_call_ = std::make_unique<KernelCall>(*plan_step_.call, ranks);
  ranks_ = std::move(ranks);
  return true;
}

// Makes the kernel once, and again if it does not support the extents of this run.
Status LateStep::prepare() {
  LateServices services(context_, &resources_);
  const heddle_run_context& c = context_.abi();
  std::vector<heddle_tensor> storage;
  std::vector<const heddle_tensor*> inputs;
  views(storage, inputs);
  for (heddle_tensor& view : storage) view.data = nullptr;
  // A kernel that is launched sees everything on the host.
  std::vector<heddle_tensor> results(launched() ? c.output_count : 0);
  std::vector<const heddle_tensor*> result_views(c.outputs, c.outputs + c.output_count);
  for (size_t i = 0; i < results.size(); ++i)
    if (c.outputs[i]) result_views[i] = &(results[i] = *c.outputs[i]);
  for (std::vector<heddle_tensor>* views : {&storage, &results})
    for (heddle_tensor& view : *views)
      if (launched()) view.space = HEDDLE_SPACE_HOST, view.data = nullptr;
  PrepareRequest request;
  request.inputs = inputs;
  request.outputs = result_views;
  request.max_threads = plan_.max_threads;
  request.scratch_limit = plan_.limits.plan_bytes;
  if (adopt_ranks()) {
    made_ = {};
    resources_ = {};
  }
  if (made_.kernel) {
    Status again = prepare_kernel(made_, request, &services);
    // Bind again too: an earlier bind may have failed after the kernel was made.
    if (again.ok()) return bind_resources();
    if (again.code() != Code::unsupported) return again;
  }
  const KernelCall& call = *kernel_call_;
  const auto next = [&](const KernelEntry& refused) {
    const KernelEntry* other = call.find(&refused);
    const heddle_kernel& planned = *plan_step_.kernel->kernel;
    const auto takes_over = [&](const heddle_kernel& k) {
      return k.flags == planned.flags && (!work_ || std::string_view(k.device_kind) == planned.device_kind);
    };
    while (other && !takes_over(*other->kernel)) other = call.find(other);
    made_ = {};
    resources_ = {};
    return other;
  };
  made_ = {};
  resources_ = {};
  HEDDLE_CHECK(make_kernel(call, *plan_step_.kernel, next, &request, &services, &made_));
  return bind_resources();
}

bool LateStep::uses_communicator() const {
  return std::any_of(resources_.slots.begin(), resources_.slots.end(), [](const ResourceSlot& slot) { return slot.of_communicator(); });
}

// Binds the resources of the stream that the step is enqueued on, and of the run.
Status LateStep::bind_resources() {
  HEDDLE_CHECK(services_.resources.bind(context_.step, work_ ? context_.abi().stream : nullptr, resources_.slots, &resource_pointers_));
  bound_ = true;
  return {};
}

// A launch has the scratch of its one thread after the step's; a kernel that only moves data has its step scratch on the host.
Status LateStep::grow_scratch() {
  int64_t of_step = made_.scratch_bytes, of_threads = align_up(made_.thread_scratch_bytes, arena_alignment) * plan_.max_threads;
  if (launched()) {
    thread_scratch_at_ = align_up(of_step, arena_alignment);
    of_step = thread_scratch_at_ + made_.thread_scratch_bytes;
    of_threads = 0;
  } else if (work_ && work_->from_host && made_.data_scratch_bytes > 0) {
    of_step = made_.data_scratch_at;
    HEDDLE_CHECK(data_scratch_.grow(made_.data_scratch_bytes));
  }
  HEDDLE_CHECK(scratch_.grow(of_step));
  return thread_scratch_.grow(of_threads);
}

// Infers, places and prepares, unless extents and contents are those of the last run.
Status LateStep::find_extents() {
  HEDDLE_CHECK(check_extents());
  try {
    if (!same_extents()) {
      ready_ = false;
      HEDDLE_CHECK(infer_outputs());
      HEDDLE_CHECK(place_outputs());
      hide_dynamic_outputs();
      if (!work_ || work_->kind != DeviceWork::Kind::copy) HEDDLE_CHECK(prepare());
      HEDDLE_CHECK(grow_scratch());
      ready_ = true;
    } else if ((work_ && !bound_) || uses_communicator()) {  // the context has moved since, or the objects are those of another run
      HEDDLE_CHECK(bind_resources());
    }
    return open();
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, "no memory for dynamic values"};
  }
}

// Sets up call_: the step's context with true extents in its inputs. It stays valid until the next run.
Status LateStep::open() {
  hide_dynamic_outputs();
  HEDDLE_CHECK(open_extents());
  call_ = context_.abi();
  views(input_views_, inputs_);
  for (uint32_t i = 0; i < call_.input_count; ++i) {
    if (!call_.inputs[i]) continue;
    input_views_[i].flags = call_.inputs[i]->flags;
    input_views_[i].layout = call_.inputs[i]->layout;
  }
  call_.resources = resource_pointers_.data();
  call_.resource_count = static_cast<uint32_t>(resource_pointers_.size());
  call_.inputs = inputs_.data();
  call_.state = made_.state.get();
  call_.scratch = scratch_.data();
  if (made_.data_scratch_bytes > 0)
    call_.data_scratch = work_ && work_->from_host ? data_scratch_.data() : scratch_.data() + made_.data_scratch_at;
  else
    call_.data_scratch = nullptr;
  return {};
}

// Takes over the extents that the kernel wrote and checks its outputs. If the kernel failed, returns its error.
Status LateStep::close(heddle_status status) {
  const Status extents = close_extents();
  if (status == HEDDLE_OK) return extents.ok() ? check_dynamic_outputs() : extents;
  return services_.failures.of_kernel(context_.step, status);
}

// REQUIRES: no tile has run; called by one thread.
heddle_status LateStep::resolve() {
  const Status status = find_extents();
  if (status.ok()) {
    resolved_in_ = services_.scope.run();
    return HEDDLE_OK;
  }
  services_.failures.note_cause(context_.step, status);
  return status_of(status.code());
}

// Runs the tiles of the kernel that map to [begin, end) of tiles(). Whatever their number, each lies in one range.
heddle_status LateStep::run(int64_t begin, int64_t end) {
  if (resolved_in_ != services_.scope.run()) {  // all tiles in one call
    if (const heddle_status status = resolve(); status != HEDDLE_OK) return status;
  }
  const TileSpan own = tiles_behind({begin, end}, tiles(), made_.tiles);
  if (own.begin == own.end) return HEDDLE_OK;
  return run_tiles(services_.scope, context_.step, made_.kernel->kernel->run, &call_, own,
                   made_.cost_ns / static_cast<double>(made_.tiles));
}

heddle_status LateStep::run_whole(bool resumed) {
  const heddle_status status = resumed ? HEDDLE_OK : resolve();
  if (status != HEDDLE_OK || made_.tiles == 0) return status;
  call_.resumed = resumed ? 1 : 0;
  return call_run({made_.kernel->kernel->run, &call_, 1}, 0, made_.tiles);
}

heddle_status LateStep::call_finish() noexcept {
  const heddle_finish_function finish = made_.kernel->kernel->finish;
  try {
    return finish ? finish(&call_) : HEDDLE_OK;
  } catch (...) {
    return say_threw(&call_);
  }
}

Status LateStep::start(PendingSteps& pending) {
  HEDDLE_CHECK(find_extents());
  const uint32_t step = context_.step;
  pending.set(step, made_.kernel->kernel, &call_);
  pending.starting(step);
  if (made_.tiles == 0) {  // nothing to do
    pending.publish(step, HEDDLE_OK);
    pending.started(step, HEDDLE_OK);
    return {};
  }
  heddle_status status = HEDDLE_OK;
  try {
    status = made_.kernel->kernel->run(&call_, 0, made_.tiles);
  } catch (...) {
    status = say_threw(&call_);
  }
  status = pending.started(step, status);
  return status == HEDDLE_OK ? Status() : close(status);
}

heddle_status LateStep::enqueue(bool fenced) {
  if (const heddle_status status = resolve(); status != HEDDLE_OK) return status;
  const DeviceWorker::StepKernel kernel = {made_.kernel ? made_.kernel->kernel : nullptr, made_.tiles, scratch_.bytes(),
                                           thread_scratch_at_};
  heddle_status status = services_.devices->worker().enqueue(context_.step, &call_, kernel, fenced);
  if (status == HEDDLE_OK) status = fetch_extents();
  if (status != HEDDLE_OK) return status;
  const Status closed = close(status);
  if (closed.ok()) return HEDDLE_OK;
  services_.failures.note_cause(context_.step, closed);
  return status_of(closed.code());
}

Status LateStep::finish() {
  return close(call_finish());
}

}  // namespace heddle

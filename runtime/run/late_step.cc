#include "run/late_step.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/text.h"
#include "infer/infer_operator.h"
#include "plugin/attributes.h"
#include "plugin/host.h"
#include "plugin/kernel_guard.h"
#include "run/execution.h"

namespace heddle {
namespace {

std::mutex creation_mutex;  // KernelCall::create is not made for several threads; late kernels are created once per context

// Prepacking and subnets are for steps that were planned.
class LateServices : public CallServices {
 public:
  void* resource(const std::string& name, std::string& error) override {
    error = "resource " + quoted(name) + " is not available to a step with dynamic shapes";
    return nullptr;
  }
  const void* prepack(uint32_t, const std::string&, uint64_t, heddle_prepack_fill, void*, std::string& error) override {
    error = "constants of a step with dynamic shapes are not packed";
    return nullptr;
  }
  heddle_status infer_subnet(const heddle_subnet*, const heddle_tensor* const*, uint32_t, heddle_type* const*, uint32_t,
                             std::string& error) override {
    error = "subnets with dynamic shapes are not supported yet: give the net's inputs static shapes";
    return HEDDLE_ERROR_UNSUPPORTED;
  }
};

}  // namespace

LateStep::LateStep(Execution& owner, uint32_t step) : owner_(owner), step_(step), plan_step_(owner.plan().steps[step]) {
  buffers_.resize(plan_step_.outputs.size());
  types_.resize(plan_step_.outputs.size());
  operand_contents_.resize(plan_step_.inputs.size());
}

LateStep::~LateStep() {
  if (kernel_) destroy_state(*kernel_, state_);
}

heddle_status LateStep::run(const heddle_run_context* context, int64_t, int64_t) {
  Execution::StepContext& c = Execution::context_of(context);
  const Status status = c.owner->late_[c.step]->execute();
  if (status.ok()) return HEDDLE_OK;
  const std::string& text = status.diagnostic().message;
  c.owner->note_failure(c.step, HEDDLE_ERROR_INVALID, false, text.data(), text.size());
  switch (status.code()) {
    case Code::limit_exceeded:
    case Code::out_of_memory:
      return HEDDLE_ERROR_OUT_OF_MEMORY;
    case Code::cancelled:
      return HEDDLE_ERROR_CANCELLED;
    case Code::unsupported:
      return HEDDLE_ERROR_UNSUPPORTED;
    default:
      return HEDDLE_ERROR_INVALID;
  }
}

void LateStep::grow(Buffer& buffer, int64_t bytes) {
  if (buffer.bytes >= bytes && buffer.memory) return;
  buffer.memory = Blob::allocate(DType::u8, Shape{std::max<int64_t>(bytes, 1)}, &buffer.data);
  buffer.bytes = bytes;
}

int64_t LateStep::unplanned_bytes() const {
  int64_t total = scratch_.bytes + thread_scratch_.bytes;
  for (const Buffer& b : buffers_) total += b.memory ? b.bytes : 0;
  return total;
}

void* LateStep::allocate_output(uint32_t output, const int64_t* dims, int32_t rank) {
  if (output >= buffers_.size() || rank < 0 || rank > max_rank || !plan_step_.outputs[output].value.valid()) return nullptr;
  const PlanValue& value = owner_.plan().values[plan_step_.outputs[output].value.index];
  const Shape shape(dims, rank);
  int64_t bytes = 0;
  if (!checked_byte_size(value.type.dtype, shape, &bytes) || bytes > owner_.plan().limits.tensor_bytes) return nullptr;
  heddle_tensor& view = *owner_.contexts_[step_].abi.outputs[output];
  if (value.placement.kind == Placement::Kind::unplanned) {
    grow(buffers_[output], bytes);
    view.data = buffers_[output].data;
  } else if (bytes > value.type.byte_size()) {
    return nullptr;
  }
  buffers_[output].shape = shape;
  view.dims = buffers_[output].shape.data();
  view.rank = rank;
  view.element_count = shape.element_count();
  view.byte_size = static_cast<uint64_t>(bytes);
  return view.data;
}

// True extents and operand contents against those of the last run.
bool LateStep::same_extents() {
  bool same = ready_;
  const heddle_run_context& c = owner_.contexts_[step_].abi;
  input_shapes_.resize(c.input_count);
  for (uint32_t i = 0; i < c.input_count; ++i) {
    if (!c.inputs[i]) continue;
    const heddle_tensor& in = *c.inputs[i];
    Shape shape(in.dims, in.rank);
    if (in.extent && in.extent_axis >= 0) shape[in.extent_axis] = *in.extent;
    same = same && shape == input_shapes_[i];
    input_shapes_[i] = shape;
    const heddle_port* port = plan_step_.call->schema().input_port(i);
    if (!port || !(port->flags & HEDDLE_PORT_SHAPE_OPERAND)) continue;
    const auto bytes = static_cast<size_t>(byte_width(static_cast<DType>(in.dtype)) * shape.element_count());
    std::vector<std::byte>& known = operand_contents_[i];
    if (known.size() != bytes || (bytes > 0 && std::memcmp(known.data(), in.data, bytes) != 0)) {
      same = false;
      known.assign(static_cast<const std::byte*>(in.data), static_cast<const std::byte*>(in.data) + bytes);
    }
  }
  return same;
}

Status LateStep::infer_outputs() {
  const heddle_run_context& c = owner_.contexts_[step_].abi;
  std::vector<heddle_tensor> views(c.input_count);
  std::vector<const heddle_tensor*> inputs(c.input_count, nullptr);
  for (uint32_t i = 0; i < c.input_count; ++i) {
    if (!c.inputs[i]) continue;
    views[i] = tensor_view(static_cast<DType>(c.inputs[i]->dtype), input_shapes_[i], c.inputs[i]->data);
    inputs[i] = &views[i];
  }
  std::vector<char> wanted;
  for (const Operand& out : plan_step_.outputs) wanted.push_back(out.value.valid() ? 1 : 0);
  LateServices services;
  return infer_operator(plan_step_.call->schema(), plan_step_.call->attributes()->table, inputs, wanted, types_, &services);
}

Status LateStep::place_outputs() {
  const bool own = (kernel_->kernel->flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS) != 0;
  for (uint32_t i = 0; i < types_.size(); ++i) {
    if (!plan_step_.outputs[i].value.valid()) continue;
    if (types_[i].dynamic) {
      if (!own) return {Code::unsupported, "output " + std::to_string(i) + " has no known extents even now"};
      continue;
    }
    const PlanValue& value = owner_.plan().values[plan_step_.outputs[i].value.index];
    const int64_t limit = owner_.plan().limits.tensor_bytes;
    if (types_[i].byte_size() > limit)
      return {Code::limit_exceeded, "output " + quoted(value.name) + " would take " + human_bytes(types_[i].byte_size()) +
                                        ", the limit tensor_bytes is " + human_bytes(limit)};
    if (types_[i].byte_size() > 0 && !allocate_output(i, types_[i].shape.data(), types_[i].shape.rank()) && types_[i].byte_size() > 0)
      return {Code::shape_mismatch, "output " + quoted(value.name) + " has shape " + types_[i].shape.text() +
                                        ", more than was planned for " + value.type.shape.text()};
    if (types_[i].byte_size() == 0) allocate_output(i, types_[i].shape.data(), types_[i].shape.rank());
  }
  return {};
}

Status LateStep::prepare() {
  LateServices services;
  if (!kernel_) {
    const std::lock_guard lock(creation_mutex);
    kernel_ = plan_step_.kernel;
    HEDDLE_CHECK(plan_step_.call->create(*kernel_, &services, &state_));
  }
  HEDDLE_CHECK(place_outputs());
  prepared_ = {};
  prepared_.struct_size = sizeof(prepared_);
  prepared_.tile_count = 1;
  prepared_.max_threads = 1;
  if (!kernel_->kernel->prepare) return {};
  const heddle_run_context& c = owner_.contexts_[step_].abi;
  std::vector<heddle_tensor> views(c.input_count);
  std::vector<const heddle_tensor*> inputs(c.input_count, nullptr);
  for (uint32_t i = 0; i < c.input_count; ++i) {
    if (!c.inputs[i]) continue;
    views[i] = tensor_view(static_cast<DType>(c.inputs[i]->dtype), input_shapes_[i], nullptr);
    inputs[i] = &views[i];
  }
  PrepareCall call;
  call.services = &services;
  call.abi = prepared_;
  call.abi.host = prepare_host();
  call.abi.input_count = c.input_count;
  call.abi.output_count = c.output_count;
  call.abi.inputs = inputs.data();
  call.abi.outputs = c.outputs;
  call.abi.state = state_;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = kernel_->kernel->prepare(&call.abi);
  } catch (...) {
    call.error.text = "prepare threw an exception across the plugin boundary";
  }
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, call.error);
  prepared_ = call.abi;
  return check_prepared(*kernel_, prepared_, owner_.plan().limits.plan_bytes);
}

Status LateStep::execute() {
  HEDDLE_CHECK(owner_.check_extents());
  try {
    if (!same_extents()) {
      ready_ = false;
      HEDDLE_CHECK(infer_outputs());
      HEDDLE_CHECK(prepare());
      grow(scratch_, static_cast<int64_t>(prepared_.scratch_bytes));
      grow(thread_scratch_, static_cast<int64_t>(prepared_.thread_scratch_bytes));
      ready_ = true;
    }
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, "no memory for dynamic values"};
  }
  // The step's own context with true extents in its inputs.
  Execution::StepContext call = owner_.contexts_[step_];
  std::vector<heddle_tensor> views(call.abi.input_count);
  std::vector<const heddle_tensor*> inputs(call.abi.input_count, nullptr);
  for (uint32_t i = 0; i < call.abi.input_count; ++i) {
    if (!call.abi.inputs[i]) continue;
    views[i] = *call.abi.inputs[i];
    views[i].dims = input_shapes_[i].data();
    views[i].element_count = input_shapes_[i].element_count();
    views[i].byte_size = static_cast<uint64_t>(views[i].element_count * byte_width(static_cast<DType>(views[i].dtype)));
    inputs[i] = &views[i];
  }
  call.abi.inputs = inputs.data();
  call.abi.state = state_;
  call.abi.scratch = scratch_.data;
  heddle_status status = HEDDLE_OK;
  call.thread_scratch = thread_scratch_.data;
  try {
    if (prepared_.tile_count > 0) status = kernel_->kernel->run(&call.abi, 0, prepared_.tile_count);
    if (status == HEDDLE_OK && kernel_->kernel->finish) status = kernel_->kernel->finish(&call.abi);
  } catch (...) {
    status = HEDDLE_ERROR_INTERNAL;
  }
  if (status == HEDDLE_OK) return {};
  return {status == HEDDLE_ERROR_CANCELLED ? Code::cancelled : Code::kernel_failed, owner_.failure_text(step_)};
}

}  // namespace heddle

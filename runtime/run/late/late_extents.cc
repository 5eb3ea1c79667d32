// The extents of a late step (LateStep): determined from those of its inputs, given to its outputs with memory, and read back from its
// kernel.
#include <fmt/format.h>

#include <cstring>

#include "base/checked.h"
#include "base/text/text.h"
#include "plugin/infer_operator.h"
#include "run/late/late_step.h"
#include "run/step_contexts.h"

namespace heddle {
namespace {

Status check_extent(uint32_t input, int64_t extent, int64_t bound) {
  if (extent >= 0 && extent <= bound) return {};
  return {Code::kernel_failed,
          fmt::format("input {} has extent {} where the bound is {}: the kernel that wrote it is wrong", input, extent, bound)};
}

}  // namespace

Status check_input_extents(const heddle_run_context& context) {
  for (uint32_t i = 0; i < context.input_count; ++i) {
    const heddle_tensor* in = context.inputs[i];
    if (in && in->extent && in->extent_axis >= 0) HEDDLE_CHECK(check_extent(i, *in->extent, in->dims[in->extent_axis]));
  }
  return {};
}

Status check_written_extents(const heddle_run_context& context) {
  for (uint32_t i = 0; i < context.output_count; ++i) {
    const heddle_tensor* const out = context.outputs[i];
    if (!out || !out->extent || out->extent_axis < 0 || out->space != HEDDLE_SPACE_HOST) continue;
    if (*out->extent < 0 || *out->extent > out->dims[out->extent_axis])
      return {Code::kernel_failed,
              fmt::format("wrote extent {}, the bound is {}, of output {}", *out->extent, out->dims[out->extent_axis], i),
              "write an extent from 0 to its bound"};
  }
  return {};
}

Status LateStep::check_extents() const {
  const heddle_run_context& c = context_.abi();
  for (uint32_t i = 0; i < c.input_count; ++i)
    if (const int64_t* const extent = c.inputs[i] ? extent_of(i) : nullptr)
      HEDDLE_CHECK(check_extent(i, *extent, c.inputs[i]->dims[c.inputs[i]->extent_axis]));
  return {};
}

Status LateStep::place_output(uint32_t output, const Shape& shape) {
  const PlanValue& value = plan_.values[plan_step_.outputs[output].value.index];
  int64_t bytes = 0;
  if (!checked_byte_size(value.type.dtype, shape, &bytes) || bytes > plan_.limits.tensor_bytes)
    return over_limit(plan_.limits, &Limits::tensor_bytes, fmt::format("output {} would be {}", quoted(value.name), shape.text()));
  heddle_tensor& view = *context_.abi().outputs[output];
  if (value.place.kind == MemoryPlace::Kind::unplanned) {
    HEDDLE_CHECK(outputs_[output].memory.grow(bytes));
    view.data = outputs_[output].memory.data();
  } else if (bytes > value.type.byte_size()) {
    return {Code::shape_mismatch,
            fmt::format("output {} has shape {}, more than was planned for {}", quoted(value.name), shape.text(), value.type.shape.text())};
  }
  set_extents(output, shape);
  return {};
}

Result<void*> LateStep::allocate_output(uint32_t output, const int64_t* dims, int32_t rank) {
  if (output >= outputs_.size())
    return Status(Code::kernel_failed, fmt::format("the kernel asks for memory for output {} of {}", output, outputs_.size()),
                  "number outputs from 0 to output_count - 1");
  if (!plan_step_.outputs[output].value.valid())
    return Status(Code::kernel_failed, fmt::format("the kernel asks for memory for output {}, which is not asked for", output),
                  "leave out outputs whose view is null");
  HEDDLE_CHECK(check_asked_output(plan_step_.call->schema().op->subnets != nullptr, output, types_[output], dims, rank));
  HEDDLE_CHECK(place_output(output, Shape(dims, rank)));
  return context_.abi().outputs[output]->data;
}

bool LateStep::decides_shapes(uint32_t input) const {
  const heddle_port* port = plan_step_.call->schema().input_port(input);
  return port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND);
}

// Returns the true extent of an input; null: it has none of its own. Extents on a device were copied to the host before the step.
const int64_t* LateStep::extent_of(uint32_t input) const {
  const heddle_tensor& in = *context_.abi().inputs[input];
  if (!in.extent || in.extent_axis < 0) return nullptr;
  if (in.space != HEDDLE_SPACE_DEVICE) return in.extent;
  const auto* const staged = reinterpret_cast<const int64_t*>(services_.memory.staging() + plan_.extent_staging);
  return staged + plan_.values[plan_step_.inputs[input].value.index].extent_slot;
}

// Compares true extents and operand contents with those of the last run, and stores them. True: they are the same.
bool LateStep::same_extents() {
  bool same = ready_;
  const heddle_run_context& c = context_.abi();
  input_shapes_.resize(c.input_count);
  for (uint32_t i = 0; i < c.input_count; ++i) {
    if (!c.inputs[i]) continue;
    const heddle_tensor& in = *c.inputs[i];
    Shape shape(in.dims, in.rank);
    if (const int64_t* const extent = extent_of(i)) shape[in.extent_axis] = *extent;
    same = same && shape == input_shapes_[i];
    input_shapes_[i] = shape;
    if (!decides_shapes(i)) continue;
    const auto bytes = static_cast<size_t>(byte_width(static_cast<DType>(in.dtype)) * shape.element_count());
    std::vector<std::byte>& known = operand_contents_[i];
    if (known.size() != bytes || (bytes > 0 && std::memcmp(known.data(), in.data, bytes) != 0)) {
      same = false;
      known.assign(static_cast<const std::byte*>(in.data), static_cast<const std::byte*>(in.data) + bytes);
    }
  }
  return same;
}

void LateStep::views(std::vector<heddle_tensor>& storage, std::vector<const heddle_tensor*>& pointers) const {
  const heddle_run_context& c = context_.abi();
  storage.resize(c.input_count);
  pointers.assign(c.input_count, nullptr);
  for (uint32_t i = 0; i < c.input_count; ++i) {
    if (!c.inputs[i]) continue;
    storage[i] = tensor_view(static_cast<DType>(c.inputs[i]->dtype), input_shapes_[i], c.inputs[i]->data);
    storage[i].space = c.inputs[i]->space;
    pointers[i] = &storage[i];
  }
}

Status LateStep::place_outputs() {
  const bool own = (plan_step_.kernel->kernel->flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS) != 0;
  for (uint32_t i = 0; i < types_.size(); ++i) {
    if (!plan_step_.outputs[i].value.valid()) continue;
    if (types_[i].dynamic) {
      if (!own) return {Code::unsupported, fmt::format("output {} has no known extents even now", i)};
      continue;
    }
    const PlanValue& value = plan_.values[plan_step_.outputs[i].value.index];
    const Limits& limits = plan_.limits;
    if (types_[i].byte_size() > limits.tensor_bytes)
      return over_limit(limits, &Limits::tensor_bytes,
                        fmt::format("output {} would take {}", quoted(value.name), human_bytes(types_[i].byte_size())));
    HEDDLE_CHECK(place_output(i, types_[i].shape));
  }
  return {};
}

// Clears the views of dynamic outputs, which have no extents until the kernel sets them.
void LateStep::hide_dynamic_outputs() {
  for (uint32_t i = 0; i < types_.size(); ++i) {
    heddle_tensor* view = context_.abi().outputs[i];
    if (!view || !types_[i].dynamic) continue;
    view->flags |= HEDDLE_TENSOR_DYNAMIC;
    view->data = nullptr;
    view->dims = types_[i].shape.data();
    view->rank = types_[i].shape.rank();
    view->element_count = 0;
    view->byte_size = 0;
  }
}

// True for an output that the plan took for dynamic and inference now gives a bound: only this step knows its extent.
bool LateStep::has_own_extent(size_t output) const {
  const Operand& out = plan_step_.outputs[output];
  return out.value.valid() && !types_[output].dynamic && types_[output].bounded_axis >= 0 && plan_.values[out.value.index].extent_slot < 0;
}

Status LateStep::open_extents() {
  for (size_t i = 0; i < types_.size(); ++i) {
    const Operand& out = plan_step_.outputs[i];
    if (!out.value.valid()) continue;
    heddle_tensor& view = *context_.abi().outputs[i];
    if (plan_.values[out.value.index].extent_slot < 0) {  // a failed run may have left it set
      view.extent = nullptr;
      view.extent_axis = -1;
    }
    if (!has_own_extent(i)) continue;
    const auto bytes = static_cast<int64_t>(types_.size() * sizeof(int64_t));
    HEDDLE_CHECK(extents_.grow(bytes));
    if (device_) HEDDLE_CHECK(extents_there_.grow(bytes));
    set_extents(i, types_[i].shape);
    reinterpret_cast<int64_t*>(extents_.data())[i] = 0;
    view.extent = reinterpret_cast<int64_t*>(device_ ? extents_there_.data() : extents_.data()) + i;
    view.extent_axis = types_[i].bounded_axis;
  }
  return {};
}

// Fetches the extents of outputs for which the plan has no slot: the step is done when the host knows them.
heddle_status LateStep::fetch_extents() {
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!has_own_extent(i)) continue;
    int64_t* const to = reinterpret_cast<int64_t*>(extents_.data()) + i;
    const heddle_status status =
        services_.devices->worker().fetch(context_.step, to, context_.abi().outputs[i]->extent, sizeof(*to), &context_);
    if (status == HEDDLE_OK) continue;
    services_.failures.note_behind_device(context_.step);
    return status;
  }
  return HEDDLE_OK;
}

// Sets the extents that the kernel wrote in the views: from here on they are like those of any other dynamic value.
Status LateStep::close_extents() {
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!has_own_extent(i)) continue;
    heddle_tensor& view = *context_.abi().outputs[i];
    Shape shape = types_[i].shape;
    const int32_t axis = types_[i].bounded_axis;
    const int64_t extent = reinterpret_cast<const int64_t*>(extents_.data())[i];
    view.extent = nullptr;
    view.extent_axis = -1;
    if (extent < 0 || extent > shape[axis])
      return {Code::kernel_failed, fmt::format("wrote extent {} of output {}, the bound is {}", extent, i, shape[axis]),
              "write an extent from 0 to its bound"};
    shape[axis] = extent;
    set_extents(i, shape);
  }
  return {};
}

void LateStep::set_extents(size_t output, const Shape& shape) {
  heddle_tensor& view = *context_.abi().outputs[output];
  outputs_[output].shape = shape;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_DYNAMIC);
  view.dims = outputs_[output].shape.data();
  view.rank = shape.rank();
  view.element_count = shape.element_count();
  view.byte_size = static_cast<uint64_t>(byte_width(static_cast<DType>(view.dtype)) * shape.element_count());
}

Status LateStep::check_dynamic_outputs() const {
  for (uint32_t i = 0; i < types_.size(); ++i) {
    const heddle_tensor* view = context_.abi().outputs[i];
    if (!view || !(view->flags & HEDDLE_TENSOR_DYNAMIC)) continue;
    Status refused = services_.failures.refusal_of(context_.step);
    if (!refused.ok()) return refused;
    return {Code::kernel_failed, fmt::format("the kernel allocated no output {}", i),
            "call allocate_output for each dynamic output that is there, also for one without elements"};
  }
  return {};
}

}  // namespace heddle

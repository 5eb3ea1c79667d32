#include "compile/index_check.h"

#include <fmt/format.h>

#include "base/exceptions.h"

namespace heddle {
namespace {

// Returns the position of the first index outside [-count, count); -1: there is none.
template <class T>
int64_t first_outside(const void* data, int64_t length, int64_t count) {
  const T* const indices = static_cast<const T*>(data);
  // Without branches: every index of every run is checked here, and almost always none is outside.
  bool outside = false;
  for (int64_t i = 0; i < length; ++i) outside |= indices[i] < -count || indices[i] >= count;
  for (int64_t i = 0; outside; ++i)
    if (indices[i] < -count || indices[i] >= count) return i;
  return -1;
}

// Returns the number of elements; -1: it cannot be determined.
int64_t length_of(const heddle_tensor& tensor) {
  if (!tensor.extent) return tensor.element_count;
  return tensor.rank == 1 ? *tensor.extent : -1;
}

int64_t extent_of(const heddle_tensor& tensor, int32_t axis) {
  const int32_t at = axis < 0 ? axis + tensor.rank : axis;
  if (at < 0 || at >= tensor.rank) return -1;
  return tensor.extent && tensor.extent_axis == at ? *tensor.extent : tensor.dims[at];
}

int64_t index_at(const heddle_tensor& indices, int64_t i) {
  return indices.dtype == HEDDLE_I32 ? static_cast<const int32_t*>(indices.data)[i] : static_cast<const int64_t*>(indices.data)[i];
}

heddle_status run_check(const heddle_run_context* context, int64_t, int64_t) {
  std::optional<std::string> text;
  if (!without_exceptions(
          [&] { text = index_outside(*context->inputs[0], *context->inputs[1], *static_cast<const int32_t*>(context->state)); }))
    return HEDDLE_ERROR_OUT_OF_MEMORY;
  if (!text) return HEDDLE_OK;
  context->host->set_error(context->call, HEDDLE_ERROR_INVALID, text->data(), text->size());
  return HEDDLE_ERROR_INVALID;
}

heddle_kernel check_kernel() {
  heddle_kernel kernel = {};
  kernel.struct_size = sizeof(kernel);
  kernel.domain = "heddle";
  kernel.operator_name = "CheckIndices";
  kernel.device_kind = "cpu";
  kernel.run = run_check;
  kernel.destroy = [](void* state) { delete static_cast<int32_t*>(state); };
  return kernel;
}

}  // namespace

std::vector<CheckedInput> checked_inputs(const Plan& plan) {
  std::vector<char> made_in_phase(plan.values.size());
  for (uint32_t i = plan.graph.tail_begin; i < plan.graph.count; ++i)
    for (const Operand& out : plan.steps[i].outputs)
      if (out.value.valid()) made_in_phase[out.value.index] = 1;
  std::vector<CheckedInput> all;
  for (uint32_t i = plan.graph.tail_begin; i < plan.graph.count; ++i)
    for (const IndexInput& indices : *plan.steps[i].indices) {
      const ValueId value = plan.steps[i].inputs[indices.input].value;
      const DType dtype = plan.values[value.index].type.dtype;
      if ((dtype == DType::i32 || dtype == DType::i64) && !made_in_phase[value.index]) all.push_back({i, indices});
    }
  return all;
}

std::optional<std::string> index_outside(const heddle_tensor& indices, const heddle_tensor& of, int32_t axis) {
  const int64_t length = length_of(indices), count = extent_of(of, axis);
  if (!indices.data || length < 0 || count < 0) return std::nullopt;
  const int64_t at = indices.dtype == HEDDLE_I32 ? first_outside<int32_t>(indices.data, length, count)
                                                 : first_outside<int64_t>(indices.data, length, count);
  if (at < 0) return std::nullopt;
  return fmt::format("index {} is outside [{}, {}]: axis {} has {} elements", index_at(indices, at), -count, count - 1, axis, count);
}

const KernelEntry* index_check_kernel() {
  static const heddle_kernel kernel = check_kernel();
  static const KernelEntry entry = {&kernel, nullptr, "runtime:check_indices"};
  return &entry;
}

}  // namespace heddle

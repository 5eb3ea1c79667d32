#include "run/update_indices.h"

#include <fmt/format.h>

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

}  // namespace

UpdateIndices::UpdateIndices(const Plan& plan) {
  if (plan.graph.tail_begin == plan.graph.count) return;
  // Values that steps of the update phase produce do not exist yet when indices are checked.
  std::vector<char> made_late(plan.values.size());
  for (uint32_t i = plan.graph.tail_begin; i < plan.graph.count; ++i)
    for (const Operand& out : plan.steps[i].outputs)
      if (out.value.valid()) made_late[out.value.index] = 1;
  for (uint32_t i = plan.graph.tail_begin; i < plan.graph.count; ++i)
    for (const IndexInput& indices : plan.steps[i].indices) {
      const ValueId value = plan.steps[i].inputs[indices.input].value;
      const DType dtype = plan.values[value.index].type.dtype;
      const bool integers = dtype == DType::i32 || dtype == DType::i64;
      if (integers && !made_late[value.index] && plan.values[value.index].place.device == 0) steps_.push_back({i, indices});
    }
}

std::optional<UpdateIndices::Outside> UpdateIndices::find(const StepContexts& steps) const {
  for (const Checked& checked : steps_) {
    const heddle_run_context& context = steps.abi(checked.step);
    const heddle_tensor* const indices = context.inputs[checked.indices.input];
    const heddle_tensor* const of = context.inputs[checked.indices.of];
    if (!indices || !indices->data || !of) continue;
    const int64_t length = length_of(*indices), count = extent_of(*of, checked.indices.axis);
    if (length < 0 || count < 0) continue;
    const int64_t at = indices->dtype == HEDDLE_I32 ? first_outside<int32_t>(indices->data, length, count)
                                                    : first_outside<int64_t>(indices->data, length, count);
    if (at < 0) continue;
    return Outside{checked.step, fmt::format("index {} is outside [{}, {}]: axis {} has {} elements", index_at(*indices, at), -count,
                                             count - 1, checked.indices.axis, count)};
  }
  return std::nullopt;
}

}  // namespace heddle

// Building a Region: strides per input along the output's storage order, then merging of adjacent dimensions.
#include "shared/pointwise_region.h"

#include "shared/dense_layouts.h"
#include "shared/dims.h"

namespace heddle::operators {
namespace {

// Strides of `input` along the dimensions of `output`, in the output's storage order, 0 where it is repeated.
Status strides_in(const heddle_tensor& output, const heddle_tensor& input, const int* order, int64_t* strides) {
  int64_t own[HEDDLE_MAX_RANK] = {};
  strides_of(input, own);
  const int shift = output.rank - input.rank;
  for (int i = 0; i < output.rank; ++i) {
    const int axis = order[i] - shift;
    const int64_t extent = axis >= 0 ? input.dims[axis] : 1;
    if (axis < -output.rank || (extent != 1 && extent != output.dims[order[i]]))
      return invalid("an input of shape " + dims_text(dims_of(input)) + " does not broadcast to " + dims_text(dims_of(output)));
    strides[i] = extent == 1 ? 0 : own[axis];
  }
  return shift >= 0 ? Status() : invalid("an input has more dimensions than the output");
}

// True when dimension `i` continues dimension `last` of the region for every input.
bool merges(const Region::Input* full, uint32_t input_count, int i, const Region& region, int last, int64_t extent) {
  for (uint32_t k = 0; k < input_count; ++k)
    if (region.inputs[k].strides[last] != full[k].strides[i] * extent) return false;
  return true;
}

}  // namespace

Status make_region(const heddle_tensor& output, const heddle_tensor* const* inputs, uint32_t input_count, Region::Input* storage,
                   Region* region) {
  *region = {};
  region->inputs = storage;
  Region::Input* full = storage + input_count;  // before merging
  int order[HEDDLE_MAX_RANK];
  for (int i = 0; i < output.rank; ++i) order[i] = output.layout.rank == output.rank ? output.layout.order[i] : i;
  for (uint32_t k = 0; k < 2 * input_count; ++k) storage[k] = {};
  for (uint32_t k = 0; k < input_count; ++k)
    if (inputs[k])
      if (Status s = strides_in(output, *inputs[k], order, full[k].strides); !s.ok()) return s;
  for (int i = 0; i < output.rank; ++i) {
    const int64_t extent = output.dims[order[i]];
    region->element_count *= extent;
    if (extent == 1) continue;
    if (region->rank > 0 && merges(full, input_count, i, *region, region->rank - 1, extent)) {
      region->dims[region->rank - 1] *= extent;
    } else {
      region->dims[region->rank++] = extent;
    }
    for (uint32_t k = 0; k < input_count; ++k) region->inputs[k].strides[region->rank - 1] = full[k].strides[i];
  }
  if (region->rank == 0) region->dims[region->rank++] = 1;
  for (uint32_t k = 0; k < input_count; ++k) {
    Region::Input& input = region->inputs[k];
    input.linear = input.scalar = true;
    int64_t stride = 1;
    for (int i = region->rank - 1; i >= 0; --i) {
      input.linear = input.linear && (input.strides[i] == stride || region->dims[i] == 1);
      input.scalar = input.scalar && (input.strides[i] == 0 || region->dims[i] == 1);
      stride *= region->dims[i];
    }
  }
  return {};
}

}  // namespace heddle::operators

#include "support/dense_layouts.h"

#include "support/dims.h"

namespace heddle::cpu {

void strides_of(const heddle_tensor& tensor, int64_t* strides) {
  if (tensor.layout.rank != tensor.rank) {
    dense_strides(dims_of(tensor), strides);
    return;
  }
  int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    strides[tensor.layout.order[i]] = stride;
    stride *= tensor.dims[tensor.layout.order[i]];
  }
}

heddle_layout channels_last(int rank) {
  heddle_layout layout = {};
  layout.rank = static_cast<uint8_t>(rank);
  for (int i = 1; i + 1 < rank; ++i) layout.order[i] = static_cast<uint8_t>(i + 1);
  layout.order[rank - 1] = 1;
  return layout;
}

std::vector<heddle_format> uniform_formats(const CreateContext& context, uint32_t inputs, uint32_t outputs) {
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  std::vector<heddle_format> choices = {row_major};
  const int rank = context.input(0)->rank;
  if (rank < 3 || rank > 5 || inputs > HEDDLE_FORMAT_PORTS || outputs > HEDDLE_FORMAT_PORTS) return choices;
  heddle_format last = row_major;
  for (uint32_t i = 0; i < inputs; ++i) last.inputs[i] = channels_last(rank);
  for (uint32_t i = 0; i < outputs; ++i) last.outputs[i] = channels_last(rank);
  choices.push_back(last);
  return choices;
}

}  // namespace heddle::cpu

#include "support/dense_layouts.h"

namespace heddle::cpu {

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

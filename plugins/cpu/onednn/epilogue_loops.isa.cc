// Loops over the tiles of compute kernels. See epilogue_loops.h.
#include "onednn/epilogue_loops.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// Comparisons with a NaN are false, so a NaN is kept.
template <class V>
V clamped(V v, V lower, V upper) {
  v = v <= lower ? lower : v;
  return v >= upper ? upper : v;
}

void clamp_row(float* data, int64_t count, float lower, float upper) {
  const VF low = splat<VF>(lower), high = splat<VF>(upper);
  int64_t i = 0;
  for (; i + lanes<float> <= count; i += lanes<float>) store(data + i, clamped(load<VF>(data + i), low, high));
  for (; i < count; ++i) data[i] = clamped(data[i], lower, upper);
}

void clamp(float* data, int64_t row_stride, int64_t rows, int64_t columns, float lower, float upper) {
  if (row_stride == columns) return clamp_row(data, rows * columns, lower, upper);
  for (int64_t row = 0; row < rows; ++row) clamp_row(data + row * row_stride, columns, lower, upper);
}

}  // namespace

extern const EpilogueTable epilogue;
const EpilogueTable epilogue = {clamp};

}  // namespace heddle::cpu::HEDDLE_ISA

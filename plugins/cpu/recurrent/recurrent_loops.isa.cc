// The loops of recurrent_loops.h for one instruction set level.
#include "recurrent/recurrent_loops.h"

#include "vector/simd_math.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// The number of vectors of a panel, and of rows whose sums stay in registers beside them: of 32 registers or 16.
#if defined(__AVX512F__)
constexpr int panel_vectors = 4, max_rows = 6;
#else
constexpr int panel_vectors = 3, max_rows = 4;
#endif

template <class T, int rows>
void multiply_rows(const T* const* a, int64_t a_first, T* const* y, int64_t y_first, int64_t depth, const T* panel, bool adds) {
  using V = Vector<T>;
  constexpr int width = lanes<T>;
  V sums[rows][panel_vectors];
  const T* from[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    from[r] = a[r] + a_first;
#pragma GCC unroll 8
    for (int v = 0; v < panel_vectors; ++v) sums[r][v] = adds ? load<V>(y[r] + y_first + v * width) : splat<V>(T(0));
  }
  for (int64_t k = 0; k < depth; ++k, panel += panel_vectors * width) {
    V weights[panel_vectors];
#pragma GCC unroll 8
    for (int v = 0; v < panel_vectors; ++v) weights[v] = load<V>(panel + v * width);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const V factor = splat_from(from[r] + k);
#pragma GCC unroll 8
      for (int v = 0; v < panel_vectors; ++v) sums[r][v] = fma(factor, weights[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < panel_vectors; ++v) store(y[r] + y_first + v * width, sums[r][v]);
}

template <class T, int rows>
void multiply_at_most(const T* const* a, int64_t a_first, T* const* y, int64_t y_first, int64_t count, int64_t depth, const T* panel,
                      bool adds) {
  if (count == rows) return multiply_rows<T, rows>(a, a_first, y, y_first, depth, panel, adds);
  if constexpr (rows > 1) multiply_at_most<T, rows - 1>(a, a_first, y, y_first, count, depth, panel, adds);
}

// Multiplies in groups of nearly equal size: with one row alone the processor waits for its sums.
template <class T>
void multiply(const T* const* a, int64_t a_first, T* const* y, int64_t y_first, int64_t rows, int64_t depth, const T* panel, bool adds) {
  for (int64_t groups = (rows + max_rows - 1) / max_rows, r = 0; groups > 0; --groups) {
    const int64_t count = (rows - r + groups - 1) / groups;
    multiply_at_most<T, max_rows>(a + r, a_first, y + r, y_first, count, depth, panel, adds);
    r += count;
  }
}

template <VF function(VF)>
void apply(float* values, int64_t count) {
  for (int64_t i = 0; i < count; i += lanes<float>) store(values + i, function(load<VF>(values + i)));
}

void sigmoid_slopes(float* values, float* slopes, int64_t count) {
  for (int64_t i = 0; i < count; i += lanes<float>) {
    const VF x = load<VF>(values + i);
    // Computed at -|x|, where the derivative loses no precision.
    const VF small = sigmoid(cast_bits<VF>(cast_bits<VI>(x) | static_cast<int32_t>(0x80000000)));
    store(slopes + i, small * (1.0f - small));
    store(values + i, sigmoid(x));
  }
}
void tanh_slopes(float* values, float* slopes, int64_t count) {
  for (int64_t i = 0; i < count; i += lanes<float>) {
    const VF value = tanh(load<VF>(values + i));
    store(values + i, value);
    store(slopes + i, (1.0f - value) * (1.0f + value));
  }
}

}  // namespace

extern const RecurrentTable recurrent_table;
const RecurrentTable recurrent_table = {
    {panel_vectors * lanes<float>, multiply<float>, apply<sigmoid>, apply<tanh>, sigmoid_slopes, tanh_slopes},
    {panel_vectors * lanes<double>, multiply<double>, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace heddle::cpu::HEDDLE_ISA

// The loops of channels-last pooling, compiled once per instruction set level. See pooling_loops.h.
//
// Every lane does the same as the row-major loops of pooling_kernel.cc, in the same order: layouts give the same bits.
#include "pooling/pooling_loops.h"

#include "vector/narrow_loads.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

struct Max {
  template <class V>
  static V read(V x) {
    return x;
  }
  static VF combine(VF total, VF x) { return larger(x, total); }
};
struct Sum {
  template <class V>
  static V read(V x) {
    return x;
  }
  template <class V>
  static V combine(V total, V x) {
    return total + x;
  }
};
struct SumAbsolute : Sum {
  static VF read(VF x) { return abs(x); }
};
struct SumSquares : Sum {
  template <class V>
  static V read(V x) {
    return x * x;
  }
};

// A vector of a row, or its last elements, fewer than a vector.
template <class T>
VF get(const void* row, int64_t channel) {
  const T* x = static_cast<const T*>(row) + channel;
  if constexpr (sizeof(T) == sizeof(float))
    return load<VF>(x);
  else
    return load_narrow(x);
}
template <class T>
VF get(const void* row, int64_t channel, int64_t count) {
  T padded[lanes<float>] = {};
  __builtin_memcpy(padded, static_cast<const T*>(row) + channel, static_cast<size_t>(count) * sizeof(T));
  return get<T>(padded, 0);
}

template <class Op, class Get>
VF combine_column(const PoolRows& rows, Get get_row) {
  VF total = Op::read(get_row(rows.sources[0]));
  for (int64_t i = 1; i < rows.count; ++i) total = Op::combine(total, Op::read(get_row(rows.sources[i])));
  return total;
}

template <class Op, class T>
void combine_rows(const PoolRows& rows) {
  constexpr int64_t width = lanes<float>;
  int64_t c = 0;
  for (; c + width <= rows.channels; c += width) {
    const VF total = combine_column<Op>(rows, [&](const void* row) { return get<T>(row, c); });
    store(rows.y + c, rows.first ? total : Op::combine(load<VF>(rows.y + c), total));
  }
  const int64_t rest = rows.channels - c;
  if (rest == 0) return;
  VF total = combine_column<Op>(rows, [&](const void* row) { return get<T>(row, c, rest); });
  if (!rows.first) total = Op::combine(get<float>(rows.y, c, rest), total);
  __builtin_memcpy(rows.y + c, &total, static_cast<size_t>(rest) * sizeof(float));
}

template <class T>
constexpr PoolCombine combine = {combine_rows<Max, T>, combine_rows<Sum, T>, combine_rows<SumAbsolute, T>, combine_rows<SumSquares, T>};

void divide(float* y, int64_t channels, float divisor) {
  for (int64_t c = 0; c < channels; ++c) y[c] /= divisor;
}
void square_root(float* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] = __builtin_sqrtf(y[c]);
}
void add(const float* x, int64_t channels, float* y) {
  for (int64_t c = 0; c < channels; ++c) y[c] += x[c];
}
void keep_larger(const float* x, int64_t channels, int32_t position, float* best, int32_t* at) {
  constexpr int64_t width = lanes<float>;
  int64_t c = 0;
  for (; c + width <= channels; c += width) {
    const VF value = load<VF>(x + c), before = load<VF>(best + c);
    const VI is_new = (value > before) | (value != value);
    store(best + c, is_new ? value : before);
    store(at + c, is_new ? splat<VI>(position) : load<VI>(at + c));
  }
  for (; c < channels; ++c) {
    const bool is_new = x[c] > best[c] || x[c] != x[c];
    best[c] = is_new ? x[c] : best[c];
    at[c] = is_new ? position : at[c];
  }
}

}  // namespace

extern const PoolTable pooling;
const PoolTable pooling = {combine<float>, combine<Half>, combine<BrainHalf>, divide, square_root, add, keep_larger};

}  // namespace heddle::cpu::HEDDLE_ISA

// The loops of channels-last pooling, compiled once per instruction set level. See pooling_loops.h.
//
// Every lane does what the row-major loops of pooling.cc do, in the same order: layouts give the same bits.
#include "pooling/pooling_loops.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

struct Max {
  template <class V>
  static V read(V x) {
    return x;
  }
  static VF combine(VF total, VF x) { return larger(x, total); }
  static float combine(float total, float x) { return x > total || x != x ? x : total; }
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
  static float read(float x) { return __builtin_fabsf(x); }
};
struct SumSquares : Sum {
  template <class V>
  static V read(V x) {
    return x * x;
  }
};

// One vector of channels, or one channel.
template <class Op, class V>
V combine_column(const PoolRows& rows, int64_t channel) {
  auto at = [&](int64_t i) {
    V v;
    __builtin_memcpy(&v, rows.sources[i] + channel, sizeof(v));
    return Op::read(v);
  };
  V total = at(0);
  for (int64_t i = 1; i < rows.count; ++i) total = Op::combine(total, at(i));
  if (rows.first) return total;
  V before;
  __builtin_memcpy(&before, rows.y + channel, sizeof(before));
  return Op::combine(before, total);
}

template <class Op>
void combine_rows(const PoolRows& rows) {
  constexpr int64_t width = lanes<float>;
  int64_t c = 0;
  for (; c + width <= rows.channels; c += width) store(rows.y + c, combine_column<Op, VF>(rows, c));
  for (; c < rows.channels; ++c) rows.y[c] = combine_column<Op, float>(rows, c);
}

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
const PoolTable pooling = {
    combine_rows<Max>, combine_rows<Sum>, combine_rows<SumAbsolute>, combine_rows<SumSquares>, divide, square_root, add, keep_larger};

}  // namespace heddle::cpu::HEDDLE_ISA

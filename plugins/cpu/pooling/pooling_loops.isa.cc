// The loops of pooling, compiled once per instruction set level. See pooling_loops.h.
//
// Every lane does the same as pool_one() of pooling_kernel.cc, in the same order: layouts, and outputs at edges, give the same bits.
#include "pooling/pooling_loops.h"

#include "vector/gathers.h"
#include "vector/narrow_loads.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

struct Max {
  template <class V>
  static V read(V x) {
    return x;
  }
  template <class V>
  static V combine(V total, V x) {
    return larger(x, total);
  }
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
  static float read(float x) { return __builtin_fabsf(x); }
  static double read(double x) { return __builtin_fabs(x); }
  template <class V>
  static V read(V x) {
    if constexpr (sizeof(V{}[0]) == sizeof(float))
      return cast_bits<V>(cast_bits<decltype(x > x)>(x) & 0x7fffffff);
    else
      return cast_bits<V>(cast_bits<decltype(x > x)>(x) & 0x7fffffffffffffff);
  }
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
  const T* x = static_cast<const T*>(row) + channel;
  if constexpr (sizeof(T) == sizeof(float)) {
    return load_part(x, count, VF{});
  } else {
    T padded[lanes<float>] = {};
    __builtin_memcpy(padded, x, static_cast<size_t>(count) * sizeof(T));
    return get<T>(padded, 0);
  }
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
  const auto combined = [&](int64_t c) { return combine_column<Op>(rows, [&](const void* row) { return get<T>(row, c); }); };
  const int64_t rest = rows.channels % width, last = rows.channels - width;
  // The last vector overlaps the one before it, whose results it must not combine again.
  const VF before = rest > 0 && last >= 0 && !rows.first ? load<VF>(rows.y + last) : VF{};
  for (int64_t c = 0; c + width <= rows.channels; c += width)
    store(rows.y + c, rows.first ? combined(c) : Op::combine(load<VF>(rows.y + c), combined(c)));
  if (rest == 0) return;
  if (last >= 0) return store(rows.y + last, rows.first ? combined(last) : Op::combine(before, combined(last)));
  VF total = combine_column<Op>(rows, [&](const void* row) { return get<T>(row, 0, rest); });
  if (!rows.first) total = Op::combine(get<float>(rows.y, 0, rest), total);
  store_part(rows.y, total, rest);
}

template <class T>
constexpr PoolCombine combine = {combine_rows<Max, T>, combine_rows<Sum, T>, combine_rows<SumAbsolute, T>, combine_rows<SumSquares, T>};

// Every `stride`-th element from p on. With stride 2 a vector reads one element more than it keeps.
template <class V, int stride, class T, size_t... lane>
V load_every(const T* p, std::index_sequence<lane...>) {
  if constexpr (stride == 1 || sizeof...(lane) == 1)
    return load<V>(p);
  else
    return __builtin_shufflevector(load<V>(p), load<V>(p + sizeof...(lane)), (stride * static_cast<int>(lane))...);
}
// V: a vector of outputs, or one as a number. `fixed_taps`: their number along a line, 0: any. With stride 0 lanes are gathered from their
// `positions`.
template <class Op, int stride, int fixed_taps, class V, class T>
V combine_windows(const PoolLine<T>& line, int64_t output, [[maybe_unused]] const int32_t* positions = nullptr) {
  const int64_t first = output * line.stride, taps = fixed_taps > 0 ? fixed_taps : line.taps;
  const auto get = [&](int64_t row, int64_t tap) {
    const T* from = line.rows[row] + first + tap * line.dilation;
    if constexpr (stride == 0)
      return Op::read(gathered(from, positions));
    else
      return Op::read(load_every<V, stride>(from, std::make_index_sequence<sizeof(V) / sizeof(T)>()));
  };
  V total = get(0, 0);
  for (int64_t tap = 1; tap < taps; ++tap) total = Op::combine(total, get(0, tap));
  for (int64_t row = 1; row < line.row_count; ++row)
    for (int64_t tap = 0; tap < taps; ++tap) total = Op::combine(total, get(row, tap));
  return total;
}
// Computes outputs from `first` on by whole vectors, of which the last may overlap the one before it. Returns the next output.
template <class Op, int stride, int fixed_taps, class V, class T>
int64_t pool_vectors(const PoolLine<T>& line, int64_t first, int64_t last) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  const auto compute = [&](int64_t output) { store(line.y + output, combine_windows<Op, stride, fixed_taps, V>(line, output)); };
  if (last - first < width) return first;
  for (; first + width <= last; first += width) compute(first);
  if (first < last) compute(last - width);
  return last;
}
template <class Op, int stride, int fixed_taps, class T>
int64_t pool_neighbours(const PoolLine<T>& line, int64_t last) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (line.padded) {
      for (int64_t i = 0; i < line.outputs; i += lanes<float>) {
        const VF total = combine_windows<Op, stride, fixed_taps, VF>(line, i);
        if (line.outputs - i < lanes<float>)
          store_part(line.y + i, total, line.outputs - i);
        else
          store(line.y + i, total);
      }
      return line.outputs;
    }
  }
  int64_t next = pool_vectors<Op, stride, fixed_taps, Vector<T>>(line, 0, last);
  if constexpr (vector_bytes > 32) next = pool_vectors<Op, stride, fixed_taps, typename VectorOf<T, 32>::type>(line, next, last);
  if constexpr (vector_bytes > 16) next = pool_vectors<Op, stride, fixed_taps, typename VectorOf<T, 16>::type>(line, next, last);
  return next;
}
template <class Op, int fixed_taps, class T>
void pool_outputs(const PoolLine<T>& line) {
  int64_t next = 0;
  if (line.stride == 1) next = pool_neighbours<Op, 1, fixed_taps>(line, line.outputs);
  if (line.stride == 2) next = pool_neighbours<Op, 2, fixed_taps>(line, line.outputs - 1);
  constexpr int64_t max_stride = 0x7fffffff / pool_lanes;
  if (line.stride > 2 && line.stride <= max_stride) {
    int32_t positions[lanes<T>];
    for (int k = 0; k < lanes<T>; ++k) positions[k] = static_cast<int32_t>(k * line.stride);
    for (; next + lanes<T> <= line.outputs; next += lanes<T>)
      store(line.y + next, combine_windows<Op, 0, fixed_taps, Vector<T>>(line, next, positions));
  }
  for (; next < line.outputs; ++next) line.y[next] = combine_windows<Op, 1, fixed_taps, T>(line, next);
}
template <class Op, class T>
void pool_line(const PoolLine<T>& line) {
  if (line.taps == 2) return pool_outputs<Op, 2>(line);
  if (line.taps == 3) return pool_outputs<Op, 3>(line);
  pool_outputs<Op, 0>(line);
}
template <class T>
void divide_line(T* y, int64_t outputs, T divisor) {
  for (int64_t i = 0; i < outputs; ++i) y[i] /= divisor;
}
template <class T>
void divide_line_each(T* y, int64_t outputs, const T* counts, T divisor) {
  for (int64_t i = 0; i < outputs; ++i) y[i] /= counts[i] * divisor;
}
template <class T>
void root_line(T* y, int64_t outputs) {
  for (int64_t i = 0; i < outputs; ++i) y[i] = sizeof(T) == sizeof(float) ? __builtin_sqrtf(y[i]) : __builtin_sqrt(y[i]);
}
template <class T>
constexpr PoolLines<T> lines_of = {
    pool_line<Max, T>,   pool_line<Sum, T>, pool_line<SumAbsolute, T>, pool_line<SumSquares, T>, divide_line<T>,
    divide_line_each<T>, root_line<T>};

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
const PoolTable pooling = {combine<float>, combine<Half>, combine<BrainHalf>, lines_of<float>, lines_of<double>, add, keep_larger};

}  // namespace heddle::cpu::HEDDLE_ISA

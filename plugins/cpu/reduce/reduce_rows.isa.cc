// The reduction loops of one instruction set level. f32 sums of rows run in vectors over short stretches and add up in double; products
// and squares are double throughout. Columns add up pairs of f32 in double.
#include "reduce/reduce_rows.h"

#include "vector/narrow_loads.h"
#include "vector/simd_math.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class T>
struct AccumulatorOf {
  using type = int64_t;
};
template <>
struct AccumulatorOf<float> {
  using type = double;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <>
struct AccumulatorOf<Half> {
  using type = double;
};
template <>
struct AccumulatorOf<BrainHalf> {
  using type = double;
};
template <>
struct AccumulatorOf<uint64_t> {
  using type = uint64_t;
};
// Types whose elements are vectors of f32 in registers.
template <class T>
constexpr bool in_float = __is_same(T, float) || __is_same(T, Half) || __is_same(T, BrainHalf);
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <class A>
A lesser(A a, A b) {
  return (a < b || a != a) ? a : b;
}
template <class A>
A greater(A a, A b) {
  return (a > b || a != a) ? a : b;
}

// One element's contribution, in the accumulator's arithmetic.
template <Fold fold, class A>
A folded(A a, A x, A shift) {
  if constexpr (fold == fold_sum) return a + x;
  if constexpr (fold == fold_abs) return a + (x < 0 ? -x : x);
  if constexpr (fold == fold_square) return a + x * x;
  if constexpr (fold == fold_product) return a * x;
  if constexpr (fold == fold_max) return greater(a, x);
  if constexpr (fold == fold_min) return lesser(a, x);
  if constexpr (fold == fold_exp) return a + __builtin_exp(static_cast<double>(x - shift));
}

template <Fold fold, class T>
void row_plain(const T* x, int64_t count, Accumulator<T> shift, Accumulator<T>* accumulator) {
  Accumulator<T> a = *accumulator;
  for (int64_t i = 0; i < count; ++i) a = folded<fold>(a, static_cast<Accumulator<T>>(x[i]), shift);
  *accumulator = a;
}

template <Fold fold, class V>
V folded_vector(V a, V x, V shift) {
  if constexpr (fold == fold_sum) return a + x;
  if constexpr (fold == fold_abs) return a + abs(x);
  if constexpr (fold == fold_square) return fma(x, x, a);
  if constexpr (fold == fold_product) return a * x;
  if constexpr (fold == fold_max) return larger(a, x);
  if constexpr (fold == fold_min) return smaller(a, x);
  if constexpr (fold == fold_exp) return a + exp(x - shift);
}

// The neutral element that stands for those a row does not have.
template <Fold fold, class T>
constexpr T neutral() {
  if constexpr (fold == fold_product) return 1;
  if constexpr (fold == fold_max || fold == fold_exp) return -static_cast<T>(__builtin_inf());
  if constexpr (fold == fold_min) return static_cast<T>(__builtin_inf());
  return 0;
}

// Folds the lanes of `width` vectors, pairs of them at a time: a fixed order, and sums of f32 in double.
template <Fold fold, int width>
double joined(const VD* a) {
  VD all[width];
  for (int k = 0; k < width; ++k) all[k] = a[k];
  for (int half = width / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) all[k] = folded_vector<fold>(all[k], all[k + half], VD{});
  double lane[lanes<double>];
  __builtin_memcpy(lane, all, sizeof(lane));
  for (int half = lanes<double> / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lane[k] = folded<fold>(lane[k], lane[k + half], 0.0);
  return lane[0];
}
template <Fold fold, int width>
double joined(const VF* a) {
  if constexpr (fold == fold_max || fold == fold_min) {
    VF all = a[0];
    for (int k = 1; k < width; ++k) all = folded_vector<fold>(all, a[k], all);
    return static_cast<double>(fold_lanes(all, [](auto p, auto q) { return folded_vector<fold>(p, q, q); }));
  } else {
    VD halves[2 * width];
    for (int k = 0; k < width; ++k) {
      const Doubles d = widen(a[k]);
      halves[2 * k] = d.low;
      halves[2 * k + 1] = d.high;
    }
    return joined<fold, 2 * width>(halves);
  }
}

// The fold of results: sums of magnitudes, squares and exponentials add up.
template <Fold fold>
constexpr Fold joining = fold == fold_product || fold == fold_max || fold == fold_min ? fold : fold_sum;

// Vectors in which elements of T are folded.
inline VD load_folded(const double* x) {
  return load<VD>(x);
}
template <class T>
VF load_folded(const T* x) {
  return load_floats(x);
}

// Folds `width` vectors at a time while enough are left. Returns the number of elements folded.
template <Fold fold, int width, class E, class T>
int64_t row_stretch(const T* x, int64_t i, int64_t end, double shift, double* accumulator) {
  using V = Vector<E>;
  if (end - i < width * lanes<E>) return i;
  const V s = splat<V>(static_cast<E>(shift));
  V a[width];
  for (V& v : a) v = splat<V>(neutral<joining<fold>, E>());
  for (; end - i >= width * lanes<E>; i += width * lanes<E>)
    for (int k = 0; k < width; ++k) a[k] = folded_vector<fold>(a[k], load_folded(x + i + k * lanes<E>), s);
  *accumulator = folded<joining<fold>>(*accumulator, joined<joining<fold>, width>(a), 0.0);
  return i;
}

// `E`: float or double, in which vectors are folded.
template <Fold fold, class E, class T>
void row_vectors(const T* x, int64_t count, double shift, double* accumulator) {
  constexpr int64_t stretch = 64 * lanes<E>;  // 16 elements in each lane: f32 sums lose as little at every level
  int64_t i = 0;
  while (count - i >= stretch) i = row_stretch<fold, 4, E>(x, i, i + stretch, shift, accumulator);
  i = row_stretch<fold, 4, E>(x, i, count, shift, accumulator);
  i = row_stretch<fold, 1, E>(x, i, count, shift, accumulator);
  if constexpr (in_float<T>) {
    if (i == count) return;
    const VF none = splat<VF>(neutral<joining<fold>, float>());
    const VF rest = load_floats_part(x + i, count - i, splat<VF>(neutral<fold, float>()));
    const VF a = folded_vector<fold>(none, rest, splat<VF>(static_cast<float>(shift)));
    *accumulator = folded<joining<fold>>(*accumulator, joined<joining<fold>, 1>(&a), 0.0);
  } else {
    row_plain<fold, T>(x + i, count - i, shift, accumulator);
  }
}

// Uses double: each factor of a product in f32 would round, in as many orders as vectors have lanes; the square of an f32 number may exceed
// f32 where the root of the sum does not.
template <Fold fold, class T>
void row_in_double(const T* x, int64_t count, double* accumulator) {
  constexpr int width = 4;
  constexpr int64_t n = lanes<float>;
  VD a[width];
  for (VD& v : a) v = splat<VD>(neutral<joining<fold>, double>());
  const auto add = [&](VF v, int k) {
    const Doubles d = widen(v);
    a[k] = folded_vector<fold>(a[k], d.low, VD{});
    a[k + 1] = folded_vector<fold>(a[k + 1], d.high, VD{});
  };
  int64_t i = 0;
  for (; count - i >= 2 * n; i += 2 * n) {
    add(load_floats(x + i), 0);
    add(load_floats(x + i + n), 2);
  }
  if (count - i >= n) {
    add(load_floats(x + i), 0);
    i += n;
  }
  if (i < count) add(load_floats_part(x + i, count - i, splat<VF>(neutral<fold, float>())), 2);
  *accumulator = folded<joining<fold>>(*accumulator, joined<joining<fold>, width>(a), 0.0);
}

template <Fold fold, class T>
void row(const void* x, int64_t count, const void* shift, void* accumulator) {
  const T* values = static_cast<const T*>(x);
  using A = Accumulator<T>;
  A* a = static_cast<A*>(accumulator);
  const A s = shift ? *static_cast<const A*>(shift) : A(0);
  if constexpr (in_float<T> && (fold == fold_product || fold == fold_square))
    row_in_double<fold>(values, count, a);
  else if constexpr (in_float<T>)
    row_vectors<fold, float>(values, count, s, a);
  else if constexpr (T(0.5) != T(0) && fold != fold_exp)
    row_vectors<fold, double>(values, count, s, a);
  else
    row_plain<fold, T>(values, count, s, a);
}

// Folds rows of `width` vectors of f32 into accumulators that stay in registers, in the order of the rows. `count`: the elements of the
// last vector, if they are fewer than it has.
template <Fold fold, int width, class T>
void float_columns(const T* x, int64_t rows, int64_t stride, int64_t count, double* accumulators) {
  VD a[2 * width];
  for (int k = 0; k < 2 * width; ++k) a[k] = load<VD>(accumulators + k * lanes<double>);
  const auto loaded = [&](int64_t r, int k) {
    const T* from = x + r * stride + k * lanes<float>;
    return count == lanes<float> ? load_floats(from) : load_floats_part(from, count, VF{});
  };
  // Products and squares round in double; of the others a pair of rows loses next to nothing in f32. Extremes lose nothing.
  constexpr int64_t together = fold == fold_product || fold == fold_square ? 1 : fold == fold_max || fold == fold_min ? 64 : 2;
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t last = rows - first < together ? rows : first + together;
    VF in_float[width];
    for (int k = 0; k < width; ++k) in_float[k] = together == 1 ? loaded(first, k) : splat<VF>(neutral<fold, float>());
    for (int64_t r = first; r < last && together > 1; ++r)
      for (int k = 0; k < width; ++k) in_float[k] = folded_vector<fold>(in_float[k], loaded(r, k), VF{});
    for (int k = 0; k < width; ++k) {
      const Doubles d = widen(in_float[k]);
      a[2 * k] = folded_vector<fold>(a[2 * k], d.low, VD{});
      a[2 * k + 1] = folded_vector<fold>(a[2 * k + 1], d.high, VD{});
    }
  }
  for (int k = 0; k < 2 * width; ++k) store(accumulators + k * lanes<double>, a[k]);
}
template <Fold fold, class T>
void all_float_columns(const T* x, int64_t rows, int64_t stride, int64_t count, double* accumulators) {
  constexpr int64_t n = lanes<float>;
  int64_t c = 0;
  for (; count - c >= 4 * n; c += 4 * n) float_columns<fold, 4>(x + c, rows, stride, n, accumulators + c);
  for (; count - c >= n; c += n) float_columns<fold, 1>(x + c, rows, stride, n, accumulators + c);
  if (c == count) return;
  double rest[n] = {};
  __builtin_memcpy(rest, accumulators + c, static_cast<size_t>(count - c) * sizeof(double));
  float_columns<fold, 1>(x + c, rows, stride, count - c, rest);
  __builtin_memcpy(accumulators + c, rest, static_cast<size_t>(count - c) * sizeof(double));
}
// Exponentials of one vector after the other, each less the shift of its column; computed as those of rows.
template <class T>
void exponential_columns(const T* x, int64_t rows, int64_t stride, int64_t count, const double* shift, double* accumulators) {
  constexpr int64_t n = lanes<float>;
  for (int64_t c = 0; c < count; c += n) {
    const int64_t m = count - c < n ? count - c : n;
    double shifts[n] = {}, sums[n] = {};
    __builtin_memcpy(shifts, shift + c, static_cast<size_t>(m) * sizeof(double));
    __builtin_memcpy(sums, accumulators + c, static_cast<size_t>(m) * sizeof(double));
    const VF s = narrow({load<VD>(shifts), load<VD>(shifts + lanes<double>)});
    VD low = load<VD>(sums), high = load<VD>(sums + lanes<double>);
    for (int64_t r = 0; r < rows; ++r) {
      const T* from = x + r * stride + c;
      const Doubles e = widen(exp((m == n ? load_floats(from) : load_floats_part(from, m, VF{})) - s));
      low += e.low;
      high += e.high;
    }
    store(sums, low);
    store(sums + lanes<double>, high);
    __builtin_memcpy(accumulators + c, sums, static_cast<size_t>(m) * sizeof(double));
  }
}

template <Fold fold, class T>
void columns(const void* x, int64_t rows, int64_t stride, int64_t count, const void* shift, void* accumulators) {
  const T* __restrict__ values = static_cast<const T*>(x);
  using A = Accumulator<T>;
  A* __restrict__ a = static_cast<A*>(accumulators);
  const A* s = static_cast<const A*>(shift);
  if constexpr (in_float<T> && fold == fold_exp) {
    exponential_columns(values, rows, stride, count, s, a);
  } else if constexpr (in_float<T>) {
    all_float_columns<fold>(values, rows, stride, count, a);
  } else {
    for (int64_t r = 0; r < rows; ++r, values += stride)
      for (int64_t i = 0; i < count; ++i) a[i] = folded<fold>(a[i], static_cast<A>(values[i]), fold == fold_exp ? s[i] : A(0));
  }
}

template <Fold fold, class T>
constexpr FoldFunctions functions() {
  return {row<fold, T>, columns<fold, T>};
}
template <class T>
constexpr void add_type(FoldFunctions* table) {
  table[fold_sum] = functions<fold_sum, T>();
  table[fold_abs] = functions<fold_abs, T>();
  table[fold_square] = functions<fold_square, T>();
  table[fold_product] = functions<fold_product, T>();
  table[fold_max] = functions<fold_max, T>();
  table[fold_min] = functions<fold_min, T>();
  if constexpr (!__is_same(Accumulator<T>, int64_t) && !__is_same(T, uint64_t)) table[fold_exp] = functions<fold_exp, T>();
}
constexpr FoldTable make() {
  FoldTable table = {};
  add_type<float>(table.functions[fold_f32]);
  add_type<double>(table.functions[fold_f64]);
  add_type<int32_t>(table.functions[fold_i32]);
  add_type<int64_t>(table.functions[fold_i64]);
  add_type<uint64_t>(table.functions[fold_u64]);
  add_type<Half>(table.functions[fold_f16]);
  add_type<BrainHalf>(table.functions[fold_bf16]);
  return table;
}

}  // namespace

constinit const FoldTable folds = make();

}  // namespace heddle::cpu::HEDDLE_ISA

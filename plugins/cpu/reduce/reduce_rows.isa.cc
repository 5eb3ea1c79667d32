// The reduction loops of one instruction set level. f32 sums run in vectors over stretches of 1024 elements and add up in double; products
// and squares are double throughout.
#include "reduce/reduce_rows.h"

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
struct AccumulatorOf<uint64_t> {
  using type = uint64_t;
};
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

// Folds `width` vectors at a time while enough are left, their lanes combined in a fixed order. Returns the number of elements folded.
template <Fold fold, int width, class V, class T>
int64_t row_stretch(const T* x, int64_t i, int64_t end, double shift, double* accumulator) {
  constexpr int64_t n = vector_bytes / static_cast<int64_t>(sizeof(T));
  constexpr bool extremum = fold == fold_max || fold == fold_min;
  if (end - i < width * n) return i;
  const V s = splat<V>(static_cast<T>(shift));
  V a[width];
  for (V& v : a) v = extremum ? load<V>(x + i) : splat<V>(static_cast<T>(fold == fold_product ? 1 : 0));
  for (; end - i >= width * n; i += width * n)
    for (int k = 0; k < width; ++k) a[k] = folded_vector<fold>(a[k], load<V>(x + i + k * n), s);
  T lane[width * n];
  __builtin_memcpy(lane, a, sizeof(a));
  row_plain<extremum || fold == fold_product ? fold : fold_sum, T>(lane, width * n, 0, accumulator);
  return i;
}

template <Fold fold, class V, class T>
void row_vectors(const T* x, int64_t count, double shift, double* accumulator) {
  constexpr int64_t stretch = 1024;
  int64_t i = 0;
  while (count - i >= stretch) i = row_stretch<fold, 4, V>(x, i, i + stretch, shift, accumulator);
  i = row_stretch<fold, 4, V>(x, i, count, shift, accumulator);
  i = row_stretch<fold, 1, V>(x, i, count, shift, accumulator);
  row_plain<fold, T>(x + i, count - i, shift, accumulator);
}

// Uses double: each factor of a product in f32 would round, in as many orders as vectors have lanes; the square of an f32 number may exceed
// f32 where the root of the sum does not.
template <Fold fold>
void row_in_double(const float* x, int64_t count, double* accumulator) {
  constexpr int width = 4;
  constexpr int64_t n = vector_bytes / static_cast<int64_t>(sizeof(double));
  VD a[width];
  for (VD& v : a) v = splat<VD>(fold == fold_product ? 1.0 : 0.0);
  const VD none = splat<VD>(0.0);
  int64_t i = 0;
  for (; count - i >= width * n; i += width * n)
    for (int k = 0; k < width; ++k) a[k] = folded_vector<fold>(a[k], __builtin_convertvector(load<HF>(x + i + k * n), VD), none);
  double lane[width * n];
  __builtin_memcpy(lane, a, sizeof(a));
  row_plain<fold == fold_product ? fold : fold_sum, double>(lane, width * n, 0, accumulator);
  row_plain<fold, float>(x + i, count - i, 0, accumulator);
}

template <Fold fold, class T>
void row(const void* x, int64_t count, const void* shift, void* accumulator) {
  const T* values = static_cast<const T*>(x);
  using A = Accumulator<T>;
  A* a = static_cast<A*>(accumulator);
  const A s = shift ? *static_cast<const A*>(shift) : A(0);
  if constexpr (sizeof(T) == 4 && T(0.5) != T(0) && (fold == fold_product || fold == fold_square))
    row_in_double<fold>(values, count, a);
  else if constexpr (sizeof(T) == 4 && T(0.5) != T(0))
    row_vectors<fold, VF>(values, count, s, a);
  else if constexpr (T(0.5) != T(0) && fold != fold_exp)
    row_vectors<fold, VD>(values, count, s, a);
  else
    row_plain<fold, T>(values, count, s, a);
}

template <Fold fold, class T>
void column(const void* x, int64_t count, const void* shift, void* accumulators) {
  const T* __restrict__ values = static_cast<const T*>(x);
  using A = Accumulator<T>;
  A* __restrict__ a = static_cast<A*>(accumulators);
  if constexpr (fold == fold_exp) {
    const A* s = static_cast<const A*>(shift);
    for (int64_t i = 0; i < count; ++i) a[i] = folded<fold>(a[i], static_cast<A>(values[i]), s[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) a[i] = folded<fold>(a[i], static_cast<A>(values[i]), A(0));
  }
}

template <Fold fold, class T>
constexpr FoldFunctions functions() {
  return {row<fold, T>, column<fold, T>};
}
template <class T>
constexpr void add_type(FoldFunctions* table) {
  table[fold_sum] = functions<fold_sum, T>();
  table[fold_abs] = functions<fold_abs, T>();
  table[fold_square] = functions<fold_square, T>();
  table[fold_product] = functions<fold_product, T>();
  table[fold_max] = functions<fold_max, T>();
  table[fold_min] = functions<fold_min, T>();
  if constexpr (T(0.5) != T(0)) table[fold_exp] = functions<fold_exp, T>();
}
constexpr FoldTable make() {
  FoldTable table = {};
  add_type<float>(table.functions[fold_f32]);
  add_type<double>(table.functions[fold_f64]);
  add_type<int32_t>(table.functions[fold_i32]);
  add_type<int64_t>(table.functions[fold_i64]);
  add_type<uint64_t>(table.functions[fold_u64]);
  return table;
}

}  // namespace

constinit const FoldTable folds = make();

}  // namespace heddle::cpu::HEDDLE_ISA

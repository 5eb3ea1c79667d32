// The loops of lookups of one instruction set level; bag_loops.h describes them.
#include "lookup/bag_loops.h"

#include "vector/narrow_loads.h"
#include "vector/prefetch.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// Elements of two bytes are added up as f32.
template <class T>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};
template <class T>
using Sum = typename SumOf<T>::type;
template <class T>
using SumVector = Vector<Sum<T>>;

template <class T>
SumVector<T> get(const T* x) {
  if constexpr (sizeof(T) > 2) {
    return load<Vector<T>>(x);
  } else {
    return load_narrow(x);
  }
}
// The last elements of a row, fewer than a vector.
template <class T>
SumVector<T> get(const T* x, int64_t count) {
  T padded[lanes<Sum<T>>] = {};
  __builtin_memcpy(padded, x, static_cast<size_t>(count) * sizeof(T));
  return get(padded);
}

template <class T, class I, bool weighted>
class Sums {
  using V = SumVector<T>;
  static constexpr int64_t width = lanes<Sum<T>>;

 public:
  Sums(const BagStretch& bag, Sum<T>* sums, bool adds)
      : bag_(bag),
        table_(static_cast<const T*>(bag.table)),
        indices_(static_cast<const I*>(bag.indices)),
        weights_(static_cast<const Sum<T>*>(bag.weights)),
        sums_(sums),
        adds_(adds) {}
  int64_t all() const {
    int64_t column = 0, inside = bag_.count;
    // The first columns find an index outside; no row after it is read.
    const auto blocks = [&]<int vectors>() {
      for (; column + vectors * width <= bag_.columns && inside == bag_.count; column += vectors * width)
        inside = add_up<vectors, true>(column);
    };
    blocks.template operator()<8>();
    blocks.template operator()<4>();
    blocks.template operator()<2>();
    blocks.template operator()<1>();
    if (inside == bag_.count && (column < bag_.columns || column == 0)) inside = add_up<1, false>(column);
    return inside;
  }

 private:
  // `whole`: adds all elements of so many vectors, else those that are left.
  template <int vectors, bool whole>
  int64_t add_up(int64_t column) const {
    const int64_t left = whole ? width : bag_.columns - column, ahead = column == 0 ? rows_ahead() : 0;
    Sum<T>* const sums = sums_ + column;
    V sum[vectors] = {};
    if (adds_) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[v] = whole ? get(sums + v * width) : get(sums, left);
    }
    for (int64_t i = 0; i < bag_.count; ++i) {
      if (ahead > 0 && i + ahead < bag_.readable) {
        const auto later = static_cast<int64_t>(indices_[i + ahead]);
        if (is_inside(later)) prefetch_row(table_ + later * bag_.row_length, row_bytes());
      }
      const auto index = static_cast<int64_t>(indices_[i]);
      if (!is_inside(index)) return i;
      const T* const row = table_ + index * bag_.row_length + column;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const V x = whole ? get(row + v * width) : get(row, left);
        sum[v] = weighted ? fma(splat<V>(weights_[i]), x, sum[v]) : sum[v] + x;
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      __builtin_memcpy(sums + v * width, &sum[v], static_cast<size_t>(whole ? width : left) * sizeof(Sum<T>));
    return bag_.count;
  }
  // How many lookups before its turn a row is fetched; 0: not at all.
  int64_t rows_ahead() const {
    const int64_t bytes = row_bytes(), rows = bytes > 0 ? bytes_fetched_ahead / bytes : 0;
    return bytes == 0 ? 0 : rows < 2 ? 2 : rows > 32 ? 32 : rows;
  }
  int64_t row_bytes() const {
    return bag_.columns * static_cast<int64_t>(sizeof(T));
  }
  bool is_inside(int64_t index) const {
    return static_cast<uint64_t>(index) < static_cast<uint64_t>(bag_.rows);
  }

  const BagStretch& bag_;
  const T* const table_;
  const I* const indices_;
  const Sum<T>* const weights_;
  Sum<T>* const sums_;
  const bool adds_;
};

template <class T>
int64_t sum(const BagStretch& bag, void* to, bool adds) {
  auto* const sums = static_cast<Sum<T>*>(to);
  if (bag.wide_indices) return bag.weights ? Sums<T, int64_t, true>(bag, sums, adds).all() : Sums<T, int64_t, false>(bag, sums, adds).all();
  return bag.weights ? Sums<T, int32_t, true>(bag, sums, adds).all() : Sums<T, int32_t, false>(bag, sums, adds).all();
}

template <class T>
double product(const void* left, const void* right, int64_t count) {
  constexpr int64_t width = lanes<Sum<T>>;
  const auto *const a = static_cast<const T*>(left), *const b = static_cast<const T*>(right);
  SumVector<T> sum = {};
  int64_t i = 0;
  for (; i + width <= count; i += width) sum = fma(get(a + i), get(b + i), sum);
  if (i < count) sum = fma(get(a + i, count - i), get(b + i, count - i), sum);
  double total = 0;
  for (int64_t k = 0; k < width; ++k) total += static_cast<double>(sum[k]);
  return total;
}

constexpr BagTable make() {
  BagTable table = {};
  table.sum[HEDDLE_F16] = sum<Half>;
  table.sum[HEDDLE_BF16] = sum<BrainHalf>;
  table.sum[HEDDLE_F32] = sum<float>;
  table.sum[HEDDLE_F64] = sum<double>;
  table.product[HEDDLE_F16] = product<Half>;
  table.product[HEDDLE_BF16] = product<BrainHalf>;
  table.product[HEDDLE_F32] = product<float>;
  table.product[HEDDLE_F64] = product<double>;
  return table;
}

}  // namespace

constinit const BagTable bags = make();

}  // namespace heddle::cpu::HEDDLE_ISA

// The normalisation loops of one instruction set level.
#include "normalization/normalization_rows.h"

#include "vector/simd_math.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

constexpr int64_t n = lanes<float>;
constexpr int64_t stretch = 4096;  // summed in f32 before it goes into a double

// Sums over all elements in four interleaved accumulators. Missing elements of the last vector are `filler`, which adds nothing.
template <class Sums>
void sum_over(const float* x, int64_t count, float filler, const Sums& start, double* totals) {
  for (int64_t begin = 0; begin < count; begin += stretch) {
    const int64_t end = count - begin < stretch ? count : begin + stretch;
    Sums a[4] = {start, start, start, start};
    int64_t i = begin;
    for (; i + 4 * n <= end; i += 4 * n)
      for (int k = 0; k < 4; ++k) a[k].add(load<VF>(x + i + k * n));
    for (; i + n <= end; i += n) a[0].add(load<VF>(x + i));
    if (i < end) a[1].add(load_part(x + i, end - i, splat<VF>(filler)));
    a[0].join(a[1]);
    a[2].join(a[3]);
    a[0].join(a[2]);
    a[0].store(totals);
  }
}

struct Values {
  VF sum;
  void add(VF x) { sum += x; }
  void join(const Values& b) { sum += b.sum; }
  void store(double* totals) const { totals[0] += static_cast<double>(sum_lanes(sum)); }
};
struct Squares {
  VF sum;
  void add(VF x) { sum = fma(x, x, sum); }
  void join(const Squares& b) { sum += b.sum; }
  void store(double* totals) const { totals[0] += static_cast<double>(sum_lanes(sum)); }
};
struct Centred {
  VF shift, sum, squares;
  void add(VF x) {
    const VF d = x - shift;
    sum += d;
    squares = fma(d, d, squares);
  }
  void join(const Centred& b) { sum += b.sum, squares += b.squares; }
  void store(double* totals) const {
    totals[0] += static_cast<double>(sum_lanes(sum));
    totals[1] += static_cast<double>(sum_lanes(squares));
  }
};

double sum(const float* x, int64_t count) {
  double total = 0;
  sum_over(x, count, 0, Values{}, &total);
  return total;
}
double sum_of_squares(const float* x, int64_t count) {
  double total = 0;
  sum_over(x, count, 0, Squares{}, &total);
  return total;
}
void centred_sums(const float* x, int64_t count, float shift, double* sum, double* squares) {
  double totals[2] = {0, 0};
  sum_over(x, count, shift, Centred{splat<VF>(shift), {}, {}}, totals);
  *sum = totals[0];
  *squares = totals[1];
}

// Calls f(vectors) for whole vectors, then once for the rest.
template <class F>
void each(const float* x, float* y, int64_t count, F f) {
  int64_t i = 0;
  for (; i + n <= count; i += n) store(y + i, f(load<VF>(x + i), i, n));
  if (i < count) store_part(y + i, f(load_part(x + i, count - i, VF{}), i, count - i), count - i);
}
VF get(const float* x, int64_t i, int64_t count) {
  return count == n ? load<VF>(x + i) : load_part(x + i, count, VF{});
}

void apply(const float* x, float* y, int64_t count, float shift, float factor, float offset, const float* scale, const float* bias) {
  const VF s = splat<VF>(shift), k = splat<VF>(factor), c = splat<VF>(offset);
  if (scale && bias)
    each(x, y, count, [&](VF v, int64_t i, int64_t m) { return fma(fma(v - s, k, c), get(scale, i, m), get(bias, i, m)); });
  else if (scale)
    each(x, y, count, [&](VF v, int64_t i, int64_t m) { return fma(v - s, k, c) * get(scale, i, m); });
  else
    each(x, y, count, [&](VF v, int64_t, int64_t) { return fma(v - s, k, c); });
}

void affine(const float* x, float* y, int64_t count, float shift, float factor, float offset) {
  const VF s = splat<VF>(shift), k = splat<VF>(factor), c = splat<VF>(offset);
  each(x, y, count, [&](VF v, int64_t, int64_t) { return fma(v - s, k, c); });
}
void affine_each(const float* x, float* y, int64_t count, const float* shifts, const float* factors, const float* offsets) {
  each(x, y, count, [&](VF v, int64_t i, int64_t m) { return fma(v - get(shifts, i, m), get(factors, i, m), get(offsets, i, m)); });
}

void divide_each(const float* x, float* y, int64_t count, const float* divisors) {
  each(x, y, count, [&](VF v, int64_t i, int64_t m) {
    const VF d = get(divisors, i, m);
    return d == 0 ? VF{} : v / d;
  });
}

void affine_in_double(const float* x, float* y, int64_t count, double mean, double factor) {
  const VD m = splat<VD>(mean), k = splat<VD>(factor);
  each(x, y, count, [&](VF v, int64_t, int64_t) {
    const Doubles d = widen(v);
    return narrow({(d.low - m) * k, (d.high - m) * k});
  });
}

void sums_in_double(const float* x, int64_t count, double mean, double* sum, double* squares) {
  const VD m = splat<VD>(mean);
  VD sums[2] = {}, squared[2] = {};
  int64_t i = 0;
  for (; i + n <= count; i += n) {
    const Doubles d = widen(load<VF>(x + i));
    const VD low = d.low - m, high = d.high - m;
    sums[0] += low, sums[1] += high;
    squared[0] = fma(low, low, squared[0]), squared[1] = fma(high, high, squared[1]);
  }
  double s[lanes<double>], q[lanes<double>];
  store(s, sums[0] + sums[1]);
  store(q, squared[0] + squared[1]);
  for (int k = 0; k < lanes<double>; ++k) *sum += s[k], *squares += q[k];
  for (; i < count; ++i) {
    const double d = static_cast<double>(x[i]) - mean;
    *sum += d, *squares += d * d;
  }
}

void local_response(const float* x, const float* sums, float* y, int64_t count, float bias, float alpha, float beta) {
  const VF b = splat<VF>(bias), a = splat<VF>(alpha), e = splat<VF>(beta);
  each(x, y, count, [&](VF v, int64_t i, int64_t m) { return v / pow(fma(get(sums, i, m), a, b), e); });
}
void add_squares(const float* x, float* sums, int64_t count) {
  each(x, sums, count, [&](VF v, int64_t i, int64_t m) { return fma(v, v, get(sums, i, m)); });
}

}  // namespace

constinit const NormalizationTable normalizations = {sum,         sum_of_squares,   centred_sums,   apply,          affine,     affine_each,
                                                     divide_each, affine_in_double, sums_in_double, local_response, add_squares};

}  // namespace heddle::cpu::HEDDLE_ISA

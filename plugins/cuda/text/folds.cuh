// The values that reductions fold into.
#ifndef HEDDLE_FOLDS_CUH
#define HEDDLE_FOLDS_CUH

HEDDLE_INLINE float infinity_of(float) {
  return __int_as_float(0x7f800000);
}
HEDDLE_INLINE double infinity_of(double) {
  return __longlong_as_double(0x7ff0000000000000ll);
}
HEDDLE_INLINE bool is_finite(float x) {
  return fabsf(x) < infinity_of(x);
}
HEDDLE_INLINE bool is_finite(double x) {
  return fabs(x) < infinity_of(x);
}

// Sums: plain, and with all that each addition lost (Knuth's two-sum): terms of f32 are summed in float, and the result is as if nothing
// had been lost, also where they cancel.
template <class C>
struct Plain {
  C sum;
};
template <class C>
struct Compensated {
  C sum, lost;  // the sum is sum - lost
};
template <class C>
HEDDLE_INLINE Plain<C> added(Plain<C> a, C x) {
  return {op_add(a.sum, x)};
}
template <class C>
HEDDLE_INLINE Plain<C> joined(Plain<C> a, Plain<C> b) {
  return {op_add(a.sum, b.sum)};
}
template <class C>
HEDDLE_INLINE C value_of(Plain<C> a) {
  return a.sum;
}
template <class C>
HEDDLE_INLINE Plain<C> lane_xor(Plain<C> a, int mask) {
  return {lane_xor(a.sum, mask)};
}
template <class C>
HEDDLE_INLINE Compensated<C> added(Compensated<C> a, C x) {
  const C sum = a.sum + x, taken = sum - a.sum;
  return {sum, a.lost + (((sum - taken) - a.sum) + (taken - x))};
}
template <class C>
HEDDLE_INLINE Compensated<C> joined(Compensated<C> a, Compensated<C> b) {
  Compensated<C> sum = added(a, b.sum);
  sum.lost += b.lost;
  return sum;
}
template <class C>
HEDDLE_INLINE C lost_of(Compensated<C> a) {
  return is_finite(a.lost) ? a.lost : (C)0;  // not so where the sum is infinite
}
template <class C>
HEDDLE_INLINE C value_of(Compensated<C> a) {
  return a.sum - lost_of(a);
}
template <class C>
HEDDLE_INLINE Compensated<C> lane_xor(Compensated<C> a, int mask) {
  return {lane_xor(a.sum, mask), lane_xor(a.lost, mask)};
}

// Folds of plain numbers, for across().
template <class C>
struct Sum {
  HEDDLE_INLINE_MEMBER C combine(C a, C b) { return op_add(a, b); }
};
// Folds of types that have a join().
template <class A>
struct Joined {
  HEDDLE_INLINE_MEMBER A combine(A a, A b) { return joined(a, b); }
};
template <class C>
struct Largest {
  HEDDLE_INLINE_MEMBER C combine(C a, C b) { return op_max(a, b); }
};

// A mean in two parts: near it the difference from the first is exact.
template <class C>
struct Mean {
  C shift, rest;
};
template <class C>
HEDDLE_INLINE C away_from(Mean<C> mean, C x) {
  return (x - mean.shift) - mean.rest;
}
// The second part of a plain sum is 0, and is left to the differences from the first.
template <class C>
HEDDLE_INLINE Mean<C> mean_of(Plain<C> a, i64 count) {
  return {a.sum / (C)count, (C)0};
}
HEDDLE_INLINE Mean<float> mean_of(Compensated<float> a, i64 count) {
  const double mean = ((double)a.sum - (double)lost_of(a)) / (double)count;
  const float shift = (float)mean;
  return {shift, (float)(mean - (double)shift)};
}

// The sums of the squares of differences from a mean and, if the mean came from a plain sum, of the differences themselves: the mean's
// second part. A compensated sum has given that part already, more precisely than rounded differences could.
template <class S>
struct Spread;
template <class C>
struct Spread<Plain<C>> {
  C sum, squares;
};
template <class C>
struct Spread<Compensated<C>> {
  Compensated<C> squares;
};
template <class C>
HEDDLE_INLINE Spread<Plain<C>> added(Spread<Plain<C>> a, C difference) {
  return {a.sum + difference, a.squares + difference * difference};
}
template <class C>
HEDDLE_INLINE Spread<Plain<C>> joined(Spread<Plain<C>> a, Spread<Plain<C>> b) {
  return {a.sum + b.sum, a.squares + b.squares};
}
template <class C>
HEDDLE_INLINE Spread<Plain<C>> lane_xor(Spread<Plain<C>> a, int mask) {
  return {lane_xor(a.sum, mask), lane_xor(a.squares, mask)};
}
template <class C>
HEDDLE_INLINE Spread<Compensated<C>> added(Spread<Compensated<C>> a, C difference) {
  return {added(a.squares, difference * difference)};
}
template <class C>
HEDDLE_INLINE Spread<Compensated<C>> joined(Spread<Compensated<C>> a, Spread<Compensated<C>> b) {
  return {joined(a.squares, b.squares)};
}
template <class C>
HEDDLE_INLINE Spread<Compensated<C>> lane_xor(Spread<Compensated<C>> a, int mask) {
  return {lane_xor(a.squares, mask)};
}

// The largest or smallest element, and its position. Below 0: none yet.
template <class C>
struct Extreme {
  C value;
  i64 index;
};
template <class C>
HEDDLE_INLINE Extreme<C> lane_xor(Extreme<C> a, int mask) {
  return {lane_xor(a.value, mask), lane_xor(a.index, mask)};
}
// NaN is beyond every number; of equal elements the first, or the last, is chosen.
template <bool MAXIMUM, bool LAST, class C>
HEDDLE_INLINE Extreme<C> farther(Extreme<C> a, Extreme<C> b) {
  if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
  const bool odd_a = a.value != a.value, odd_b = b.value != b.value;
  if (odd_a != odd_b) return odd_a ? a : b;
  if (odd_a || a.value == b.value) return (a.index < b.index) != LAST ? a : b;
  return (a.value > b.value) == MAXIMUM ? a : b;
}
template <class C>
struct FirstLargest {
  HEDDLE_INLINE_MEMBER Extreme<C> combine(Extreme<C> a, Extreme<C> b) { return farther<true, false>(a, b); }
};

// Statistics of a row when its elements are written: a softmax's largest element and the result for its exponentials, ...
template <class C>
struct Softened {
  C largest, rest;  // 1 / sum of exponentials, or its logarithm
};
// ... a mean and the inverse of the deviation, ...
template <class C>
struct Moments {
  Mean<C> mean;
  C inverse;
};
// (computes 1 / sqrt(variance + epsilon), or 1 / (sqrt(variance) + epsilon), once for each row: in double, and rounded once)
template <bool BESIDE>
HEDDLE_INLINE double inverse_of(double variance, double epsilon) {
  return 1.0 / (BESIDE ? op_sqrt(variance) + epsilon : op_sqrt(variance + epsilon));
}
template <bool BESIDE, class C>
HEDDLE_INLINE Moments<C> moments_of(Mean<C> mean, Spread<Plain<C>> spread, i64 count, double epsilon) {
  const double n = (double)count, rest = (double)spread.sum / n;
  const double variance = op_max((double)spread.squares / n - rest * rest, 0.0);
  return {{mean.shift, (C)rest}, (C)inverse_of<BESIDE>(variance, epsilon)};
}
template <bool BESIDE, class C>
HEDDLE_INLINE Moments<C> moments_of(Mean<C> mean, Spread<Compensated<C>> spread, i64 count, double epsilon) {
  const double squares = (double)spread.squares.sum - (double)lost_of(spread.squares);
  return {mean, (C)inverse_of<BESIDE>(op_max(squares / (double)count, 0.0), epsilon)};
}
// ... or one number.
template <class C>
struct One {
  C value;
};

#endif

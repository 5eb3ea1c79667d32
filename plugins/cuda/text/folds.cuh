// What reductions fold into.
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

// Sums: as they are, and with what each addition lost. Long rows of f32 are summed in float, and come out as if they had not been.
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
  const C more = x - a.lost, sum = a.sum + more, lost = (sum - a.sum) - more;
  return {sum, is_finite(lost) ? lost : (C)0};  // not so where the sum is infinite
}
template <class C>
HEDDLE_INLINE Compensated<C> joined(Compensated<C> a, Compensated<C> b) {
  Compensated<C> sum = added(a, b.sum);
  sum.lost += b.lost;
  return sum;
}
template <class C>
HEDDLE_INLINE C value_of(Compensated<C> a) {
  return a.sum - a.lost;
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
template <class C>
struct Largest {
  HEDDLE_INLINE_MEMBER C combine(C a, C b) { return op_max(a, b); }
};

// The sums of the differences from a number near the mean, and of their squares.
template <class S>
struct Centred {
  S sum, squares;
};
template <class S, class C>
HEDDLE_INLINE Centred<S> added(Centred<S> a, C difference) {
  return {added(a.sum, difference), added(a.squares, difference * difference)};
}
template <class S>
HEDDLE_INLINE Centred<S> joined(Centred<S> a, Centred<S> b) {
  return {joined(a.sum, b.sum), joined(a.squares, b.squares)};
}
template <class S>
HEDDLE_INLINE Centred<S> lane_xor(Centred<S> a, int mask) {
  return {lane_xor(a.sum, mask), lane_xor(a.squares, mask)};
}

// The largest or smallest element, and where it is. Below 0: none yet.
template <class C>
struct Extreme {
  C value;
  i64 index;
};
template <class C>
HEDDLE_INLINE Extreme<C> lane_xor(Extreme<C> a, int mask) {
  return {lane_xor(a.value, mask), lane_xor(a.index, mask)};
}
// NaN is beyond every number; of equal ones the first, or the last.
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

// What is known of a row when its elements are written: a softmax's largest element and what its exponentials come to, ...
template <class C>
struct Softened {
  C largest, rest;  // 1 / sum of exponentials, or its logarithm
};
// ... a mean in two parts (near it the first difference is exact) and the inverse of the deviation, ...
template <class C>
struct Moments {
  C shift, rest, inverse;
};
// (1 / sqrt(variance + epsilon), or 1 / (sqrt(variance) + epsilon))
template <class C, bool BESIDE>
HEDDLE_INLINE Moments<C> moments_of(C shift, C sum, C squares, i64 count, double epsilon) {
  const C rest = sum / (C)count, variance = op_max(squares / (C)count - rest * rest, (C)0);
  return {shift, rest, (C)1 / (BESIDE ? op_sqrt(variance) + (C)epsilon : op_sqrt(variance + (C)epsilon))};
}
// ... or one number.
template <class C>
struct One {
  C value;
};

#endif

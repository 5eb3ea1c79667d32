// Resize: elements that are picked, or sums of the elements around a place.
//
// Axes are in the order of memory; after the last one are blocks of elements that keep their order. An axis of no taps keeps its positions.
// Places and weights are computed as on the host (shared/image/resize_axis.cc): the kernel that picks computes them for each element, the
// kernel that sums reads them from tables, which another kernel fills first. Follows "move" and "cubic".
//
// F is generated (generate/image/resize_launches.cc): types Index, T and C (sums, a float), RANK, the values of the attributes in the order
// of shared/image/resize_axis.h (INTERPOLATION, COORDINATES, ROUNDING), ANTIALIAS, EXCLUDES, and
//   i64 taps(p, axis)   T stored(C value)   double roi(p, i64 entry)
#ifndef HEDDLE_RESIZE_CUH
#define HEDDLE_RESIZE_CUH

enum ResizeInterpolation { resize_nearest, resize_linear, resize_cubic };
enum ResizeCoordinates { from_half_pixel, from_symmetric, from_torch_half_pixel, from_aligned_corners, from_asymmetric, from_crop };
enum ResizeRounding { prefer_floor, prefer_ceil, round_floor, round_ceil, floor_or_ceil };

// The part of an axis that it is cropped to, as fractions of 1.
struct Crop {
  double start, end;
};
template <class F, class P>
HEDDLE_INLINE Crop crop_of(const P& p, int axis) {
  if constexpr (F::COORDINATES == from_crop)
    if (const i64 entry = p.roi_entries[axis]; entry >= 0) return {F::roi(p, entry), F::roi(p, entry + p.roi_axes)};
  return {0, 1};
}

// Returns the input's coordinate of position x of the output, in numbers of type A.
template <class A, class F, class P>
HEDDLE_INLINE A source_coordinate(const P& p, int axis, const Crop& crop, i64 x) {
  const A position = (A)x, input = (A)p.input[axis], scale = (A)p.scale[axis];
  const A length = scale * input;  // of the output, before it was rounded down
  const A centre = (position + (A)0.5) / scale - (A)0.5;
  if constexpr (F::COORDINATES == from_half_pixel) {
    return centre;
  } else if constexpr (F::COORDINATES == from_symmetric) {
    const A adjustment = (A)p.output[axis] / length;
    return input / 2 * (1 - adjustment) + (position + (A)0.5) / scale - (A)0.5;
  } else if constexpr (F::COORDINATES == from_torch_half_pixel) {
    return p.output[axis] > 1 ? centre : (A)0;
  } else if constexpr (F::COORDINATES == from_aligned_corners) {
    return length == 1 ? (A)0 : position * (input - 1) / (length - 1);
  } else if constexpr (F::COORDINATES == from_asymmetric) {
    return position / scale;
  } else {
    const A start = (A)crop.start, part = (A)crop.end - start;
    const A inside = length == 1 ? part * (input - 1) / 2 : position * part * (input - 1) / (length - 1);
    return inside + start * (input - 1);
  }
}

template <class F, class P>
HEDDLE_INLINE double coordinate_of(const P& p, int axis, const Crop& crop, i64 x) {
  const i64 exact_in_float = (i64)1 << 23;
  if (F::INTERPOLATION == resize_nearest && p.input[axis] < exact_in_float && p.output[axis] < exact_in_float)
    return (double)source_coordinate<float, F>(p, axis, crop, x);
  return source_coordinate<double, F>(p, axis, crop, x);
}
// Returns true if the coordinate lies outside of a cropped input. A roi may be NaN: that counts as outside.
template <class F, class P>
HEDDLE_INLINE bool is_outside(const P& p, int axis, double x) {
  return F::COORDINATES == from_crop && !(x >= 0 && x <= (double)(p.input[axis] - 1));
}
template <class P>
HEDDLE_INLINE i64 clamped(const P& p, int axis, i64 position) {
  return position < 0 ? 0 : position >= p.input[axis] ? p.input[axis] - 1 : position;
}

// Returns the element that position x shows; -1: none.
template <class F, class P>
HEDDLE_INLINE i64 nearest_position(const P& p, int axis, i64 x) {
  const double at = coordinate_of<F>(p, axis, crop_of<F>(p, axis), x);
  if (is_outside<F>(p, axis, at)) return -1;
  const double below = floor(at), rest = at - below;
  bool above = false;
  if (F::ROUNDING == prefer_floor) above = !(rest <= 0.5);
  if (F::ROUNDING == prefer_ceil) above = !(rest < 0.5);
  if (F::ROUNDING == round_ceil || (F::ROUNDING == floor_or_ceil && p.scale[axis] < 1)) above = rest != 0;
  return clamped(p, axis, (i64)(above ? below + 1 : below));
}

template <class F, class P>
HEDDLE_INLINE void resize_picked(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    Index rest = quotient(at, p.block_divider);
    i64 from = (i64)(at - rest * (Index)p.block);
    bool inside = true;
    for (int axis = F::RANK - 1; axis >= 0; --axis) {
      const Index whole = quotient(rest, p.dividers[axis]);
      i64 position = (i64)(rest - whole * (Index)p.output[axis]);
      rest = whole;
      if (F::taps(p, axis) > 0) position = nearest_position<F>(p, axis, position);
      inside = inside && position >= 0;
      from += position * p.stride[axis];
    }
    p.y[at] = inside ? p.x[from] : F::stored((typename F::C)p.outside);
  }
}

// ---------------------------------------------------------------- weights

// Returns the weight of an input position near a coordinate. Distances are multiplied by `scale`: the kernel is wider by its inverse.
template <class F, class P>
HEDDLE_INLINE double tap_weight(const P& p, int axis, i64 position, double at, double scale) {
  if (F::EXCLUDES && (position < 0 || position >= p.input[axis])) return 0;
  const double distance = ((double)position - at) * scale;
  if (F::INTERPOLATION == resize_cubic) return cubic_weight(distance, p.coefficient);
  const double weight = 1 - fabs(distance);
  return 0 < weight ? weight : 0;
}

// Fills `positions` and `weights` of position x of an axis. Taps that do not count, and slots after the last tap, are -1.
template <class F, class P>
HEDDLE_INLINE void fill_taps(const P& p, int axis, i64 x, i32* positions, typename F::C* weights) {
  typedef typename F::C C;
  const i64 taps = p.taps[axis];
  const Crop crop = crop_of<F>(p, axis);
  const double at = coordinate_of<F>(p, axis, crop, x);
  if (is_outside<F>(p, axis, at)) {
    positions[0] = -1;
    return;
  }
  if (F::COORDINATES == from_crop && p.scale[axis] == 1 && p.input[axis] == p.output[axis] && crop.start == 0 && crop.end == 1) {
    positions[0] = (i32)x;
    weights[0] = (C)1;
    positions[1] = -1;
    return;
  }
  const double scale = F::ANTIALIAS && p.scale[axis] < 1 ? p.scale[axis] : 1;
  const i64 first = (i64)floor(at) + 1 - taps / 2;
  double sum = 0;
  if (F::ANTIALIAS || F::EXCLUDES)
    for (i64 t = 0; t < taps; ++t) sum += tap_weight<F>(p, axis, first + t, at, scale);
  for (i64 t = 0; t < taps; ++t) {
    const double weight = tap_weight<F>(p, axis, first + t, at, scale);
    positions[t] = (i32)clamped(p, axis, first + t);
    weights[t] = (C)(F::ANTIALIAS || F::EXCLUDES ? weight / sum : weight);
  }
}

// Fills the tables of all axes that have taps, one after the other.
template <class F, class P>
HEDDLE_INLINE void resize_tables(const P& p) {
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < p.places; i += step) {
    i64 x = i;
    int axis = 0;
    for (; axis < F::RANK - 1; ++axis) {
      const i64 places = p.taps[axis] > 0 ? p.output[axis] : 0;
      if (x < places) break;
      x -= places;
    }
    const i64 entry = p.entries[axis] + x * p.taps[axis];
    fill_taps<F>(p, axis, x, p.positions + entry, p.weights + entry);
  }
}

// ---------------------------------------------------------------- sums

// Adds the elements that the axes from A to the one before the last lead to, as the host does: the outermost axis first, weights multiplied
// on the way, without elements that count for nothing.
template <int A, class F, class P>
HEDDLE_INLINE void add_weighted(const P& p, const typename F::T* x, const typename F::Index* at, typename F::C weight, typename F::C& sum) {
  typedef typename F::C C;
  if constexpr (A == F::RANK - 1) {
    sum += weight * To<C>::from(*x);
  } else {
    const i64 taps = F::taps(p, A), entry = p.entries[A] + (i64)at[A] * taps;
    for (i64 t = 0; t < (taps > 0 ? taps : 1); ++t) {
      const i64 position = taps > 0 ? (i64)p.positions[entry + t] : (i64)at[A];
      if (position < 0) break;
      const C w = taps > 0 ? p.weights[entry + t] : (C)1;
      if (w != 0) add_weighted<A + 1, F>(p, x + position * p.stride[A], at, weight * w, sum);
    }
  }
}

template <class F, class P>
HEDDLE_INLINE typename F::C weighted_at(const P& p, const typename F::T* x, const typename F::Index* at) {
  typedef typename F::C C;
  const int last = F::RANK - 1;
  if (F::COORDINATES == from_crop)
    for (int axis = 0; axis <= last; ++axis)
      if (F::taps(p, axis) > 0 && p.positions[p.entries[axis] + (i64)at[axis] * F::taps(p, axis)] < 0) return (C)p.outside;
  const i64 taps = F::taps(p, last), entry = p.entries[last] + (i64)at[last] * taps;
  C sum = 0;
  for (i64 t = 0; t < (taps > 0 ? taps : 1); ++t) {
    const i64 position = taps > 0 ? (i64)p.positions[entry + t] : (i64)at[last];
    if (position < 0) break;
    C inner = 0;
    add_weighted<0, F>(p, x + position * p.stride[last], at, (C)1, inner);
    sum = taps > 0 ? sum + p.weights[entry + t] * inner : inner;
  }
  return sum;
}

template <class F, class P>
HEDDLE_INLINE void resize_weighted(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    Index rest = quotient(at, p.block_divider), place[F::RANK];
    const i64 offset = (i64)(at - rest * (Index)p.block);
    for (int axis = F::RANK - 1; axis >= 0; --axis) {
      const Index whole = quotient(rest, p.dividers[axis]);
      place[axis] = rest - whole * (Index)p.output[axis];
      rest = whole;
    }
    p.y[at] = F::stored(weighted_at<F>(p, p.x + offset, place));
  }
}

#endif

// Pools over windows: one thread for each element of the output, which goes through the taps of its window as the host does, in row-major
// order of the window.
//
// F is generated (generate/image/pool_launches.cc): types Index (of elements), C and T, the kind of the pool, and
//   F::MAX, F::AVERAGE, F::LAST (channels last), F::INDICES, F::LOWEST (what any number exceeds)   void store(p, Index at, C value)
#ifndef HEDDLE_POOL_CUH
#define HEDDLE_POOL_CUH

// Taps of one axis: [first, last) lie in the input, [0, padded) in the input or the padding around it.
struct PoolTaps {
  i64 origin, first, last, padded;
};
HEDDLE_INLINE i64 taps_before(i64 origin, i64 extent, i64 kernel, i64 dilation) {
  if (extent <= origin) return 0;
  const i64 taps = (extent - origin + dilation - 1) / dilation;
  return taps < kernel ? taps : kernel;
}

template <class F, class P>
HEDDLE_INLINE void pool_one(const P& p, typename F::Index at) {
  typedef typename F::C C;
  const i64 pixels = p.output[0] * p.output[1] * p.output[2], area = p.input[0] * p.input[1] * p.input[2];
  const i64 element = (i64)at, channel = F::LAST ? element % p.channels : 0;
  const i64 place = F::LAST ? element / p.channels : element;
  const i64 plane = place / pixels;  // an image, or a channel of one
  const auto* const x = p.x + (F::LAST ? plane * area * p.channels + channel : plane * area);
  const i64 step = F::LAST ? p.channels : 1;
  PoolTaps taps[3];
  i64 rest = place % pixels;
  for (int axis = 2; axis >= 0; --axis) {
    PoolTaps& t = taps[axis];
    t.origin = rest % p.output[axis] * p.stride[axis] - p.begin[axis];
    rest /= p.output[axis];
    t.last = taps_before(t.origin, p.input[axis], p.kernel[axis], p.dilation[axis]);
    t.first = taps_before(t.origin, 0, p.kernel[axis], p.dilation[axis]);
    if (t.first > t.last) t.first = t.last;
    t.padded = taps_before(t.origin, p.input[axis] + p.end[axis], p.kernel[axis], p.dilation[axis]);
  }
  C highest = F::lowest();
  i64 best = -1;
  GroupedSum<C> sum;
  for (i64 a = taps[0].first; a < taps[0].last; ++a)
    for (i64 b = taps[1].first; b < taps[1].last; ++b)
      for (i64 c = taps[2].first; c < taps[2].last; ++c) {
        const i64 row = (taps[0].origin + a * p.dilation[0]) * p.input[1] + taps[1].origin + b * p.dilation[1];
        const i64 pixel = row * p.input[2] + taps[2].origin + c * p.dilation[2];
        const C value = To<C>::from(x[pixel * step]);
        if (F::MAX) {
          if (best >= 0 && !(value > highest || value != value)) continue;
          highest = value;
          best = pixel;
        } else {
          sum.add(F::powered(p, value));
        }
      }
  sum.close();
  if (F::MAX) {
    F::store(p, at, highest);
    if (F::INDICES) F::store_index(p, at, best < 0 ? -1 : plane * area + F::index_of(p, best));
    return;
  }
  double divisor = 1;
  for (int axis = 0; axis < 3; ++axis) divisor *= (double)(p.counts_padding != 0 ? taps[axis].padded : taps[axis].last - taps[axis].first);
  F::store(p, at, F::finished(p, sum.total, divisor));
}

// Returns the position of a pixel in a plane whose first dimension changes fastest.
template <class P>
HEDDLE_INLINE i64 column_major(const P& p, i64 pixel) {
  i64 index = 0, stride = p.input[0] * p.input[1] * p.input[2];
  for (int axis = 2; axis >= 0; --axis) {
    stride /= p.input[axis];
    index += pixel % p.input[axis] * stride;
    pixel /= p.input[axis];
  }
  return index;
}

template <class F, class P>
HEDDLE_INLINE void pool_all(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) pool_one<F>(p, at);
}

#endif

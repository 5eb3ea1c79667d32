// GridSample: elements around the positions of a grid, weighted. One thread for one position and some channels, so that the taps of the
// position are shared by them all. Positions and weights along an axis are computed as the host does it, in double. Follows "cubic".
//
// F is generated (generate/image/grid_sample_launches.cc): types Index, T and C, AXES, the values of the attributes in the order of
// shared/image/grid_options.h (INTERPOLATION, PADDING), and ALIGNS (corners).
#ifndef HEDDLE_GRID_SAMPLE_CUH
#define HEDDLE_GRID_SAMPLE_CUH

enum SampleInterpolation { sample_nearest, sample_linear, sample_cubic };
enum SamplePadding { pad_zeros, pad_border, pad_reflection };

// Mirrors at the borders of the pixels, or at their centres.
HEDDLE_INLINE double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  if (x >= low && x <= high) return x;
  const double distance = x < low ? low - x : x - low;
  const double turns = floor(distance / range), rest = distance - turns * range;
  return fmod(turns, 2.0) == 0 ? low + rest : high - rest;
}

// The input positions along one axis and their weights; -1: a position that counts for nothing.
template <class F>
struct SampleTaps {
  typedef typename F::C C;
  static constexpr int COUNT = F::INTERPOLATION == sample_nearest ? 1 : F::INTERPOLATION == sample_linear ? 2 : 4;
  i64 positions[COUNT];
  C weights[COUNT];

  __device__ __forceinline__ void find(double coordinate, i64 extent) {
    const double length = (double)extent, low = F::ALIGNS ? 0 : -0.5, high = F::ALIGNS ? length - 1 : length - 0.5;
    double x = F::ALIGNS ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
    if (!(fabs(x) < 1e15)) x = -1e15;  // NaN, and positions close to no pixel
    if (F::INTERPOLATION == sample_nearest) x = rint(x);
    // For cubic interpolation each tap is brought inside, not the coordinate.
    if (F::INTERPOLATION != sample_cubic) {
      if (F::PADDING == pad_border) x = x < 0 ? 0 : x > length - 1 ? length - 1 : x;
      if (F::PADDING == pad_reflection && (x < low || x > high)) x = reflected(x, low, high);
    }
    const double below = floor(x), rest = x - below;
    const i64 first = F::INTERPOLATION == sample_nearest ? (i64)rint(x) : (i64)below - (F::INTERPOLATION == sample_cubic ? 1 : 0);
    for (int t = 0; t < COUNT; ++t) {
      double weight = 1;
      if (F::INTERPOLATION == sample_linear) weight = t == 0 ? 1 - rest : rest;
      if (F::INTERPOLATION == sample_cubic) weight = cubic_weight(t < 2 ? rest + (1 - t) : (t - 1) - rest, -0.75);
      i64 position = first + t;
      if (position < 0 || position >= extent) {
        if (F::PADDING == pad_zeros) position = -1;
        if (F::PADDING == pad_reflection) position = (i64)reflected((double)position, low, high);
        if (F::PADDING != pad_zeros) position = position < 0 ? 0 : position >= extent ? extent - 1 : position;
      }
      positions[t] = weight == 0 ? -1 : position;
      weights[t] = (C)weight;
    }
  }
};

// Adds the elements of a channel that the axes from A on lead to.
template <int A, class F, class P>
HEDDLE_INLINE void add_samples(const P& p, const SampleTaps<F>* taps, const typename F::T* channel, i64 offset, typename F::C weight,
                               typename F::C& sum) {
  if constexpr (A == F::AXES) {
    sum += weight * To<typename F::C>::from(channel[offset]);
  } else {
    for (int t = 0; t < SampleTaps<F>::COUNT; ++t)
      if (taps[A].positions[t] >= 0)
        add_samples<A + 1, F>(p, taps, channel, offset * p.input[A] + taps[A].positions[t], weight * taps[A].weights[t], sum);
  }
}

// Units are numbered by positions of a batch entry, groups of channels, and batch entries.
template <class F, class P>
HEDDLE_INLINE void grid_sample(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const Index units = (Index)p.units, step = (Index)gridDim.x * blockDim.x;
  for (Index unit = (Index)blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Index line = unit / (Index)p.written, batch = line / (Index)p.groups;
    const i64 position = (i64)(unit - line * (Index)p.written), group = (i64)(line - batch * (Index)p.groups);
    SampleTaps<F> taps[F::AXES];
    const auto* const at = p.grid + ((i64)batch * p.written + position) * F::AXES;
    // The grid gives the innermost axis first.
    for (int axis = 0; axis < F::AXES; ++axis) taps[axis].find(To<double>::from(at[F::AXES - 1 - axis]), p.input[axis]);
    const i64 end = (group + 1) * p.at_once;
    for (i64 c = group * p.at_once; c < (end < p.channels ? end : p.channels); ++c) {
      const i64 plane = (i64)batch * p.channels + c;
      C sum = 0;
      add_samples<0, F>(p, taps, p.x + plane * p.read, 0, (C)1, sum);
      p.y[plane * p.written + position] = Stored<typename F::T>::of(sum);
    }
  }
}

#endif

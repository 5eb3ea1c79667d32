// Normalisations that depend only on each element's channel: with given numbers, or by the neighbouring channels.
//
// F is generated (generate/operators/channel_launches.cc): types Index and C, sizes and flags as constants, and
//   void load<W>(p, Index at, C (&x)[W])   void store<W>(p, Index at, const C (&y)[W])   and the functions named below
#ifndef HEDDLE_CHANNELS_CUH
#define HEDDLE_CHANNELS_CUH

// The transform of the elements of one channel: (x - mean) * factor + bias.
template <class C>
struct Affine {
  C mean, factor, bias;
};

// Applies Affine<C> F::affine(p, Index channel). Elements of one channel are adjacent, `inner` at a time.
template <class F, class P>
HEDDLE_INLINE void normalize_batch(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  constexpr int W = F::WIDTH;
  const Index packs = (Index)p.count / W, step = (Index)gridDim.x * blockDim.x, inner = (Index)p.inner, channels = (Index)p.channels;
  for (Index pack = (Index)blockIdx.x * blockDim.x + threadIdx.x; pack < packs; pack += step) {
    const Index at = pack * W;
    C x[W];
    F::template load<W>(p, at, x);
    Affine<C> affine = F::affine(p, at / inner % channels);
    for (int e = 0; e < W; ++e) {
      if (!F::ONE_CHANNEL && e > 0) affine = F::affine(p, (at + e) / inner % channels);
      x[e] = (x[e] - affine.mean) * affine.factor + affine.bias;
    }
    F::template store<W>(p, at, x);
  }
}

// Computes x / (bias + alpha * sum of squares of the channels from `before` before to `behind` after)^beta.
template <class F, class P>
HEDDLE_INLINE void normalize_locally(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x, inner = (Index)p.inner, channels = (Index)p.channels;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const Index channel = at / inner % channels;
    const Index first = channel < (Index)p.before ? 0 : channel - (Index)p.before;
    const Index last = channels - 1 - channel < (Index)p.behind ? channels - 1 : channel + (Index)p.behind;
    C sum[1] = {0}, x[1];
    for (Index other = first; other <= last; ++other) {
      F::template load<1>(p, at + other * inner - channel * inner, x);
      sum[0] += x[0] * x[0];
    }
    F::template load<1>(p, at, x);
    x[0] = x[0] / op_pow((C)p.bias + (C)p.alpha * sum[0], (C)p.beta);
    F::template store<1>(p, at, x);
  }
}

#endif

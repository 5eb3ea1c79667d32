// Losses of one class label per position, and their sum or mean. A label that names no class is reported (text/fault.cuh).
//
// F is generated (generate/operators/loss_launches.cc): types Index, C and S (a sum of text/folds.cuh), flags as constants, and
//   C weight(p, i64 label)   C score(p, Index at)   void store(p, Index at, C)
#ifndef HEDDLE_LOSS_CUH
#define HEDDLE_LOSS_CUH

template <class S>
struct Losses {
  S loss, weight;
};
template <class S>
HEDDLE_INLINE Losses<S> joined(Losses<S> a, Losses<S> b) {
  return {joined(a.loss, b.loss), joined(a.weight, b.weight)};
}
template <class S>
HEDDLE_INLINE Losses<S> lane_xor(Losses<S> a, int mask) {
  return {lane_xor(a.loss, mask), lane_xor(a.weight, mask)};
}
template <class S>
struct Together {
  HEDDLE_INLINE_MEMBER Losses<S> combine(Losses<S> a, Losses<S> b) { return joined(a, b); }
};

template <class C>
struct Weighted {
  C loss, weight;
};
template <class F, class P>
HEDDLE_INLINE Weighted<typename F::C> loss_of(const P& p, typename F::Index position) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const i64 label = (i64)p.labels[position];
  if (F::IGNORES && label == p.ignored) return {(C)0, (C)0};
  if (label < 0 || label >= p.classes) {
    report_index(p, label, 0, p.classes - 1);
    return {infinity_of((C)0) - infinity_of((C)0), (C)1};
  }
  const Index inner = (Index)p.inner;
  const C weight = F::weight(p, label);
  const C score = F::score(p, position / inner * inner * (Index)p.classes + position % inner + (Index)label * inner);
  if constexpr (F::SOFTMAX)
    return {weight * ((p.known[position].largest - score) + p.known[position].rest), weight};
  else
    return {weight * -score, weight};
}

template <class F, class P>
HEDDLE_INLINE void loss_each(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) F::store(p, at, loss_of<F>(p, at).loss);
}

// Each block sums one part of the positions.
template <class F, class P>
HEDDLE_INLINE void loss_parts(const P& p) {
  typedef typename F::Index Index;
  typedef Losses<typename F::S> A;
  HEDDLE_SHARED(A, shared, 32);
  const Index parts = (Index)p.parts;
  for (Index part = blockIdx.x; part < parts; part += gridDim.x) {
    const Index first = part * (Index)p.part, count = (Index)p.count, last = count - first < (Index)p.part ? count : first + (Index)p.part;
    A a = {};
    for (Index at = first + threadIdx.x; at < last; at += F::THREADS) {
      const Weighted<typename F::C> one = loss_of<F>(p, at);
      a = {added(a.loss, one.loss), added(a.weight, one.weight)};
    }
    a = across<Together<typename F::S>, F::THREADS>(a, shared);
    if (threadIdx.x == 0) p.partial[part] = a;
  }
}

// Runs as one block.
template <class F, class P>
HEDDLE_INLINE void loss_total(const P& p) {
  typedef typename F::Index Index;
  typedef Losses<typename F::S> A;
  HEDDLE_SHARED(A, shared, 32);
  A a = {};
  for (Index part = threadIdx.x; part < (Index)p.parts; part += F::THREADS) a = joined(a, p.partial[part]);
  a = across<Together<typename F::S>, F::THREADS>(a, shared);
  if (threadIdx.x == 0) F::store(p, 0, F::MEAN ? value_of(a.loss) / value_of(a.weight) : value_of(a.loss));
}

#endif

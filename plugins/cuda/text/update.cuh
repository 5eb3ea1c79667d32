// Updates a variable, unless it is held (text/fault.cuh), or not to be applied. Its next version, y, shares its memory: each element is read
// by the thread that writes it.
//
// F is generated (generate/operators/update_launches.cc): types Index, T (an element) and C (what is computed in), and
//   bool applies(p)   C amount(p)   C next(C variable, C value, C amount)
#ifndef HEDDLE_UPDATE_CUH
#define HEDDLE_UPDATE_CUH

template <class F, class P>
HEDDLE_INLINE void update(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  typedef typename F::C C;
  constexpr int N = 16 / sizeof(T);
  if (!F::applies(p) || is_held(p)) return;
  const C amount = F::amount(p);
  const Index count = (Index)p.count, packs = count / N + (count % N != 0), step = (Index)gridDim.x * blockDim.x;
  for (Index pack = (Index)blockIdx.x * blockDim.x + threadIdx.x; pack < packs; pack += step) {
    T x[N] = {}, value[N] = {};
    load_some<N>(p.x, count, pack * N, x);
    load_some<N>(p.value, count, pack * N, value);
    for (int i = 0; i < N; ++i) x[i] = Stored<T>::of(F::next(To<C>::from(x[i]), To<C>::from(value[i]), amount));
    store_some<N>(p.y, count, pack * N, x);
  }
}

// StepIncrement.
template <class F, class P>
HEDDLE_INLINE void count_on(const P& p) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && F::applies(p) && !is_held(p)) p.y[0] = op_add(p.x[0], (i64)1);
}

// Assign.
template <class F, class P>
HEDDLE_INLINE void assign(const P& p) {
  if (F::applies(p) && !is_held(p)) copy_bytes<typename F::Index>(p);
}

#endif

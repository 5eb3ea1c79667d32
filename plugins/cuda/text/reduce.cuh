// Reductions: each output is the fold of `folded` elements. Rows: neighbouring elements fold into one output, by LANES threads. Columns:
// neighbouring elements fold into neighbouring outputs, LANES threads beside each other. Split: each output is folded in parts, whose
// results reduce_parts() folds in order.
//
// F is generated (generate/reduce/reduce_source.h): types C (computed in), A (folded in) and Shift, Index, sizes as constants, and
//   A start()   A add(A, C x, Index position, const Shift&)   A combine(A, A)   Shift shift(p, output)
//   void load<W>(p, Index at, C (&x)[W])   void store(p, Index output, Index place, A)   void keep(p, Index slot, A)
// KEPT and REDUCED are the groups of dimensions, at least one of each.
#ifndef HEDDLE_REDUCE_CUH
#define HEDDLE_REDUCE_CUH

template <class F, class P>
HEDDLE_INLINE void reduced_to(const P& p, typename F::Index output, typename F::Index part, typename F::A a) {
  typedef typename F::Index Index;
  if constexpr (F::SPLIT)
    F::keep(p, output * (Index)p.parts + part, a);
  else
    F::store(p, output, F::LINEAR ? output : offset_of<F::KEPT>(output, p.kept_extents, p.kept_places), a);
}

// Computes a minimum of values of Index, which must be the compiler's own: ptxas 13.0 compiles a choice between parameters of 64 bits that
// is narrowed afterwards into a move of its lower 16 bits only (tests/cuda/ptx_check.h).
template <class Index>
HEDDLE_INLINE Index end_of_part(i64 folded, Index first, i64 part) {
  const Index left = (Index)folded - first, most = (Index)part;
#ifdef __CUDA_ARCH__
  return first + min(left, most);
#else
  return first + (left < most ? left : most);
#endif
}

template <class F, class P>
HEDDLE_INLINE void reduce_rows(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::A A;
  typedef typename F::C C;
  constexpr int W = F::WIDTH, LANES = F::LANES, rows = F::THREADS / LANES;
  HEDDLE_SHARED(A, shared, 32);
  const Index units = (Index)p.outputs * (Index)p.parts, lane = threadIdx.x % LANES;
  for (Index base = (Index)blockIdx.x * rows; base < units; base += (Index)gridDim.x * rows) {
    const Index unit = base + threadIdx.x / LANES, output = F::SPLIT ? unit / (Index)p.parts : unit;
    const Index part = F::SPLIT ? unit % (Index)p.parts : 0;
    A a[W];
    for (int e = 0; e < W; ++e) a[e] = F::start();
    if (unit < units) {
      const Index from = offset_of<F::KEPT>(output, p.kept_extents, p.kept_strides), first = part * (Index)p.part;
      const Index last = end_of_part<Index>(p.folded, first, p.part);
      const typename F::Shift shift = F::shift(p, output);
#pragma unroll 4
      for (Index i = first + lane * W; i < last; i += LANES * W) {
        C x[W];
        F::template load<W>(p, from + offset_of<F::REDUCED>(i, p.reduced_extents, p.reduced_strides), x);
        for (int e = 0; e < W; ++e) a[e] = F::add(a[e], x[e], i + e, shift);
      }
    }
    for (int half = W / 2; half > 0; half /= 2)
      for (int e = 0; e < half; ++e) a[e] = F::combine(a[e], a[e + half]);
    const A all = across<F, LANES>(a[0], shared);
    if (unit < units && lane == 0) reduced_to<F>(p, output, part, all);
  }
}

// Folds tiles of LANES * W neighbouring outputs in one row of `row` of them; the threads of a block that are not adjacent take turns at the
// elements.
template <class F, class P>
HEDDLE_INLINE void reduce_columns(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::A A;
  typedef typename F::C C;
  constexpr int W = F::WIDTH, LANES = F::LANES, turns = F::THREADS / LANES;
  HEDDLE_SHARED(A, shared, F::THREADS);
  const Index row = (Index)p.row, tiles = (row + LANES * W - 1) / (LANES * W), rows = (Index)p.outputs / row;
  const Index units = rows * tiles * (Index)p.parts, lane = threadIdx.x % LANES, turn = threadIdx.x / LANES;
  for (Index unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Index part = F::SPLIT ? unit % (Index)p.parts : 0, tile = F::SPLIT ? unit / (Index)p.parts : unit;
    const Index column = tile % tiles * (LANES * W) + lane * W, output = tile / tiles * row + column;
    const bool mine = column < row;
    A a[W];
    for (int e = 0; e < W; ++e) a[e] = F::start();
    if (mine) {
      const Index from = offset_of<F::KEPT>(output, p.kept_extents, p.kept_strides), first = part * (Index)p.part;
      const Index last = end_of_part<Index>(p.folded, first, p.part);
      typename F::Shift shift[W];
      for (int e = 0; e < W; ++e) shift[e] = F::shift(p, output + e);
#pragma unroll 4
      for (Index i = first + turn; i < last; i += turns) {
        C x[W];
        F::template load<W>(p, from + offset_of<F::REDUCED>(i, p.reduced_extents, p.reduced_strides), x);
        for (int e = 0; e < W; ++e) a[e] = F::add(a[e], x[e], i, shift[e]);
      }
    }
    for (int e = 0; e < W; ++e) {
      if constexpr (turns > 1) {
        __syncthreads();  // other threads may still read the previous content
        shared[threadIdx.x] = a[e];
        for (int half = turns / 2; half > 0; half /= 2) {
          __syncthreads();
          if (turn < half) shared[threadIdx.x] = F::combine(shared[threadIdx.x], shared[threadIdx.x + half * LANES]);
        }
        a[e] = shared[threadIdx.x];
      }
      if (mine && turn == 0) reduced_to<F>(p, output + e, part, a[e]);
    }
  }
}

// Folds the parts of one output by one warp.
template <class F, class P>
HEDDLE_INLINE void reduce_parts(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::A A;
  constexpr int warps = F::THREADS / 32;
  const Index outputs = (Index)p.outputs, parts = (Index)p.parts, lane = threadIdx.x % 32;
  for (Index base = (Index)blockIdx.x * warps; base < outputs; base += (Index)gridDim.x * warps) {
    const Index output = base + threadIdx.x / 32;
    A a = F::start();
    for (Index part = lane; output < outputs && part < parts; part += 32) a = F::combine(a, p.partial[output * parts + part]);
    a = across_lanes<F, 32>(a);
    if (output < outputs && lane == 0)
      F::store(p, output, F::LINEAR ? output : offset_of<F::KEPT>(output, p.kept_extents, p.kept_places), a);
  }
}

#endif

// Einsum: sums of products of elements of all operands. The labels of the output come first, then those that are summed over; an operand
// has a stride for each. One thread for each sum, or a block; where few sums are long they are divided into parts, each a block's, that a
// second kernel adds up in order. Follows "block" and "grouped_sum".
//
// F is generated (generate/operators/einsum_launches.cc), with types Index and C, OPERANDS, OUTER and INNER (labels of the output, and
// summed ones), and
//   C factor(p, int operand, i64 at)   void store(p, Index at, C value)
#ifndef HEDDLE_EINSUM_CUH
#define HEDDLE_EINSUM_CUH

struct AddSums {
  template <class C>
  HEDDLE_INLINE_MEMBER C combine(C a, C b) {
    return op_add(a, b);
  }
};

// Advances to position `rest` along COUNT labels from FIRST on.
template <class F, int FIRST, int COUNT, class P>
HEDDLE_INLINE void move_along(const P& p, typename F::Index rest, i64* offsets) {
  constexpr int LABELS = F::OUTER + F::INNER;
  for (int d = FIRST + COUNT - 1; d >= FIRST; --d) {
    typename F::Index at = rest;
    if (d > FIRST) {
      rest = at / (typename F::Index)p.extents[d];
      at -= rest * (typename F::Index)p.extents[d];
    }
    for (int k = 0; k < F::OPERANDS; ++k) offsets[k] += (i64)at * p.strides[k * LABELS + d];
  }
}

// Adds every `stride`-th of the products [first, last) of a sum.
template <class F, class P>
HEDDLE_INLINE typename F::C sum_of_products(const P& p, typename F::Index output, typename F::Index first, typename F::Index last,
                                            typename F::Index stride) {
  typedef typename F::C C;
  i64 begin[F::OPERANDS] = {};
  move_along<F, 0, F::OUTER>(p, output, begin);
  GroupedSum<C> sum;
  for (typename F::Index i = first; i < last; i += stride) {
    i64 offsets[F::OPERANDS];
    for (int k = 0; k < F::OPERANDS; ++k) offsets[k] = begin[k];
    move_along<F, F::OUTER, F::INNER>(p, i, offsets);
    C product = F::factor(p, 0, offsets[0]);
    for (int k = 1; k < F::OPERANDS; ++k) product = op_mul(product, F::factor(p, k, offsets[k]));
    sum.add(product);
  }
  sum.close();
  return sum.total;
}

template <class F, class P>
HEDDLE_INLINE void einsum_threads(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.outputs, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
    F::store(p, at, sum_of_products<F>(p, at, (Index)0, (Index)p.summed, (Index)1));
}

template <class F, class P>
HEDDLE_INLINE void einsum_blocks(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  HEDDLE_SHARED(C, shared, F::THREADS / 32);
  const Index parts = (Index)p.parts, units = (Index)p.outputs * parts;
  for (Index unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Index output = unit / parts, first = (unit - output * parts) * (Index)p.part;
    const Index end = first + (Index)p.part, last = end < (Index)p.summed ? end : (Index)p.summed;
    const C sum = across<AddSums, F::THREADS>(sum_of_products<F>(p, output, first + threadIdx.x, last, (Index)F::THREADS), shared);
    if (threadIdx.x == 0) {
      if constexpr (F::DIVIDED)
        p.partial[unit] = sum;
      else
        F::store(p, output, sum);
    }
  }
}

template <class F, class P>
HEDDLE_INLINE void einsum_parts(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.outputs, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    typename F::C sum = 0;
    for (Index part = 0; part < (Index)p.parts; ++part) sum = op_add(sum, p.partial[at * (Index)p.parts + part]);
    F::store(p, at, sum);
  }
}

#endif

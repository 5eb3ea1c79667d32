// Combines the elements of the parts of a group in a tree of fixed order: part i with part i + 1, pairs with pairs, and so on, as the host's
// collectives do. Part `self` is `own`; the other parts lie `stride` elements apart from `others` on, in order.
//
// F is generated (generate/operators/combine_launches.cc): types Index, T (an element) and C (what is computed in), and
//   C next(C left, C right)   C last(C value, p)
#ifndef HEDDLE_COMBINE_CUH
#define HEDDLE_COMBINE_CUH

template <class F, class P>
HEDDLE_INLINE void combine(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  typedef typename F::C C;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    C trees[12];  // full trees, each smaller than the one before it: up to 4095 parts
    int depth = 0;
    for (i64 part = 0; part < p.parts; ++part) {
      const T* const from = part == p.self ? p.own : p.others + (part < p.self ? part : part - 1) * p.stride;
      C value = To<C>::from(from[i]);
      for (i64 pairs = part + 1; pairs % 2 == 0; pairs /= 2) value = F::next(trees[--depth], value);
      trees[depth++] = value;
    }
    C value = trees[--depth];
    while (depth > 0) value = F::next(trees[--depth], value);
    p.y[i] = Stored<T>::of(F::last(value, p));
  }
}

#endif

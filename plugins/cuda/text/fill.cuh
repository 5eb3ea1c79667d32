// Outputs that copy no input.
#ifndef HEDDLE_FILL_CUH
#define HEDDLE_FILL_CUH

// ConstantOfShape: p.value repeats the element's bits.
template <class F, class P>
HEDDLE_INLINE void fill_value(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  constexpr int EACH = 16 / sizeof(T);
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x, me = (Index)blockIdx.x * blockDim.x + threadIdx.x;
  const Bits16 pack = {(u64)p.value, (u64)p.value};
  for (Index i = me; i < count / EACH; i += step) ((Bits16*)p.y)[i] = pack;
  for (Index i = count / EACH * EACH + me; i < count; i += step) p.y[i] = (T)p.value;
}

// EyeLike.
template <class F, class P>
HEDDLE_INLINE void fill_diagonal(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const Index row = quotient(i, p.column_divider), column = i - row * (Index)p.columns;
    p.y[i] = (typename F::T)((i64)column - (i64)row == p.k ? p.value : 0);
  }
}

// Range: sums of integers wrap; those of floats are a product and a sum that round separately.
template <class F, class P>
HEDDLE_INLINE void fill_range(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    if constexpr (F::FLOATS)
      p.y[i] = (T)p.start + (T)i * (T)p.delta;
    else
      p.y[i] = (T)((u64)p.start + (u64)i * (u64)p.delta);
  }
}

#endif

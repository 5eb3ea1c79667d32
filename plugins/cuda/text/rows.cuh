// Operators that look at a row as a whole and then write each of its elements: softmaxes and normalisations.
//
// held_rows: a row lies in the registers of LANES threads, HELD packs of WIDTH elements each. apply_elements: the statistics of the rows
// were computed before (reductions); rows have any length and layout.
//
// Kinds define the statistics of a row (S), how they are computed and what an element becomes. F is generated (generate/rows/row_source.h):
// Kind, Index, sizes as constants, and
//   void load<W>(p, Index at, C (&x)[W])   void write<W>(p, Index at, Index row, Index position, const C (&v)[W])
//   void tell(p, Index row, const S&)
#ifndef HEDDLE_ROWS_CUH
#define HEDDLE_ROWS_CUH

#define HEDDLE_INLINE_METHOD __device__ __forceinline__

// The elements of a row that one of LANES threads holds.
template <class C, int LANES, int HELD, int W>
struct Part {
  C x[HELD][W];
  bool there[HELD];
  i64 first;  // position of its first element
  HEDDLE_INLINE_METHOD i64 position(int pack) const { return first + (i64)pack * (LANES * W); }
};
// Calls f(element, position) for all of a thread's elements.
template <class C, int LANES, int HELD, int W, class Function>
HEDDLE_INLINE void each(Part<C, LANES, HELD, W>& row, Function f) {
#pragma unroll
  for (int k = 0; k < HELD; ++k) {
    if (!row.there[k]) continue;
#pragma unroll
    for (int e = 0; e < W; ++e) f(row.x[k][e], row.position(k) + e);
  }
}

template <class C>
struct SoftmaxRow {
  typedef Softened<C> S;
  // Replaces the elements by their exponentials.
  template <int LANES, int HELD, int W>
  HEDDLE_INLINE_MEMBER S known(Part<C, LANES, HELD, W>& row, i64, double, void* shared) {
    C largest = -infinity_of((C)0), sum = (C)0;
    each(row, [&](C& x, i64) { largest = op_max(largest, x); });
    largest = across<Largest<C>, LANES>(largest, (C*)shared);
    each(row, [&](C& x, i64) {
      x = op_exp(x - largest);
      sum += x;
    });
    sum = across<Sum<C>, LANES>(sum, (C*)shared);
    return {largest, (C)1 / sum};
  }
  HEDDLE_INLINE_MEMBER C held(const S& s, C exponential, i64) { return exponential * s.rest; }
  HEDDLE_INLINE_MEMBER C applied(const S& s, C x, i64) { return op_exp(x - s.largest) * s.rest; }
};

template <class C>
struct LogSoftmaxRow {
  typedef Softened<C> S;
  template <int LANES, int HELD, int W>
  HEDDLE_INLINE_MEMBER S known(Part<C, LANES, HELD, W>& row, i64, double, void* shared) {
    C largest = -infinity_of((C)0), sum = (C)0;
    each(row, [&](C& x, i64) { largest = op_max(largest, x); });
    largest = across<Largest<C>, LANES>(largest, (C*)shared);
    each(row, [&](C& x, i64) { sum += op_exp(x - largest); });
    sum = across<Sum<C>, LANES>(sum, (C*)shared);
    return {largest, op_log(sum)};
  }
  HEDDLE_INLINE_MEMBER C held(const S& s, C x, i64) { return (x - s.largest) - s.rest; }
  HEDDLE_INLINE_MEMBER C applied(const S& s, C x, i64 at) { return held(s, x, at); }
};

template <class C>
struct HardmaxRow {
  typedef Extreme<C> S;
  template <int LANES, int HELD, int W>
  HEDDLE_INLINE_MEMBER S known(Part<C, LANES, HELD, W>& row, i64, double, void* shared) {
    S largest = {(C)0, -1};
    each(row, [&](C& x, i64 position) { largest = farther<true, false>(largest, S{x, position}); });
    return across<FirstLargest<C>, LANES>(largest, (S*)shared);
  }
  HEDDLE_INLINE_MEMBER C held(const S& s, C, i64 at) { return (C)(at == s.index); }
  HEDDLE_INLINE_MEMBER C applied(const S& s, C x, i64 at) { return held(s, x, at); }
};

// T: the type that sums a row (folds.cuh).
template <class T, class C, bool BESIDE>
struct MomentsRow {
  typedef Moments<C> S;
  template <int LANES, int HELD, int W>
  HEDDLE_INLINE_MEMBER S known(Part<C, LANES, HELD, W>& row, i64 count, double epsilon, void* shared) {
    typedef Spread<T> Sums;
    T sum = {};
    each(row, [&](C& x, i64) { sum = added(sum, x); });
    const Mean<C> mean = mean_of(across<Joined<T>, LANES>(sum, (T*)shared), count);
    Sums spread = {};
    each(row, [&](C& x, i64) { spread = added(spread, away_from(mean, x)); });
    return moments_of<BESIDE>(mean, across<Joined<Sums>, LANES>(spread, (Sums*)shared), count, epsilon);
  }
  HEDDLE_INLINE_MEMBER C held(const S& s, C x, i64) { return away_from(s.mean, x) * s.inverse; }
  HEDDLE_INLINE_MEMBER C applied(const S& s, C x, i64 at) { return held(s, x, at); }
};

// 1 / sqrt(mean of squares + epsilon)
template <class C>
struct SquaresRow {
  typedef One<C> S;
  template <int LANES, int HELD, int W>
  HEDDLE_INLINE_MEMBER S known(Part<C, LANES, HELD, W>& row, i64 count, double epsilon, void* shared) {
    C squares = (C)0;
    each(row, [&](C& x, i64) { squares += x * x; });
    squares = across<Sum<C>, LANES>(squares, (C*)shared);
    return {(C)1 / op_sqrt(squares / (C)count + (C)epsilon)};
  }
  HEDDLE_INLINE_MEMBER C held(const S& s, C x, i64) { return x * s.value; }
  HEDDLE_INLINE_MEMBER C applied(const S& s, C x, i64 at) { return held(s, x, at); }
};

// The 1-norm or 2-norm. If it is 0, so are the results.
template <class C, int POWER>
struct NormRow {
  typedef One<C> S;
  template <int LANES, int HELD, int W>
  HEDDLE_INLINE_MEMBER S known(Part<C, LANES, HELD, W>& row, i64, double, void* shared) {
    C sum = (C)0;
    each(row, [&](C& x, i64) { sum += POWER == 1 ? op_abs(x) : x * x; });
    sum = across<Sum<C>, LANES>(sum, (C*)shared);
    return {POWER == 1 ? sum : op_sqrt(sum)};
  }
  HEDDLE_INLINE_MEMBER C held(const S& s, C x, i64) { return s.value == (C)0 ? (C)0 : x / s.value; }
  HEDDLE_INLINE_MEMBER C applied(const S& s, C x, i64 at) { return held(s, x, at); }
};

// Returns the beginning of row r: r * columns or, if its elements are p.inner apart, its place among the neighbouring rows.
template <class F, class P>
HEDDLE_INLINE void held_rows(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  typedef typename F::Kind Kind;
  constexpr int W = F::WIDTH, LANES = F::LANES, HELD = F::HELD, together = F::THREADS / LANES;
  HEDDLE_SHARED(u64, shared, 64);
  const Index rows = (Index)p.rows, columns = (Index)p.columns, inner = F::STRIDED ? (Index)p.inner : 1;
  for (Index base = (Index)blockIdx.x * together; base < rows; base += (Index)gridDim.x * together) {
    const Index row = base + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const Index begin = F::STRIDED ? row / inner * inner * columns + row % inner : row * columns;
    Part<C, LANES, HELD, W> part;
    part.first = lane * W;
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
      const Index i = (Index)part.position(k);
      part.there[k] = row < rows && i < columns;
      if (part.there[k]) F::template load<W>(p, begin + i * inner, part.x[k]);
    }
    const typename Kind::S known = Kind::known(part, (i64)p.columns, p.epsilon, shared);
    each(part, [&](C& x, i64 position) { x = Kind::held(known, x, position); });
#pragma unroll
    for (int k = 0; k < HELD; ++k)
      if (part.there[k]) F::template write<W>(p, begin + (Index)part.position(k) * inner, row, (Index)part.position(k), part.x[k]);
    if (row < rows && lane == 0) F::tell(p, row, known);
  }
}

// Writes elements in the order in which they are stored. GROUPS of dimensions give the row of each, and its position there.
template <class F, class P>
HEDDLE_INLINE void apply_elements(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  typedef typename F::Kind Kind;
  constexpr int W = F::WIDTH, GROUPS = F::GROUPS;
  const Index packs = (Index)p.count / W, step = (Index)gridDim.x * blockDim.x;
  const Index next_row = (Index)p.row_strides[GROUPS - 1], next_position = (Index)p.position_strides[GROUPS - 1];
  for (Index pack = (Index)blockIdx.x * blockDim.x + threadIdx.x; pack < packs; pack += step) {
    const Index at = pack * W;
    const Index row = offset_of<GROUPS>(at, p.extents, p.row_strides);
    const Index position = offset_of<GROUPS>(at, p.extents, p.position_strides);
    C x[W];
    F::template load<W>(p, at, x);
    for (int e = 0; e < W; ++e) {
      const typename Kind::S known = p.known[row + e * next_row];
      x[e] = Kind::applied(known, x[e], position + e * next_position);
      if (position + e * next_position == 0) F::tell(p, row + e * next_row, known);
    }
    F::template write<W>(p, at, row, position, x);
  }
}

#endif

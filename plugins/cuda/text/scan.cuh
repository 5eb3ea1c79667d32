// Sums of all elements up to each one, along lines of elements that lie p.inner apart. Long lines are divided into parts: kernels compute
// their sums first, then what comes before each part, and the elements last.
//
// F is generated (generate/select/scan_launches.cc): types Index and C, sizes and flags as constants, and
//   void load<W>(p, Index at, C (&x)[W])   void store<W>(p, Index at, const C (&y)[W])
#ifndef HEDDLE_SCAN_CUH
#define HEDDLE_SCAN_CUH

// One part of one line.
template <class Index>
struct Stretch {
  Index begin, first, last;  // of the line; positions
};
template <class F, class P>
HEDDLE_INLINE Stretch<typename F::Index> stretch_of(const P& p, typename F::Index unit) {
  typedef typename F::Index Index;
  const Index parts = (Index)p.parts, count = (Index)p.count, inner = (Index)p.inner, line = unit / parts,
              first = unit % parts * (Index)p.part;
  return {line / inner * inner * count + line % inner, first, count - first < (Index)p.part ? count : first + (Index)p.part};
}
// Returns the place of position i of a line; `width` positions together begin with the last one if they are taken in reverse.
template <class F, class P>
HEDDLE_INLINE typename F::Index place_of(const P& p, typename F::Index begin, typename F::Index i, int width) {
  typedef typename F::Index Index;
  return begin + (F::REVERSE ? (Index)p.count - width - i : i) * (Index)p.inner;
}

// Runs a thread for each line, or part of one.
template <class F, class P>
HEDDLE_INLINE void scan_lines(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const Index units = (Index)p.lines * (Index)p.parts, step = (Index)gridDim.x * blockDim.x;
  for (Index unit = (Index)blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Stretch<Index> s = stretch_of<F>(p, unit);
    C sum = F::CARRIES && !F::TOTALS ? p.sums[unit] : (C)0;
    for (Index i = s.first; i < s.last; ++i) {
      const Index at = place_of<F>(p, s.begin, i, 1);
      C x[1], y[1];
      F::template load<1>(p, at, x);
      y[0] = sum;
      sum = op_add(sum, x[0]);
      if (!F::EXCLUSIVE) y[0] = sum;
      if (!F::TOTALS) F::template store<1>(p, at, y);
    }
    if (F::TOTALS) p.sums[unit] = sum;
  }
}

// ITEMS neighbouring elements of a row, which are read at once if WHOLE: rows are whole packs.
template <class F, class P>
HEDDLE_INLINE void load_items(const P& p, const Stretch<typename F::Index>& s, typename F::Index i, typename F::C (&x)[F::ITEMS]) {
  if constexpr (F::WHOLE) {
    typename F::C pack[F::ITEMS];
    for (int e = 0; e < F::ITEMS; ++e) pack[e] = 0;
    if (i < s.last) F::template load<F::ITEMS>(p, place_of<F>(p, s.begin, i, F::ITEMS), pack);
    for (int e = 0; e < F::ITEMS; ++e) x[e] = pack[F::REVERSE ? F::ITEMS - 1 - e : e];
  } else {
    for (int e = 0; e < F::ITEMS; ++e) {
      typename F::C one[1] = {0};
      if (i + e < s.last) F::template load<1>(p, place_of<F>(p, s.begin, i + e, 1), one);
      x[e] = one[0];
    }
  }
}
template <class F, class P>
HEDDLE_INLINE void store_items(const P& p, const Stretch<typename F::Index>& s, typename F::Index i, const typename F::C (&y)[F::ITEMS]) {
  if constexpr (F::WHOLE) {
    typename F::C pack[F::ITEMS];
    for (int e = 0; e < F::ITEMS; ++e) pack[F::REVERSE ? F::ITEMS - 1 - e : e] = y[e];
    if (i < s.last) F::template store<F::ITEMS>(p, place_of<F>(p, s.begin, i, F::ITEMS), pack);
  } else {
    for (int e = 0; e < F::ITEMS; ++e) {
      const typename F::C one[1] = {y[e]};
      if (i + e < s.last) F::template store<1>(p, place_of<F>(p, s.begin, i + e, 1), one);
    }
  }
}

// Runs a block for each row, or part of one, of neighbouring elements.
template <class F, class P>
HEDDLE_INLINE void scan_rows(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  constexpr int ITEMS = F::ITEMS, THREADS = F::THREADS;
  HEDDLE_SHARED(C, shared, THREADS / 32);
  const Index units = (Index)p.lines * (Index)p.parts;
  for (Index unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Stretch<Index> s = stretch_of<F>(p, unit);
    C carry = F::CARRIES && !F::TOTALS ? p.sums[unit] : (C)0;
    for (Index first = s.first; first < s.last; first += THREADS * ITEMS) {
      const Index i = first + threadIdx.x * ITEMS;
      C x[ITEMS], own = 0, all = 0;
      load_items<F>(p, s, i, x);
      for (int e = 0; e < ITEMS; ++e) own = op_add(own, x[e]);
      [[maybe_unused]] C sum = op_add(carry, sum_before<THREADS>(own, shared, &all));
      carry = op_add(carry, all);
      if constexpr (!F::TOTALS) {
        for (int e = 0; e < ITEMS; ++e) {
          const C before = sum;
          sum = op_add(sum, x[e]);
          x[e] = F::EXCLUSIVE ? before : sum;
        }
        store_items<F>(p, s, i, x);
      }
    }
    if (F::TOTALS && threadIdx.x == 0) p.sums[unit] = carry;
  }
}

// Replaces the sum of each part by the sum of all parts before it. A thread for each line.
template <class F, class P>
HEDDLE_INLINE void scan_sums(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const Index lines = (Index)p.lines, parts = (Index)p.parts, step = (Index)gridDim.x * blockDim.x;
  for (Index line = (Index)blockIdx.x * blockDim.x + threadIdx.x; line < lines; line += step) {
    C sum = 0;
    for (Index part = 0; part < parts; ++part) {
      const C own = p.sums[line * parts + part];
      p.sums[line * parts + part] = sum;
      sum = op_add(sum, own);
    }
  }
}

#endif

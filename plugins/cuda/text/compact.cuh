// Finds the positions that hold something, and counts them in parts, each of which begins where those before it end. The number is written
// to the slot of the output's extent; nothing waits for it.
//
// F is generated (generate/select/compact_launches.cc): types Index and T (a unit), sizes as constants, and
//   bool holds(p, Index i)   void put(p, Index i, bool holds, i64 place, i64 total)
#ifndef HEDDLE_COMPACT_CUH
#define HEDDLE_COMPACT_CUH

struct Plus {
  HEDDLE_INLINE_MEMBER i64 combine(i64 a, i64 b) { return a + b; }
};

template <class F, class P>
HEDDLE_INLINE void count_parts(const P& p) {
  typedef typename F::Index Index;
  constexpr int THREADS = F::THREADS;
  HEDDLE_SHARED(i64, shared, THREADS / 32);
  const Index count = (Index)p.count, size = (Index)p.part;
  for (Index part = blockIdx.x; part < (Index)p.parts; part += gridDim.x) {
    const Index first = part * size, last = count - first < size ? count : first + size;
    i64 own = 0;
    for (Index i = first + threadIdx.x; i < last; i += THREADS) own += F::holds(p, i) ? 1 : 0;
    own = across<Plus, THREADS>(own, shared);
    if (threadIdx.x == 0) p.counts[part] = own;
  }
}

// Replaces the count of each part by the count of all parts before it, and stores the total, also if there are no parts. Uses one block.
template <class F, class P>
HEDDLE_INLINE void place_parts(const P& p) {
  constexpr int THREADS = F::THREADS;
  HEDDLE_SHARED(i64, shared, THREADS / 32);
  if (blockIdx.x != 0) return;
  i64 carry = 0;
  for (i64 first = 0; first < p.parts; first += THREADS) {
    const i64 part = first + threadIdx.x;
    i64 all = 0;
    const i64 before = sum_before<THREADS>(part < p.parts ? p.counts[part] : 0, shared, &all);
    if (part < p.parts) p.counts[part] = carry + before;
    carry += all;
  }
  if (threadIdx.x != 0) return;
  p.total[0] = carry;
  if (p.extent) p.extent[0] = carry;
}

template <class F, class P>
HEDDLE_INLINE void put_parts(const P& p) {
  typedef typename F::Index Index;
  constexpr int THREADS = F::THREADS;
  HEDDLE_SHARED(i64, shared, THREADS / 32);
  const Index count = (Index)p.count, size = (Index)p.part;
  const i64 total = p.total[0];
  for (Index part = blockIdx.x; part < (Index)p.parts; part += gridDim.x) {
    const Index first = part * size, last = count - first < size ? count : first + size;
    i64 carry = p.counts[part];
    for (Index base = first; base < last; base += THREADS) {
      const Index i = base + threadIdx.x;
      const bool holds = i < last && F::holds(p, i);
      i64 all = 0;
      const i64 before = sum_before<THREADS>((i64)(holds ? 1 : 0), shared, &all);
      if (i < last) F::put(p, i, holds, carry + before, total);
      carry += all;
    }
  }
}

// NonZero: writes y [RANK, total], whose row d has coordinate d.
template <class F, class P, class Index>
HEDDLE_INLINE void put_coordinates(const P& p, Index i, i64 place, i64 total) {
  for (int d = F::RANK - 1; d >= 0; --d) {
    const Index whole = quotient(i, p.dividers[d]);
    p.y[d * total + place] = (i64)(i - whole * (Index)p.extents[d]);
    i = whole;
  }
}

// Compress: copies x [before, extent, row] to y [before, chosen, row]; p.places gives the target of each of `count` positions, all bits
// set: none. Without a slot for the extent, y has the extent that was known before.
template <class F, class P>
HEDDLE_INLINE void copy_chosen(const P& p) {
  typedef typename F::Index Index;
  const Index units = (Index)p.units, row = (Index)p.row, count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  const Index chosen = (Index)(p.extent ? p.total[0] : p.planned);
  for (Index unit = (Index)blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Index line = quotient(unit, p.row_divider), before = quotient(line, p.count_divider), i = line - before * count;
    const Index place = p.places[i], at = unit - line * row;
    if (place != ~(Index)0) p.y[(before * chosen + place) * row + at] = p.x[(before * (Index)p.whole + i) * row + at];
  }
}

#endif

// Writes or combines updates at indices; updates of the same element are applied in their order. An update whose index is out of range is
// left out, and reported (text/fault.cuh).
//
// By lines: a thread goes through all updates that may coincide. By order: the updates are sorted by their target element or slice
// (text/sort.cuh), and the thread of the first one of each target applies them.
//
// F is generated (generate/move/scatter_launches.cc): types Index and S (an element), and
//   S combined(S, S)   bool target(p, Index update, Index& at)
#ifndef HEDDLE_SCATTER_CUH
#define HEDDLE_SCATTER_CUH

// Returns the new element: modes are those of shared/movement/scatter_reduction.h.
template <int MODE, class S, class C>
HEDDLE_INLINE S combination(S old, S update) {
  const C a = To<C>::from(old), b = To<C>::from(update);
  if (MODE == 1) return Stored<S>::of(op_add(a, b));
  if (MODE == 2) return Stored<S>::of(op_mul(a, b));
  if (MODE == 3) return b > a || b != b ? update : old;
  return b < a || b != b ? update : old;
}

// ScatterElements: lines along the axis. p.strides lead to the line's first element, p.update_strides to its first update.
template <class F, class P>
HEDDLE_INLINE void scatter_lines(const P& p) {
  typedef typename F::Index Index;
  const Index lines = (Index)p.lines, step = (Index)gridDim.x * blockDim.x;
  for (Index line = (Index)blockIdx.x * blockDim.x + threadIdx.x; line < lines; line += step) {
    Index to = 0, update = 0, rest = line;
    for (int d = F::RANK - 1; d >= 0; --d) {
      const Index whole = quotient(rest, p.dividers[d]), position = rest - whole * (Index)p.extents[d];
      to += position * (Index)p.strides[d];
      update += position * (Index)p.update_strides[d];
      rest = whole;
    }
    for (i64 i = 0; i < p.axis_count; ++i, update += (Index)p.axis_update_stride) {
      Index at = 0;
      if (!resolved(p, (i64)p.indices[update], p.bound, at)) continue;
      at = to + at * (Index)p.axis_stride;
      p.y[at] = F::combined(p.y[at], p.updates[update]);
    }
  }
}

// ScatterElements: finds the target element of an update.
template <class F, class P>
HEDDLE_INLINE bool element_target(const P& p, typename F::Index update, typename F::Index& to) {
  typedef typename F::Index Index;
  Index at = 0;
  if (!resolved(p, (i64)p.indices[update], p.bound, at)) return false;
  to = offset_of<F::RANK>(p, update) + at * (Index)p.axis_stride;
  return true;
}
// ScatterND: finds the target slice.
template <class F, class P>
HEDDLE_INLINE bool slice_target(const P& p, typename F::Index update, typename F::Index& to) {
  typedef typename F::Index Index;
  to = 0;
  for (int k = 0; k < F::DEPTH; ++k) {
    Index at = 0;
    if (!resolved(p, (i64)p.indices[update * F::DEPTH + k], p.bounds[k], at)) return false;
    to = to * (Index)p.bounds[k] + at;
  }
  return true;
}

HEDDLE_INLINE u64 target_of(ShortEntry e) { return e.word >> 32; }
HEDDLE_INLINE u64 target_of(LongEntry e) { return e.key; }
HEDDLE_INLINE ShortEntry entry_of_target(u32 target, u32 update) { return {(u64)target << 32 | update}; }
HEDDLE_INLINE LongEntry entry_of_target(u64 target, u64 update) { return {target, update}; }

// The key of updates that are left out sorts them after all others.
template <class F, class P>
HEDDLE_INLINE typename F::E scatter_entry(const P& p, typename F::Index update) {
  typedef typename F::Index Index;
  Index to = 0;
  return entry_of_target(F::target(p, update, to) ? to : ~(Index)0, update);
}

template <class F, class P>
HEDDLE_INLINE void scatter_sorted(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::S S;
  const Index count = (Index)p.count, slice = (Index)p.slice, all = count * slice, step = (Index)gridDim.x * blockDim.x;
  for (Index unit = (Index)blockIdx.x * blockDim.x + threadIdx.x; unit < all; unit += step) {
    const Index first = quotient(unit, p.slice_divider), column = unit - first * slice;
    const u64 target = target_of(p.from[first]);
    if (target == (u64) ~(Index)0 || (first > 0 && target_of(p.from[first - 1]) == target)) continue;
    S& y = p.y[(Index)target * slice + column];
    S sum = y;
    for (Index i = first; i < count && target_of(p.from[i]) == target; ++i)
      sum = F::combined(sum, p.updates[(Index)position_of(p.from[i]) * slice + column]);
    y = sum;
  }
}

#endif

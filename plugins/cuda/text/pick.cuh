// Fills each unit of the output from one unit of the input, selected by an index, a length or a position. A unit without a source is
// F::nothing(p): Pad's constant, else zero, also if an index is out of range, which is reported (text/fault.cuh).
//
// F is generated (generate/move/): types Index, T (a unit) and I (an index), sizes as constants, and T nothing(p). K is one of the ways
// below: `bool source(p, unit, from)`.
#ifndef HEDDLE_PICK_CUH
#define HEDDLE_PICK_CUH

template <class K, class F, class P>
HEDDLE_INLINE void pick(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index unit = (Index)blockIdx.x * blockDim.x + threadIdx.x; unit < count; unit += step) {
    Index from = 0;
    p.y[unit] = K::template source<F>(p, unit, from) ? p.x[from] : F::nothing(p);
  }
}

// Returns true if an index, which may count from the end, names one of `bound` positions; otherwise reports it.
template <class P, class Index>
HEDDLE_INLINE bool resolved(const P& p, i64 index, i64 bound, Index& at) {
  const i64 position = index < 0 ? index + bound : index;
  at = (Index)position;
  if (position >= 0 && position < bound) return true;
  report_index(p, index, -bound, bound - 1);
  return false;
}

// Gather: y [before, picks, row] of x [before, bound, row].
struct Rows {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    const Index line = quotient(unit, p.row_divider), before = quotient(line, p.pick_divider);
    Index at = 0;
    if (!resolved(p, (i64)p.indices[line - before * (Index)p.picks], p.bound, at)) return false;
    from = (before * (Index)p.bound + at) * (Index)p.row + (unit - line * (Index)p.row);
    return true;
  }
};

// GatherND: slices of x at tuples of DEPTH indices, after the leading dimensions that both have.
struct Tuples {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    const Index pick = quotient(unit, p.row_divider);
    from = quotient(pick, p.pick_divider);
    for (int k = 0; k < F::DEPTH; ++k) {
      Index at = 0;
      if (!resolved(p, (i64)p.indices[pick * F::DEPTH + k], p.bounds[k], at)) return false;
      from = from * (Index)p.bounds[k] + at;
    }
    from = from * (Index)p.row + (unit - pick * (Index)p.row);
    return true;
  }
};

// GatherElements: the position of the unit, but for one axis.
struct Elements {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    Index at = 0;
    if (!resolved(p, (i64)p.indices[unit], p.bound, at)) return false;
    from = offset_of<F::RANK>(p, unit) + at * (Index)p.axis_stride;
    return true;
  }
};

// ReverseSequence: two dimensions of rows, the outer of `outer` and the inner of `inner`; one of them is time.
struct Reversed {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    const Index line = quotient(unit, p.row_divider), outer = quotient(line, p.inner_divider), inner = line - outer * (Index)p.inner;
    const i64 length = p.lengths[F::TIME_FIRST ? inner : outer], times = F::TIME_FIRST ? p.outer : p.inner;
    if (length < 0 || length > times) {
      report_index(p, length, 0, times);
      return false;
    }
    const Index time = F::TIME_FIRST ? outer : inner, other = time < (Index)length ? (Index)length - 1 - time : time;
    from = unit + (other - time) * (F::TIME_FIRST ? (Index)p.inner : (Index)1) * (Index)p.row;
    return true;
  }
};

// Trilu: the unit at the same place, on one side of a diagonal.
struct Triangle {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    const Index line = quotient(unit, p.column_divider), matrix = quotient(line, p.row_divider);
    const i64 column = (i64)(unit - line * (Index)p.columns), row = (i64)(line - matrix * (Index)p.rows), k = F::diagonal(p);
    from = unit;
    return F::UPPER ? column - row >= k : column - row <= k;
  }
};

// OneHot: off or on.
struct Hot {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    const Index line = quotient(unit, p.after_divider), before = quotient(line, p.depth_divider);
    const Index after = unit - line * (Index)p.after, position = line - before * (Index)p.depth;
    const double number = To<double>::from(p.indices[before * (Index)p.after + after]), wanted = number < 0 ? ceil(number) : floor(number);
    from = (wanted < 0 ? wanted + (double)p.depth : wanted) == (double)position ? 1 : 0;
    return true;
  }
};

// Pad: the modes are those of shared/movement/pads.h.
template <int MODE>
HEDDLE_INLINE i64 shown(i64 at, i64 extent) {
  if (at >= 0 && at < extent) return at;
  if (MODE == 0) return -1;
  if (MODE == 1) return at < 0 ? 0 : extent - 1;
  const i64 period = MODE == 3 ? extent : 2 * (extent - 1);
  if (period == 0) return 0;
  const i64 r = at % period < 0 ? at % period + period : at % period;
  return r < extent ? r : period - r;
}
struct Padded {
  template <class F, class P>
  HEDDLE_INLINE_MEMBER bool source(const P& p, typename F::Index unit, typename F::Index& from) {
    typedef typename F::Index Index;
    Index rest = quotient(unit, p.row_divider);
    from = unit - rest * (Index)p.row;
    bool inside = true;
    for (int d = F::RANK - 1; d >= 0; --d) {
      const Index whole = quotient(rest, p.dividers[d]);
      const i64 at = shown<F::MODE>((i64)(rest - whole * (Index)p.extents[d]) - p.before[d], p.inputs[d]);
      inside = inside && at >= 0;
      from += (Index)at * (Index)p.strides[d];
      rest = whole;
    }
    return inside;
  }
};

#endif

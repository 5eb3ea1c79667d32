// Moves elements as bits, in units of 1 to 16 bytes.
//
// F is generated (generate/move/): types Index and T (a unit), sizes as constants.
#ifndef HEDDLE_MOVE_CUH
#define HEDDLE_MOVE_CUH

struct alignas(16) Bits16 {
  u64 low, high;
};

// Divides positions. Below 2^31 this is a multiplication: a divider is the factor and, in its upper half, the shift (divider_of in
// generate/move/move_source.cc). Wider positions are divided by the divisor itself.
HEDDLE_INLINE u32 quotient(u32 n, i64 divider) { return (__umulhi(n, (u32)divider) + n) >> (u32)(divider >> 32); }
HEDDLE_INLINE u64 quotient(u64 n, i64 divider) { return n / (u64)divider; }

// Returns a unit that repeats the same value.
template <class T, class V>
HEDDLE_INLINE T repeated(V value) {
  u64 bits = (u64)value;
  for (int width = sizeof(V); width < 8; width *= 2) bits |= bits << (8 * width);
  if constexpr (sizeof(T) == 16)
    return {bits, bits};
  else
    return (T)bits;
}

// Returns the position in a box of p.extents that `rest` has in row-major order, as an offset between p.strides. Offsets may be negative on
// the way: they wrap.
template <int RANK, class Index, class P>
HEDDLE_INLINE Index offset_of(const P& p, Index rest) {
  Index offset = 0;
  for (int d = RANK - 1; d > 0; --d) {
    const Index whole = quotient(rest, p.dividers[d]);
    offset += (rest - whole * (Index)p.extents[d]) * (Index)p.strides[d];
    rest = whole;
  }
  return offset + rest * (Index)p.strides[0];
}

// Copies to a dense target, whose order is that of the box.
template <class F, class P>
HEDDLE_INLINE void copy_box(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index unit = (Index)blockIdx.x * blockDim.x + threadIdx.x; unit < count; unit += step)
    p.y[unit] = p.x[(Index)p.first + offset_of<F::RANK>(p, unit)];
}

// Copies between transposed layouts: neighbours in the source are `rows`, neighbours in the target `columns`. Squares of both go through
// shared memory, so that each side is accessed in whole lines.
template <class F, class P>
HEDDLE_INLINE void copy_tiles(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  constexpr int SIDE = F::SIDE, STEP = F::THREADS / SIDE;
  HEDDLE_SHARED(T, tile, SIDE * (SIDE + 1));
  const Index rows = (Index)p.rows, columns = (Index)p.columns;
  const int lane = threadIdx.x % SIDE, line = threadIdx.x / SIDE;
  for (Index block = blockIdx.x; block < (Index)p.tiles; block += gridDim.x) {
    const Index of_columns = quotient(block, p.column_divider), of_rows = quotient(of_columns, p.row_divider);
    const Index column = (block - of_columns * (Index)p.column_tiles) * SIDE, row = (of_columns - of_rows * (Index)p.row_tiles) * SIDE;
    Index from = (Index)p.first, to = 0, rest = of_rows;
    for (int d = F::RANK - 1; d >= 0; --d) {
      const Index whole = quotient(rest, p.dividers[d]), at = rest - whole * (Index)p.extents[d];
      from += at * (Index)p.strides[d];
      to += at * (Index)p.targets[d];
      rest = whole;
    }
    for (int i = line; i < SIDE; i += STEP)
      if (row + lane < rows && column + i < columns)
        tile[i * (SIDE + 1) + lane] = p.x[from + row + lane + (column + i) * (Index)p.column_stride];
    __syncthreads();
    for (int i = line; i < SIDE; i += STEP)
      if (column + lane < columns && row + i < rows)
        p.y[to + column + lane + (row + i) * (Index)p.row_stride] = tile[lane * (SIDE + 1) + i];
    __syncthreads();  // before other values are written into the tile
  }
}

// Copies parts of a whole, each of rows that lie p.whole_row apart in it. Blocks are numbered through all parts of the launch.
template <class F, class P>
HEDDLE_INLINE void copy_parts(const P& p) {
  typedef typename F::Index Index;
  constexpr int EACH = 4;
  for (Index block = blockIdx.x; block < (Index)p.blocks; block += gridDim.x) {
    int part = 0;
    for (int i = 1; i < F::PARTS; ++i) part = block >= (Index)p.block[i] ? i : part;
    const Index row_units = (Index)p.row[part], units = (Index)p.units[part];
    const Index first = (block - (Index)p.block[part]) * (blockDim.x * EACH) + threadIdx.x;
    for (int e = 0; e < EACH; ++e) {
      const Index unit = first + e * blockDim.x;
      if (unit >= units) break;
      const Index row = quotient(unit, p.divider[part]);
      F::copy(p, part, unit, (Index)p.offset[part] + row * (Index)p.whole_row + (unit - row * row_units));
    }
  }
}

// Does nothing if it is there already.
template <class Index, class P>
HEDDLE_INLINE void copy_bytes(const P& p) {
  if (p.y == p.x) return;
  const Index bytes = (Index)p.bytes, step = (Index)gridDim.x * blockDim.x, me = (Index)blockIdx.x * blockDim.x + threadIdx.x;
  for (Index i = me; i < bytes / 16; i += step) ((Bits16*)p.y)[i] = ((const Bits16*)p.x)[i];
  for (Index i = bytes / 16 * 16 + me; i < bytes; i += step) ((u8*)p.y)[i] = ((const u8*)p.x)[i];
}

#endif

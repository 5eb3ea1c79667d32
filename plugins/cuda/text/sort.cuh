// Finds the first elements of rows in an order, and their positions (TopK). An entry is a key, whose unsigned order is the elements' (or
// its reverse), and a position: no two are equal, so that any sort gives the same result. The elements of a row lie p.inner apart.
//
// F is generated (generate/select/topk_launches.cc): types Index and E, sizes and flags as constants, and
//   E entry(p, Index at, Index position)   void put(p, Index begin, Index to, E)
#ifndef HEDDLE_SORT_CUH
#define HEDDLE_SORT_CUH

// Keys order numbers ascending, with NaN after all others and zeros of either sign equal.
HEDDLE_INLINE u32 key_of(float x) {
  if (x != x) return 0xffffffffu;
  const u32 bits = bits_of(x == 0 ? 0.0f : x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
HEDDLE_INLINE u64 key_of(double x) {
  if (x != x) return ~0ull;
  const u64 bits = (u64)__double_as_longlong(x == 0 ? 0.0 : x);
  return (bits >> 63) != 0 ? ~bits : bits | 1ull << 63;
}
HEDDLE_INLINE u32 key_of(i32 x) { return (u32)x ^ 0x80000000u; }
HEDDLE_INLINE u64 key_of(i64 x) { return (u64)x ^ 1ull << 63; }
HEDDLE_INLINE u64 key_of(u64 x) { return x; }

// Entries of 32-bit keys and positions, and of 64-bit ones.
struct ShortEntry {
  u64 word;
};
struct LongEntry {
  u64 key, position;
};
HEDDLE_INLINE ShortEntry entry_of(u32 key, u64 position) { return {(u64)key << 32 | position}; }
HEDDLE_INLINE LongEntry entry_of(u64 key, u64 position) { return {key, position}; }
HEDDLE_INLINE u64 position_of(ShortEntry e) { return e.word & 0xffffffffull; }
HEDDLE_INLINE u64 position_of(LongEntry e) { return e.position; }
HEDDLE_INLINE bool is_before(ShortEntry a, ShortEntry b) { return a.word < b.word; }
HEDDLE_INLINE bool is_before(LongEntry a, LongEntry b) { return a.key != b.key ? a.key < b.key : a.position < b.position; }
// Sets an entry that sorts after all others.
HEDDLE_INLINE void clear(ShortEntry& e) { e.word = ~0ull; }
HEDDLE_INLINE void clear(LongEntry& e) { e.key = e.position = ~0ull; }

// Sorts each SEGMENT of ENTRIES in shared memory (bitonic); both are powers of two. All threads of a block must call it.
template <int THREADS, int ENTRIES, int SEGMENT, class E>
HEDDLE_INLINE void sort_shared(E* entries) {
  for (int size = 2; size <= SEGMENT; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int t = threadIdx.x; t < ENTRIES / 2; t += THREADS) {
        const int i = 2 * t - (t & (stride - 1)), j = i + stride;
        const bool ascending = (i % SEGMENT & size) == 0;
        const E a = entries[i], b = entries[j];
        if (is_before(b, a) == ascending) {
          entries[i] = b;
          entries[j] = a;
        }
      }
    }
  __syncthreads();
}

template <class Index, class P>
HEDDLE_INLINE Index row_begin(const P& p, Index row, i64 count) {
  const Index inner = (Index)p.inner;
  return row / inner * inner * (Index)count + row % inner;
}

// Sorts rows of at most SEGMENT elements, several of them in a block.
template <class F, class P>
HEDDLE_INLINE void sort_rows(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::E E;
  constexpr int ENTRIES = F::ENTRIES, SEGMENT = F::SEGMENT, THREADS = F::THREADS, together = ENTRIES / SEGMENT;
  HEDDLE_SHARED(E, entries, ENTRIES);
  const Index rows = (Index)p.rows, count = (Index)p.count, wanted = (Index)p.wanted, inner = (Index)p.inner;
  for (Index base = (Index)blockIdx.x * together; base < rows; base += (Index)gridDim.x * together) {
    for (int slot = threadIdx.x; slot < ENTRIES; slot += THREADS) {
      const Index row = base + slot / SEGMENT, i = slot % SEGMENT;
      E e;
      clear(e);
      if (row < rows && i < count) e = F::entry(p, row_begin(p, row, p.count) + i * inner, i);
      entries[slot] = e;
    }
    sort_shared<THREADS, ENTRIES, SEGMENT>(entries);
    for (int slot = threadIdx.x; slot < ENTRIES; slot += THREADS) {
      const Index row = base + slot / SEGMENT, i = slot % SEGMENT;
      if (row < rows && i < wanted) F::put(p, row_begin(p, row, p.count), row_begin(p, row, p.wanted) + i * inner, entries[slot]);
    }
    __syncthreads();  // before other values are written into the entries
  }
}

// Selects the first `wanted` (at most half of ENTRIES) of the elements of one part of a row. PARTS: they are written as entries; MERGE:
// they are read as entries.
template <class F, class P>
HEDDLE_INLINE void select_rows(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::E E;
  constexpr int HALF = F::ENTRIES / 2, THREADS = F::THREADS;
  HEDDLE_SHARED(E, entries, F::ENTRIES);
  HEDDLE_SHARED(i32, better, 1);
  const Index wanted = (Index)p.wanted, inner = (Index)p.inner, parts = F::PARTS ? (Index)p.parts : 1;
  const Index count = F::MERGE ? (Index)p.parts * wanted : (Index)p.count, part_size = F::PARTS ? (Index)p.part : count;
  for (Index unit = blockIdx.x; unit < (Index)p.rows * parts; unit += gridDim.x) {
    const Index row = unit / parts, first = unit % parts * part_size, begin = row_begin(p, row, p.count);
    const Index last = count - first < part_size ? count : first + part_size;
    for (int slot = threadIdx.x; slot < HALF; slot += THREADS) clear(entries[slot]);
    for (Index from = first; from < last; from += HALF) {
      __syncthreads();
      if (threadIdx.x == 0) *better = 0;
      __syncthreads();
      for (int slot = threadIdx.x; slot < HALF; slot += THREADS) {
        const Index i = from + slot;
        E e;
        clear(e);
        if constexpr (F::MERGE) {
          if (i < last) e = p.entries[row * count + i];
        } else {
          if (i < last) e = F::entry(p, begin + i * inner, i);
        }
        entries[HALF + slot] = e;
        if (is_before(e, entries[wanted - 1])) *better = 1;
      }
      __syncthreads();
      if (*better != 0) sort_shared<THREADS, F::ENTRIES, F::ENTRIES>(entries);
    }
    __syncthreads();
    for (Index slot = threadIdx.x; slot < wanted; slot += THREADS) {
      if constexpr (F::PARTS)
        p.entries[unit * wanted + slot] = entries[slot];
      else
        F::put(p, begin, row_begin(p, row, p.wanted) + slot * inner, entries[slot]);
    }
    __syncthreads();  // before other values are written into the entries
  }
}

// Kernels that sort whole rows: each block sorts ENTRIES, then neighbouring runs are merged, whose length doubles each time, and the first
// elements are written last. `stride` is the length of a row of entries, a multiple of ENTRIES.
template <class F, class P>
HEDDLE_INLINE void sort_blocks(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::E E;
  constexpr int ENTRIES = F::ENTRIES, THREADS = F::THREADS;
  HEDDLE_SHARED(E, entries, ENTRIES);
  const Index count = (Index)p.count, stride = (Index)p.stride, blocks = stride / ENTRIES;
  for (Index unit = blockIdx.x; unit < (Index)p.rows * blocks; unit += gridDim.x) {
    const Index row = unit / blocks, first = unit % blocks * ENTRIES, begin = row_begin(p, row, p.count);
    for (int slot = threadIdx.x; slot < ENTRIES; slot += THREADS) {
      E e;
      clear(e);
      if (first + slot < count) e = F::entry(p, begin + (first + slot) * (Index)p.inner, first + slot);
      entries[slot] = e;
    }
    sort_shared<THREADS, ENTRIES, ENTRIES>(entries);
    for (int slot = threadIdx.x; slot < ENTRIES; slot += THREADS) p.to[row * stride + first + slot] = entries[slot];
    __syncthreads();  // before other values are written into the entries
  }
}

// Moves an element of a run to its own place in it, plus the number of elements of the other run that come before it.
template <class F, class P>
HEDDLE_INLINE void merge_runs(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::E E;
  const Index stride = (Index)p.stride, run = (Index)p.run, all = (Index)p.rows * stride, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += step) {
    const Index row = at / stride * stride, i = at - row, mine = i / run, other = (mine ^ 1) * run;
    const Index length = other >= stride ? 0 : stride - other < run ? stride - other : run;
    const E e = p.from[at];
    const bool is_left = (mine & 1) == 0;
    Index low = 0, high = length;  // of equal ones those on the left come first
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      const E o = p.from[row + other + middle];
      const bool first = is_left ? is_before(o, e) : !is_before(e, o);
      low = first ? middle + 1 : low;
      high = first ? high : middle;
    }
    p.to[row + mine / 2 * 2 * run + (i - mine * run) + low] = e;
  }
}

template <class F, class P>
HEDDLE_INLINE void take_first(const P& p) {
  typedef typename F::Index Index;
  const Index wanted = (Index)p.wanted, all = (Index)p.rows * wanted, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += step) {
    const Index row = at / wanted, i = at % wanted;
    F::put(p, row_begin(p, row, p.count), row_begin(p, row, p.wanted) + i * (Index)p.inner, p.from[row * (Index)p.stride + i]);
  }
}

#endif

// The loops of MovedBlock. They are memory-bound: every line of the caches is read and written once where the order allows it.
#include "support/moved_block.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

using Bytes16 = VectorOf<uint64_t, 16>::type;
using Bytes = Vector<uint8_t>;
template <class W>
using Lane = typename VectorOf<W, 16>::type;
// An element anywhere in memory.
template <class W>
struct Unaligned {
  typedef W type __attribute__((aligned(1), may_alias));
};
template <class W>
using Element = typename Unaligned<W>::type;

template <class F>
void each_row(const MovedBlock& b, F&& f) {
  for (int64_t p = 0; p < b.plane.extent; ++p) {
    const char* source = b.source + p * b.plane.source;
    char* target = b.target + p * b.plane.target;
    for (int64_t r = 0; r < b.row.extent; ++r, source += b.row.source, target += b.row.target) f(source, target);
  }
}

// The first and the last bytes, which overlap: `bytes` is at most twice as wide as V, and no less.
template <class V>
void copy_ends(char* target, const char* source, int64_t bytes) {
  const V first = load<V>(source), last = load<V>(source + bytes - sizeof(V));
  store(target, first);
  store(target + bytes - sizeof(V), last);
}
// Cheaper than memcpy for the short rows of pictures.
void copy_bytes(char* target, const char* source, int64_t bytes) {
  if (bytes >= vector_bytes) {
    if (bytes > 1024) return static_cast<void>(__builtin_memcpy(target, source, static_cast<size_t>(bytes)));
    int64_t i = 0;
    for (; i + vector_bytes < bytes; i += vector_bytes) {
      store(target + i, load<Bytes>(source + i));
      asm("" : : : "memory");  // or the compiler makes a call of memmove of the loop
    }
    return store(target + bytes - vector_bytes, load<Bytes>(source + bytes - vector_bytes));
  }
  if (bytes >= vector_bytes / 2) return copy_ends<VectorOf<uint8_t, vector_bytes / 2>::type>(target, source, bytes);
  if (bytes >= 16) return copy_ends<VectorOf<uint8_t, 16>::type>(target, source, bytes);
  if (bytes >= 8) return copy_ends<uint64_t>(target, source, bytes);
  if (bytes >= 4) return copy_ends<uint32_t>(target, source, bytes);
  if (bytes >= 2) return copy_ends<uint16_t>(target, source, bytes);
  if (bytes == 1) *target = *source;
}

template <class W>
void copy(const MovedBlock& b) {
  const int64_t bytes = b.column.extent * static_cast<int64_t>(sizeof(W));
  each_row(b, [&](const char* source, char* target) { copy_bytes(target, source, bytes); });
}

// A vector of one element.
template <class W>
Bytes pattern_of(const char* value) {
  if constexpr (sizeof(W) == 16) {
    Bytes pattern;
    for (int i = 0; i < vector_bytes; i += 16) __builtin_memcpy(reinterpret_cast<char*>(&pattern) + i, value, 16);
    return pattern;
  } else {
    return cast_bits<Bytes>(splat<Vector<W>>(load<W>(value)));
  }
}
// Whole elements: at whatever element the pattern begins, it is the same.
void fill_bytes(char* target, Bytes pattern, int64_t bytes) {
  if (bytes >= vector_bytes) {
    for (int64_t i = 0; i + vector_bytes < bytes; i += vector_bytes) store(target + i, pattern);
    return store(target + bytes - vector_bytes, pattern);
  }
  alignas(vector_bytes) char copies[vector_bytes];
  store(copies, pattern);
  copy_bytes(target, copies, bytes);
}
template <class W>
void repeat(void* target, const void* value, int64_t count) {
  fill_bytes(static_cast<char*>(target), pattern_of<W>(static_cast<const char*>(value)), count * static_cast<int64_t>(sizeof(W)));
}

// The elements of the lower, or upper, halves of all 16-byte lanes of two vectors, in turns.
template <class W, int bytes, bool upper>
auto interleaved(typename VectorOf<W, bytes>::type a, typename VectorOf<W, bytes>::type b) {
  constexpr int lane = 16 / sizeof(W), count = bytes / sizeof(W);
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b,
                                   static_cast<int>(i / lane * lane + (upper ? lane / 2 : 0) + i % lane / 2 + (i % 2 ? count : 0))...);
  }
  (std::make_index_sequence<count>());
}

// Interleaving line i with line i + lines / 2 moves the first bit of an element's line to the end of its place's bits; after as many times
// as there are such bits, line and place have changed roles, in every lane of 16 bytes.
template <class W, int bytes, int lines>
[[gnu::always_inline]] inline void interleave_lines(typename VectorOf<W, bytes>::type* line, typename VectorOf<W, bytes>::type* next) {
#pragma GCC unroll 4
  for (int round = 1; round < lines; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < lines / 2; ++i) {
      next[2 * i] = interleaved<W, bytes, false>(line[i], line[i + lines / 2]);
      next[2 * i + 1] = interleaved<W, bytes, true>(line[i], line[i + lines / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < lines; ++i) line[i] = next[i];
  }
}

// Target rows of `n` elements one after the other, element c of row r from source[c][r].
template <class W, int n>
void interleave(const char* source, char* target, int64_t rows, int64_t source_column) {
  constexpr auto width = static_cast<int64_t>(sizeof(W)), lane = 16 / width;
  if constexpr (n != 3 && lane > 1) {
    const auto interleave_lane = [&](int64_t r) {
      Lane<W> line[n], next[n];
      for (int c = 0; c < n; ++c) line[c] = load<Lane<W>>(source + c * source_column + r * width);
      interleave_lines<W, 16, n>(line, next);
      for (int c = 0; c < n; ++c) store(target + r * n * width + c * 16, line[c]);
    };
    if (rows >= lane) {
      for (int64_t r = 0; r + lane < rows; r += lane) interleave_lane(r);
      return interleave_lane(rows - lane);
    }
  }
  const Element<W>* from[n];
  for (int c = 0; c < n; ++c) from[c] = reinterpret_cast<const Element<W>*>(source + c * source_column);
  Element<W>* __restrict__ to = reinterpret_cast<Element<W>*>(target);
  for (int64_t r = 0; r < rows; ++r)
    for (int c = 0; c < n; ++c) to[r * n + c] = from[c][r];
}

template <class W>
void fill(const MovedBlock& b) {
  constexpr auto width = static_cast<int64_t>(sizeof(W));
  const int64_t bytes = b.column.extent * width;
  const int64_t n = b.column.extent;
  if (b.row.source == width && b.row.target == bytes && n >= 2 && n <= 4) {
    const auto f = n == 2 ? interleave<W, 2> : n == 3 ? interleave<W, 3> : interleave<W, 4>;
    for (int64_t p = 0; p < b.plane.extent; ++p) {
      char* const target = b.target + p * b.plane.target;
      if (p == 0 || b.plane.source != 0)
        f(b.source + p * b.plane.source, target, b.row.extent, 0);
      else
        copy_bytes(target, b.target, b.row.extent * bytes);
    }
    return;
  }
  each_row(b, [&](const char* source, char* target) { fill_bytes(target, pattern_of<W>(source), bytes); });
}

// Every n-th of the elements at `from`, the first or the last of every n.
template <class W, int n, bool last>
Lane<W> picked_lane(const char* from) {
  constexpr int lane = 16 / sizeof(W);
  if constexpr (n == 1) {
    return load<Lane<W>>(from);
  } else {
    const Lane<W> a = picked_lane<W, n / 2, last>(from), b = picked_lane<W, n / 2, last>(from + n / 2 * 16);
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return __builtin_shufflevector(a, b, static_cast<int>(2 * i + last)...);
    }
    (std::make_index_sequence<lane>());
  }
}
template <class W, int n>
void pick(const char* source, char* target, int64_t columns) {
  constexpr auto width = static_cast<int64_t>(sizeof(W)), lane = 16 / width;
  if constexpr (n != 3 && lane > 1) {
    if (columns > lane) {
      int64_t c = 0;
      for (; c + lane < columns; c += lane) store(target + c * width, picked_lane<W, n, false>(source + c * n * width));
      c = columns - lane;  // nothing after the last element is read
      return store(target + c * width, picked_lane<W, n, true>(source + (c * n - n + 1) * width));
    }
  }
  const Element<W>* from = reinterpret_cast<const Element<W>*>(source);
  Element<W>* __restrict__ to = reinterpret_cast<Element<W>*>(target);
  for (int64_t c = 0; c < columns; ++c) to[c] = from[c * n];
}
template <class W>
void gather_row(const char* source, char* target, int64_t columns, int64_t stride) {
  constexpr auto width = static_cast<int64_t>(sizeof(W));
  if (stride == 2 * width) return pick<W, 2>(source, target, columns);
  if (stride == 3 * width) return pick<W, 3>(source, target, columns);
  if (stride == 4 * width) return pick<W, 4>(source, target, columns);
  for (int64_t c = 0; c < columns; ++c) store(target + c * width, load<W>(source + c * stride));
}
template <class W>
void gather(const MovedBlock& b) {
  each_row(b, [&](const char* source, char* target) { gather_row<W>(source, target, b.column.extent, b.column.source); });
}
template <class W>
void scatter(const MovedBlock& b) {
  each_row(b, [&](const char* source, char* target) {
    for (int64_t c = 0; c < b.column.extent; ++c) store(target + c * b.column.target, load<W>(source + c * b.column.source));
  });
}

// Takes as many source lines as 16 bytes have elements, `bytes` of each, to as many target rows as `bytes` has elements, 16 bytes of each.
template <class W, int bytes>
void transpose_lines(const char* source, char* target, int64_t source_column, int64_t target_row) {
  using V = typename VectorOf<W, bytes>::type;
  constexpr int lines = 16 / sizeof(W);
  V line[lines], next[lines];
  for (int i = 0; i < lines; ++i) line[i] = load<V>(source + i * source_column);
  interleave_lines<W, bytes, lines>(line, next);
#pragma GCC unroll 16
  for (int i = 0; i < lines; ++i) {
    Lane<uint8_t> parts[bytes / 16];
    __builtin_memcpy(parts, &line[i], bytes);
#pragma GCC unroll 4
    for (int k = 0; k < bytes / 16; ++k) store(target + (k * lines + i) * target_row, parts[k]);
  }
}

// Stripes of rows as high as a line of the caches, so that each line of the source is read once.
template <class W>
void transpose_plane(const char* source, char* target, int64_t rows, int64_t target_row, int64_t columns, int64_t source_column) {
  constexpr auto width = static_cast<int64_t>(sizeof(W));
  if (target_row == columns * width && columns == 2) return interleave<W, 2>(source, target, rows, source_column);
  if (target_row == columns * width && columns == 3) return interleave<W, 3>(source, target, rows, source_column);
  if (target_row == columns * width && columns == 4) return interleave<W, 4>(source, target, rows, source_column);
  int64_t r = 0;
  if constexpr (width < 16) {
    constexpr int64_t lines = 16 / width, stripe = 64 / width;
    const int64_t whole = columns / lines * lines;
    const auto stripes = [&]<int bytes>(int64_t height) {
      for (; r + height <= rows; r += height) {
        for (int64_t c = 0; c < whole; c += lines)
          for (int64_t k = 0; k < height; k += bytes / width)
            transpose_lines<W, bytes>(source + (r + k) * width + c * source_column, target + (r + k) * target_row + c * width,
                                      source_column, target_row);
        for (int64_t c = whole; c < columns; ++c)
          for (int64_t k = r; k < r + height; ++k)
            store(target + k * target_row + c * width, load<W>(source + k * width + c * source_column));
      }
    };
    stripes.template operator()<vector_bytes>(stripe);
    stripes.template operator()<16>(lines);
  }
  for (; r < rows; ++r) gather_row<W>(source + r * width, target + r * target_row, columns, source_column);
}
template <class W>
void transpose(const MovedBlock& b) {
  for (int64_t p = 0; p < b.plane.extent; ++p)
    transpose_plane<W>(b.source + p * b.plane.source, b.target + p * b.plane.target, b.row.extent, b.row.target, b.column.extent,
                       b.column.source);
}

}  // namespace

constinit const MoveTable moves = {
    {copy<uint8_t>, copy<uint16_t>, copy<uint32_t>, copy<uint64_t>, copy<Bytes16>},
    {fill<uint8_t>, fill<uint16_t>, fill<uint32_t>, fill<uint64_t>, fill<Bytes16>},
    {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>, transpose<Bytes16>},
    {gather<uint8_t>, gather<uint16_t>, gather<uint32_t>, gather<uint64_t>, gather<Bytes16>},
    {scatter<uint8_t>, scatter<uint16_t>, scatter<uint32_t>, scatter<uint64_t>, scatter<Bytes16>},
    {repeat<uint8_t>, repeat<uint16_t>, repeat<uint32_t>, repeat<uint64_t>, repeat<Bytes16>},
};

}  // namespace heddle::cpu::HEDDLE_ISA

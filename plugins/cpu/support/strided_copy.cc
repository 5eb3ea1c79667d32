// The loops of StridedCopy. They are memory-bound: it is important that the inner loop runs along contiguous bytes on both sides, or in
// square blocks when the contiguous dimensions of source and target differ.
#include "support/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "shared/dtype_dispatch.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int64_t unit_bytes = 32 * 1024;

template <class W>
W load(const char* from) {
  W value;
  std::memcpy(&value, from, sizeof(W));
  return value;
}
template <class W>
void store(char* to, W value) {
  std::memcpy(to, &value, sizeof(W));
}

template <class W>
void copy_elements(const char* source, char* target, int64_t rows, int64_t source_row, int64_t target_row, int64_t columns,
                   int64_t source_column, int64_t target_column) {
  for (int64_t r = 0; r < rows; ++r, source += source_row, target += target_row)
    for (int64_t c = 0; c < columns; ++c) store(target + c * target_column, load<W>(source + c * source_column));
}

template <class W>
void fill_rows(const char* source, char* target, int64_t rows, int64_t source_row, int64_t target_row, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, source += source_row, target += target_row) {
    const W value = load<W>(source);
    for (int64_t c = 0; c < columns; ++c) store(target + c * static_cast<int64_t>(sizeof(W)), value);
  }
}

// A square of the source, rows contiguous in the source, columns in the target.
template <class W, int N>
void transpose_square(const char* source, char* target, int64_t source_column, int64_t target_row) {
  W block[N][N];
  for (int c = 0; c < N; ++c) std::memcpy(block[c], source + c * source_column, N * sizeof(W));
  for (int r = 0; r < N; ++r) {
    W line[N];
    for (int c = 0; c < N; ++c) line[c] = block[c][r];
    std::memcpy(target + r * target_row, line, N * sizeof(W));
  }
}

#if defined(__GNUC__)
using Float4 = float __attribute__((vector_size(16)));
// Four registers, eight shuffles: 4 x 4 elements of four bytes.
template <>
void transpose_square<uint32_t, 4>(const char* source, char* target, int64_t source_column, int64_t target_row) {
  const Float4 a = load<Float4>(source), b = load<Float4>(source + source_column), c = load<Float4>(source + 2 * source_column),
               d = load<Float4>(source + 3 * source_column);
  const Float4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Float4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(target, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store(target + target_row, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store(target + 2 * target_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store(target + 3 * target_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}
// Target rows of three elements, one after the other: the channels of a picture.
void interleave_three(const char* source, char* target, int64_t rows, int64_t source_column) {
  constexpr int64_t width = sizeof(float);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, source += 4 * width, target += 12 * width) {
    const Float4 a = load<Float4>(source), b = load<Float4>(source + source_column), c = load<Float4>(source + 2 * source_column);
    const Float4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    store(target, __builtin_shufflevector(ab_low, __builtin_shufflevector(c, a, 0, 5, 0, 5), 0, 1, 4, 5));
    store(target + 4 * width, __builtin_shufflevector(__builtin_shufflevector(b, c, 1, 5, 1, 5), ab_high, 0, 1, 4, 5));
    store(target + 8 * width,
          __builtin_shufflevector(__builtin_shufflevector(c, a, 2, 7, 2, 7), __builtin_shufflevector(b, c, 3, 7, 3, 7), 0, 1, 4, 5));
  }
  copy_elements<uint32_t>(source, target, rows - r, width, 3 * width, 3, source_column, width);
}
using Short8 = uint16_t __attribute__((vector_size(16)));
// Eight registers, 24 shuffles: 8 x 8 elements of two bytes. Interleaving line i with line i + 4 moves the first bit of an element's line
// to the end of its place's bits; after three times, line and place have changed roles.
template <>
void transpose_square<uint16_t, 8>(const char* source, char* target, int64_t source_column, int64_t target_row) {
  Short8 lines[8], next[8];
  for (int i = 0; i < 8; ++i) lines[i] = load<Short8>(source + i * source_column);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(lines[i], lines[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(lines[i], lines[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::copy_n(next, 8, lines);
  }
  for (int i = 0; i < 8; ++i) store(target + i * target_row, lines[i]);
}
#endif

// Copies target rows of contiguous columns; in the source the rows are contiguous.
template <class W>
void transpose_block(const char* source, char* target, int64_t rows, int64_t target_row, int64_t columns, int64_t source_column) {
  constexpr int side = sizeof(W) <= 2 ? 8 : 4;
  constexpr auto width = static_cast<int64_t>(sizeof(W));
#if defined(__GNUC__)
  if (std::is_same_v<W, uint32_t> && columns == 3 && target_row == 3 * width) return interleave_three(source, target, rows, source_column);
#endif
  int64_t r = 0;
  for (; r + side <= rows; r += side) {
    int64_t c = 0;
    for (; c + side <= columns; c += side)
      transpose_square<W, side>(source + r * width + c * source_column, target + r * target_row + c * width, source_column, target_row);
    copy_elements<W>(source + r * width + c * source_column, target + r * target_row + c * width, side, width, target_row, columns - c,
                     source_column, width);
  }
  copy_elements<W>(source + r * width, target + r * target_row, rows - r, width, target_row, columns, source_column, width);
}

// A value moved without regard to its meaning.
struct Bytes16 {
  uint64_t low, high;
};
template <class F>
void with_wide(int64_t width, F&& f) {
  if (width == 16)
    f(Tag<Bytes16>());
  else
    with_width(static_cast<size_t>(width), f);
}

}  // namespace

void StridedCopy::finish() {
  units_ = 0;
  if (box_.is_empty()) return;
  box_.merge();
  widen();
  pick_inner();
  divide();
}

// A short contiguous last dimension is one wider element.
void StridedCopy::widen() {
  if (box_.rank < 2) return;
  const Dimension last = box_.dims[box_.rank - 1];
  const int64_t bytes = last.extent * box_.width;
  if (last.source != box_.width || last.target != box_.width || (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)) return;
  box_.width = bytes;
  --box_.rank;
}

void StridedCopy::pick_inner() {
  Dimension& last = box_.dims[box_.rank - 1];
  if (last.target == box_.width && last.source == box_.width) {
    inner_ = Inner::rows;
  } else if (last.target == box_.width && last.source == 0) {
    inner_ = Inner::fill;
  } else {
    inner_ = Inner::elements;
    for (int i = 0; i + 1 < box_.rank; ++i) {
      if (last.target != box_.width || box_.dims[i].source != box_.width || last.extent < 2) continue;
      std::rotate(box_.dims + i, box_.dims + i + 1, box_.dims + box_.rank - 1);  // goes next to the last
      inner_ = Inner::transpose;
      break;
    }
  }
  if (box_.rank == 1) {
    box_.dims[1] = box_.dims[0];
    box_.dims[0] = {1, 0, 0};
    box_.rank = 2;
  }
}

void StridedCopy::divide() {
  const int64_t rows = box_.dims[box_.rank - 2].extent, columns = box_.dims[box_.rank - 1].extent;
  const int64_t wanted = std::max<int64_t>(1, unit_bytes / box_.width);
  column_block_ = std::min(columns, inner_ == Inner::transpose ? std::min<int64_t>(wanted, 128) : wanted);
  row_block_ = std::clamp<int64_t>(wanted / column_block_, 1, rows);
  if (inner_ == Inner::transpose) row_block_ = std::min<int64_t>(rows, std::max<int64_t>(row_block_ / 4 * 4, 4));
  units_ = ((rows + row_block_ - 1) / row_block_) * ((columns + column_block_ - 1) / column_block_);
  for (int i = 0; i + 2 < box_.rank; ++i) units_ *= box_.dims[i].extent;
}

void StridedCopy::copy_block(const char* source, char* target, int64_t rows, int64_t columns) const {
  const Dimension& row = box_.dims[box_.rank - 2];
  const Dimension& column = box_.dims[box_.rank - 1];
  switch (inner_) {
    case Inner::rows:
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(target + r * row.target, source + r * row.source, static_cast<size_t>(columns * box_.width));
      return;
    case Inner::fill:
      return with_wide(box_.width,
                       [&](auto tag) { fill_rows<typename decltype(tag)::type>(source, target, rows, row.source, row.target, columns); });
    case Inner::transpose:
      return with_wide(box_.width, [&](auto tag) {
        transpose_block<typename decltype(tag)::type>(source, target, rows, row.target, columns, column.source);
      });
    case Inner::elements:
      return with_wide(box_.width, [&](auto tag) {
        copy_elements<typename decltype(tag)::type>(source, target, rows, row.source, row.target, columns, column.source, column.target);
      });
  }
}

void StridedCopy::run(const void* source_data, void* target_data, int64_t first, int64_t last) const {
  if (first >= last) return;
  const auto* source = static_cast<const char*>(source_data) + box_.source_first;
  auto* target = static_cast<char*>(target_data) + box_.target_first;
  const Dimension& row = box_.dims[box_.rank - 2];
  const Dimension& column = box_.dims[box_.rank - 1];
  const int64_t row_blocks = (row.extent + row_block_ - 1) / row_block_;
  const int64_t column_blocks = (column.extent + column_block_ - 1) / column_block_;
  // The position of `first`, then an odometer: column blocks turn fastest, then row blocks, then the outer dimensions from the inside.
  int64_t column_index = first % column_blocks, row_index = first / column_blocks % row_blocks;
  int64_t rest = first / column_blocks / row_blocks;
  int64_t outer[operators::Box::capacity];
  for (int i = box_.rank - 3; i >= 0; --i) {
    outer[i] = rest % box_.dims[i].extent;
    rest /= box_.dims[i].extent;
    source += outer[i] * box_.dims[i].source;
    target += outer[i] * box_.dims[i].target;
  }
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t r = row_index * row_block_, c = column_index * column_block_;
    copy_block(source + r * row.source + c * column.source, target + r * row.target + c * column.target,
               std::min(row_block_, row.extent - r), std::min(column_block_, column.extent - c));
    if (++column_index < column_blocks) continue;
    column_index = 0;
    if (++row_index < row_blocks) continue;
    row_index = 0;
    for (int i = box_.rank - 3; i >= 0; --i) {
      source += box_.dims[i].source;
      target += box_.dims[i].target;
      if (++outer[i] < box_.dims[i].extent) break;
      source -= box_.dims[i].extent * box_.dims[i].source;
      target -= box_.dims[i].extent * box_.dims[i].target;
      outer[i] = 0;
    }
  }
}

}  // namespace heddle::cpu

#include "net/layout_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

// Calls move(at, i) for each element: element i of the row-major tensor is element `at` of the other.
template <class Move>
void for_each_pair(const Shape& shape, const heddle_layout& layout, const Move& move) {
  const int rank = shape.rank();
  int64_t strides[HEDDLE_MAX_RANK], index[HEDDLE_MAX_RANK] = {}, stride = 1;
  for (int i = rank; i-- > 0;) {
    const int dimension = layout.rank == 0 ? i : layout.order[i];
    strides[dimension] = stride;
    stride *= shape[dimension];
  }
  const int64_t count = shape.element_count();
  for (int64_t i = 0, at = 0; i < count; ++i) {
    move(at, i);
    for (int d = rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

bool is_order(const heddle_layout& layout, int rank) {
  if (layout.block_count != 0 || layout.opaque_owner != 0) return false;
  if (layout.rank == 0) return true;
  if (layout.rank != rank) return false;
  std::vector<uint8_t> sorted(layout.order, layout.order + rank);
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < rank; ++i)
    if (sorted[static_cast<size_t>(i)] != i) return false;
  return true;
}

std::vector<std::byte> in_order(const TensorView& row_major, const heddle_layout& layout) {
  std::vector<std::byte> bytes(static_cast<size_t>(row_major.byte_size()));
  const auto* from = static_cast<const std::byte*>(row_major.data);
  const int64_t width = byte_width(row_major.dtype);
  for_each_pair(row_major.shape, layout, [&](int64_t at, int64_t i) {
    std::memcpy(&bytes[static_cast<size_t>(at * width)], from + i * width, static_cast<size_t>(width));
  });
  return bytes;
}

std::vector<std::byte> row_major(const TensorView& ordered, const heddle_layout& layout) {
  std::vector<std::byte> bytes(static_cast<size_t>(ordered.byte_size()));
  const auto* from = static_cast<const std::byte*>(ordered.data);
  const int64_t width = byte_width(ordered.dtype);
  for_each_pair(ordered.shape, layout, [&](int64_t at, int64_t i) {
    std::memcpy(&bytes[static_cast<size_t>(i * width)], from + at * width, static_cast<size_t>(width));
  });
  return bytes;
}

std::string layout_text(const heddle_layout& layout) {
  if (layout.rank == 0) return "row-major";
  bool last = layout.rank >= 3 && layout.order[0] == 0 && layout.order[layout.rank - 1] == 1;
  for (int i = 1; last && i + 1 < layout.rank; ++i) last = layout.order[i] == i + 1;
  if (last) return "channels-last";
  return fmt::format("({})", fmt::join(layout.order, layout.order + layout.rank, " "));
}

}  // namespace heddle

// Tensors in another order of their dimensions than row-major. Shapes stay the logical ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "heddle/abi.h"
#include "heddle/tensor.h"

namespace heddle {

// A layout for which is_order() is true, in the room that it needs: plans hold many.
struct DimensionOrder {
  uint8_t rank = 0;  // 0: row-major; else of `order`
  uint8_t flags = 0;
  std::array<uint8_t, HEDDLE_MAX_RANK> order = {};
  DimensionOrder() = default;
  DimensionOrder(const heddle_layout& layout)
      : rank(layout.rank), flags(layout.flags), order(std::to_array(layout.order)) {}  // NOLINT: implicit
  operator heddle_layout() const {                                                     // NOLINT: implicit on purpose
    heddle_layout layout = {};
    layout.rank = rank;
    layout.flags = flags;
    std::copy(order.begin(), order.end(), layout.order);
    return layout;
  }
  friend bool operator==(const DimensionOrder&, const DimensionOrder&) = default;
};

// Whether the layout is an order of all the dimensions, or row-major; not blocks, nor a layout that only its owner can read.
bool is_order(const heddle_layout& layout, int rank);

// Reorders the elements of a row-major tensor into `layout`, for which is_order() must be true.
std::vector<std::byte> in_order(const TensorView& row_major, const heddle_layout& layout);
// Reorders them back to row-major.
std::vector<std::byte> row_major(const TensorView& ordered, const heddle_layout& layout);

// "row-major", "channels-last" or the order, e.g. "(0 2 1)".
std::string layout_text(const heddle_layout& layout);

}  // namespace heddle

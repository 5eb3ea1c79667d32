// A Resize, resolved from attributes and operands: the extents and scales of all axes. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/image/resize_axis.h"

namespace heddle::operators {

// The attributes of a node.
struct ResizeNode {
  ResizeOptions options;
  enum class Policy : uint8_t { stretch, not_larger, not_smaller } policy = Policy::stretch;
  std::vector<int64_t> axes;  // empty: all
};
Status parse_resize(const Attributes& attributes, ResizeNode* node);

// The operands whose content is readable; null: absent.
struct ResizeOperands {
  const heddle_tensor *roi = nullptr, *scales = nullptr, *sizes = nullptr;
};
ResizeOperands resize_operands(const heddle_tensor* const* inputs, uint32_t count);

// Extents and scales of every axis of an input of `dims`; untouched axes keep scale 1.
Status resolve_axes(const ResizeNode& node, Dims dims, const ResizeOperands& operands, ResizeAxis* axes);

// Weights of all axes together, for any operands that lead to this output.
int64_t table_entries(const ResizeNode& node, Dims input, Dims output);

}  // namespace heddle::operators

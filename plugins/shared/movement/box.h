// A box of elements between two sets of strides: the plan of operators that only move elements, for kernels of any device. Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

// A plain value without heap memory: kernels make boxes while they run.
struct Box {
  static constexpr int capacity = 20;  // dimensions before merging
  struct Dimension {
    int64_t extent, source, target;  // strides in bytes
  };
  Dimension dims[capacity] = {};
  int rank = 0;
  int64_t width = 1;                           // bytes of an element
  int64_t source_first = 0, target_first = 0;  // bytes before the first one

  explicit Box(int64_t element_bytes = 1) : width(element_bytes) {}
  // Adds a dimension, in any order: `extent` steps of so many bytes in the source (negative ones and 0, repetition, allowed) and in the
  // target (there more than 0).
  void add(int64_t extent, int64_t source_stride, int64_t target_stride) { dims[rank++] = {extent, source_stride, target_stride}; }
  bool is_empty() const;
  // Sorts dimensions in the order of the target, outermost first, and merges neighbours wherever both sides allow it; at least one
  // dimension remains. The box must not be empty.
  void merge();
};

}  // namespace heddle::operators

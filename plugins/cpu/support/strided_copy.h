// StridedCopy: moves the elements of an n-dimensional box from one set of strides to another. Transpose, Slice, Concat, Split, Expand,
// Tile, DepthToSpace and others are this copy with different strides.
//
// A plain value without heap memory: plan it in prepare, or in run when the strides are only known there. Read-only while copying, so
// several threads may copy disjoint ranges of units. Strides are in bytes, negative ones and source strides of 0 (repetition) allowed.
#pragma once

#include <cstdint>

#include "shared/movement/box.h"
#include "support/moved_block.h"

namespace heddle::cpu {

class StridedCopy {
 public:
  explicit StridedCopy(int64_t element_bytes = 1) : box_(element_bytes) {}
  // Makes a copy that needs no finish().
  explicit StridedCopy(const operators::Box& box) : box_(box) { finish(); }
  // Adds a dimension, in any order: `extent` steps of so many bytes in the source and in the target (there more than 0).
  void add(int64_t extent, int64_t source_stride, int64_t target_stride) { box_.add(extent, source_stride, target_stride); }
  // Sorts and merges dimensions, picks the inner loop and divides the work; call once after the last add.
  void finish();
  // The number of units of work, about 32 KiB each; 0 when a dimension is empty.
  int64_t units() const { return units_; }
  // Copies units [first, last). Source and target must not overlap.
  void run(const void* source, void* target, int64_t first, int64_t last) const;

 private:
  using Dimension = operators::Box::Dimension;
  static constexpr int block_rank = 3;
  void widen();
  bool pick_loop();
  void divide(bool transposes);
  int64_t step(int dimension) const { return dimension < box_.rank - block_rank ? 1 : steps_[dimension - (box_.rank - block_rank)]; }
  int64_t count(int dimension) const;

  operators::Box box_;
  MoveFunction move_ = nullptr;
  int64_t steps_[block_rank] = {1, 1, 1};  // of a unit in the last three dimensions
  int64_t units_ = 0;
};

}  // namespace heddle::cpu

// The oneDNN primitive of one shape of matrix-product tiles.
#pragma once

#include "matmul/matmul_tiles.h"
#include "onednn/onednn_guard.h"

namespace heddle::cpu {

class MatMulPrimitive {
 public:
  // Images of one call (more than 1 only when they are evenly spaced), rows and columns of each.
  struct Extents {
    int64_t images = 1, rows = 0, columns = 0;
    bool operator==(const Extents&) const = default;
  };
  // Pointers at the first element of the tile; `operands` by epilogue op, SAME_SHAPE ones at the tile's first element, others whole.
  struct Buffers {
    const float* a;
    const void* b;  // packed, or the net's own
    const float* bias;
    const float* const* operands;
    float* y;
    int64_t first_row, first_column;
    void* scratch;
  };

  explicit MatMulPrimitive(const Extents& extents) : extents_(extents) {}
  // [compile, SerialSection] Finds the primitive for the first `limit` epilogue ops, or for as many of them as have a fast implementation.
  // `packs_b`: oneDNN chooses the layout of b.
  Status choose(const MatMulProblem& problem, bool packs_b, bool has_bias, const onednn::Epilogue& epilogue, size_t first_epilogue_op,
                size_t limit);
  Status create(uint32_t threads);
  // [run] `epilogue_ops`: receives how many the tile has applied.
  Status run(const Buffers& buffers, size_t* epilogue_ops) const;

  const Extents& extents() const { return extents_; }
  const onednn::PrimitiveDesc& desc() const { return desc_; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // Epilogue ops that the primitive applies where it meets no NaN.
  size_t epilogue_ops() const { return fused_.count; }

 private:
  Status describe(const MatMulProblem& problem, bool packs_b);
  // Chooses the same primitive for when a NaN is met; *same is false when oneDNN would compute that one in another way.
  Status choose_nan_safe(const onednn::Epilogue& epilogue, size_t first_epilogue_op, bool* same);

  Extents extents_;
  bool has_bias_ = false;
  onednn::MemoryDesc a_, b_, y_, per_column_, per_row_, scalar_;
  onednn::PrimitiveDesc desc_, nan_safe_;
  onednn::FusedEpilogue fused_;
  uint64_t scratch_bytes_ = 0;
  std::vector<int32_t> operand_kinds_;  // the kinds of the operands of fused_.epilogue_op_indices
  onednn::GuardedCall call_;
};

}  // namespace heddle::cpu

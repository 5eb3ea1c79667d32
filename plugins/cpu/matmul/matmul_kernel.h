// The kernel of MatMul and Gemm of f32, f16 and bf16: oneDNN matrix products in tiles, fused operators, prepacked constants, and copies of
// operands whose layout oneDNN is slow at.
//
// The 16-bit types are computed in f32 on converted tiles, and rounded once (matmul_float_tiles.h).
//
// Products of a few thousand operations are plain loops: oneDNN's call and its allocations would cost more than they do.
#pragma once

#include <memory>

#include "matmul/matmul_float_tiles.h"
#include "matmul/matmul_onednn.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/strided_copy.h"

namespace heddle::cpu {

class MatMulDriver {
 public:
  static constexpr size_t max_epilogue_ops = 12;

  // [compile] Call it first.
  void create(const CreateContext& context) { threads_ = context.max_threads(); }
  // [compile] `epilogue`: all epilogue ops in order, the operator's own first; operands are node inputs. Call again when shapes changed.
  Status prepare(PrepareContext& context, MatMulProblem problem, onednn::Epilogue epilogue);
  // [run]
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 private:
  struct PlacedTile {
    MatMulTile tile;
    size_t primitive = 0;
    const void* packed = nullptr;  // this tile's part of constant b, owned by the host; null: the net's own b
  };

  // `mixed`: primitives of several implementations are accepted too.
  Status build(PrepareContext& context, const std::vector<MatMulTile>& tiles, bool mixed);
  Status choose_primitives();
  Status pack(PrepareContext& context, PlacedTile* placed) const;
  Status run_images(const RunContext& context, const PlacedTile& placed, int64_t image, char* scratch) const;
  // The places of one call's operands, output and epilogue ops' operands.
  struct Place;
  Place find(const RunContext& context, const PlacedTile& placed, int64_t image) const;
  // The same, for f32 forms in scratch.
  Place load(const RunContext& context, const PlacedTile& placed, int64_t image, char* scratch) const;
  MatMulPrimitive::Extents extents_of(const PlacedTile& placed) const;
  int64_t first_of_y(const MatMulTile& tile, int64_t image) const;
  // `done`: receives how many epilogue ops the product has applied.
  Status sum(const RunContext& context, const PlacedTile& placed, int64_t image, const Place& place, char* scratch, size_t* done) const;
  Status run_plain(const RunContext& context, const MatMulTile& tile, const Place& place) const;
  template <class T>
  Status run_in_double(const RunContext& context, const MatMulTile& tile, int64_t image, const Place& place) const;
  Status run_rows(const RunContext& context, int64_t begin, int64_t end, char* scratch) const;
  void choose_copies();
  // The problem with the strides of the net's operands, or of their f32 forms.
  MatMulProblem problem_before_copies(const MatMulPrimitive::Extents& tile) const;
  // The problem with the strides of the data that oneDNN reads.
  MatMulProblem problem_of(const MatMulPrimitive::Extents& tile) const;
  bool packs_b() const { return constant_b_ && problem_.batch.empty(); }
  bool mixes_implementations() const;

  uint32_t threads_ = 1;
  MatMulProblem problem_;
  onednn::Epilogue epilogue_;
  bool constant_b_ = false;
  const float* b_content_ = nullptr;  // valid in prepare only
  bool plain_ = false;                // loops instead of oneDNN, in one tile
  bool by_rows_ = false;              // loops, in tiles of rows: problems not given to oneDNN
  bool in_double_ = false;            // loops whose sums are doubles
  Tiling row_tiling_;
  int32_t bias_input_ = -1;       // of the first epilogue op, when it is the primitives' bias
  size_t first_epilogue_op_ = 0;  // 1 if the first is the bias, else 0
  std::vector<std::unique_ptr<MatMulPrimitive>> primitives_;
  std::vector<PlacedTile> tiles_;
  uint64_t epilogue_op_offset_ = 0;  // in the thread's scratch, after that of the primitives
  // Copies of an operand's rows side by side in scratch, by primitive; empty: the operand is read in place.
  struct TileCopies {
    std::vector<StridedCopy> copies;
    uint64_t at = 0, bytes = 0;  // in scratch
    void add(const MatrixStrides& from, int64_t rows, int64_t columns);
    const float* run(size_t primitive, const float* from, char* scratch) const;
  };
  TileCopies a_copies_, b_copies_;
  heddle_dtype dtype_ = HEDDLE_F32;
  MatMulFloatTiles float_tiles_;  // used where dtype_ is of 16 bits
};

}  // namespace heddle::cpu

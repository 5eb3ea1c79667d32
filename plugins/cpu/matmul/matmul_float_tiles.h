// The f32 forms of the data that a tile of a 16-bit product reads and writes (support/float_tiles.h): their places in scratch and their
// layout.
//
// An operand keeps the orientation that it has in the net, so that its rows (or columns) are converted as they lie.
#pragma once

#include "matmul/matmul_onednn.h"
#include "onednn/onednn_epilogue.h"
#include "support/float_tiles.h"

namespace heddle::cpu {

class MatMulFloatTiles {
 public:
  // [compile] Starts the layout. Then call add() for the tiles, then place().
  void begin(heddle_dtype dtype, const MatMulProblem& problem, const onednn::Epilogue& epilogue);
  // `operands`: the tile reads f32 forms of a and b; `packed_b`: of a alone.
  void add(const MatMulPrimitive::Extents& tile, bool operands, bool packed_b);
  // Returns the end of the scratch that begins at `at`.
  uint64_t place(uint64_t at);
  bool is_used() const { return in_float_tiles(dtype_); }

  // The strides of an f32 form of so many rows and columns.
  static MatrixSteps dense_steps(const MatrixSteps& from, int64_t rows, int64_t columns);
  // [compile] The problem whose operands are the f32 forms.
  static MatMulProblem laid_out(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile);

  // [run] `first`: the tile's first element in the tensor.
  const float* load_a(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile, const void* a, int64_t first,
                      char* scratch) const;
  const float* load_b(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile, const void* b, int64_t first,
                      char* scratch) const;
  float* y(char* scratch) const { return reinterpret_cast<float*>(scratch + y_at_); }
  void store_y(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile, void* y, int64_t first, char* scratch) const;
  // Converts the tile's part of an epilogue op's operand. `y_first`: the tile's first element in the output.
  const float* load_operand(const onednn::Epilogue& epilogue, size_t epilogue_op, const MatMulTile& tile, const void* operand,
                            int64_t y_first, int64_t y_row, char* scratch) const;

 private:
  heddle_dtype dtype_ = HEDDLE_F32;
  int64_t depth_ = 0;
  uint64_t a_bytes_ = 0, b_bytes_ = 0, y_bytes_ = 0, a_at_ = 0, b_at_ = 0, y_at_ = 0;
  std::vector<uint64_t> operand_bytes_, operand_at_;  // by epilogue op
  std::vector<int32_t> operand_kinds_;
};

}  // namespace heddle::cpu

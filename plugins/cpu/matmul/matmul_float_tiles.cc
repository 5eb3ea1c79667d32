// Tiles of 16-bit products in f32. See matmul_float_tiles.h.
#include "matmul/matmul_float_tiles.h"

#include <algorithm>

namespace heddle::cpu {
namespace {

constexpr uint64_t tile_alignment = 64;

uint64_t bytes_of_floats(int64_t count) {
  return (static_cast<uint64_t>(count) * sizeof(float) + tile_alignment - 1) / tile_alignment * tile_alignment;
}

// The number of images that a tile copies: one if all share one operand, 0 apart.
int64_t images_of(const MatrixStrides& strides, int64_t images) {
  return images > 1 && strides.batch[0] == 0 ? 1 : images;
}

MatrixStrides dense_form(const MatrixStrides& from, int64_t images, int64_t rows, int64_t columns) {
  MatrixStrides dense = from;
  static_cast<MatrixSteps&>(dense) = MatMulFloatTiles::dense_steps(from, rows, columns);
  if (images > 1 && from.batch[0] != 0) dense.batch[0] = rows * columns;
  return dense;
}

// Converts images, then rows, or columns where these are contiguous.
void load_images(heddle_dtype dtype, const void* data, int64_t first, const MatrixStrides& from, int64_t images, int64_t rows,
                 int64_t columns, float* dense) {
  const int64_t count = images_of(from, images);
  for (int64_t image = 0; image < count; ++image) {
    const int64_t at = first + (image > 0 ? image * from.batch[0] : 0);
    const RowsOfTensor lines =
        from.is_transposed() ? RowsOfTensor{at, columns, rows, from.column} : RowsOfTensor{at, rows, columns, from.row};
    load_floats(dtype, data, lines, dense + image * rows * columns);
  }
}

}  // namespace

void MatMulFloatTiles::begin(heddle_dtype dtype, const MatMulProblem& problem, const onednn::Epilogue& epilogue) {
  *this = {};
  dtype_ = dtype;
  depth_ = problem.depth;
  for (const onednn::EpilogueOp& epilogue_op : epilogue)
    operand_kinds_.push_back(epilogue_op.operand_input < 0 ? HEDDLE_OPERAND_NONE : epilogue_op.operand_kind);
  operand_bytes_.resize(epilogue.size());
  operand_at_.resize(epilogue.size());
}

void MatMulFloatTiles::add(const MatMulPrimitive::Extents& tile, bool operands, bool packed_b) {
  if (!is_used()) return;
  if (operands) a_bytes_ = std::max(a_bytes_, bytes_of_floats(tile.images * tile.rows * depth_));
  if (operands && !packed_b) b_bytes_ = std::max(b_bytes_, bytes_of_floats(tile.images * depth_ * tile.columns));
  y_bytes_ = std::max(y_bytes_, bytes_of_floats(tile.images * tile.rows * tile.columns));
  for (size_t i = 0; i < operand_kinds_.size(); ++i) {
    if (operand_kinds_[i] == HEDDLE_OPERAND_NONE) continue;
    const bool each = operand_kinds_[i] == HEDDLE_OPERAND_SAME_SHAPE;
    const int64_t count = each ? tile.rows * tile.columns : std::max(tile.rows, tile.columns);
    operand_bytes_[i] = std::max(operand_bytes_[i], bytes_of_floats(count));
  }
}

uint64_t MatMulFloatTiles::place(uint64_t at) {
  a_at_ = at;
  b_at_ = a_at_ + a_bytes_;
  y_at_ = b_at_ + b_bytes_;
  uint64_t end = y_at_ + y_bytes_;
  for (size_t i = 0; i < operand_bytes_.size(); ++i) {
    operand_at_[i] = end;
    end += operand_bytes_[i];
  }
  return end;
}

MatrixSteps MatMulFloatTiles::dense_steps(const MatrixSteps& from, int64_t rows, int64_t columns) {
  return from.is_transposed() ? MatrixSteps{1, rows} : MatrixSteps{columns, 1};
}

MatMulProblem MatMulFloatTiles::laid_out(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile) {
  MatMulProblem dense = problem;
  dense.a = dense_form(problem.a, tile.images, tile.rows, problem.depth);
  dense.b = dense_form(problem.b, tile.images, problem.depth, tile.columns);
  dense.y = dense_form(problem.y, tile.images, tile.rows, tile.columns);
  return dense;
}

const float* MatMulFloatTiles::load_a(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile, const void* a, int64_t first,
                                      char* scratch) const {
  auto* dense = reinterpret_cast<float*>(scratch + a_at_);
  load_images(dtype_, a, first, problem.a, tile.images, tile.rows, depth_, dense);
  return dense;
}

const float* MatMulFloatTiles::load_b(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile, const void* b, int64_t first,
                                      char* scratch) const {
  auto* dense = reinterpret_cast<float*>(scratch + b_at_);
  load_images(dtype_, b, first, problem.b, tile.images, depth_, tile.columns, dense);
  return dense;
}

void MatMulFloatTiles::store_y(const MatMulProblem& problem, const MatMulPrimitive::Extents& tile, void* y, int64_t first,
                               char* scratch) const {
  const float* dense = this->y(scratch);
  for (int64_t image = 0; image < tile.images; ++image) {
    const int64_t at = first + (image > 0 ? image * problem.y.batch[0] : 0);
    store_floats(dense + image * tile.rows * tile.columns, dtype_, y, {at, tile.rows, tile.columns, problem.y.row});
  }
}

const float* MatMulFloatTiles::load_operand(const onednn::Epilogue& epilogue, size_t epilogue_op, const MatMulTile& tile,
                                            const void* operand, int64_t y_first, int64_t y_row, char* scratch) const {
  RowsOfTensor part = {0, 1, 1, 1};
  switch (epilogue[epilogue_op].operand_kind) {
    case HEDDLE_OPERAND_SAME_SHAPE:
      part = {y_first, tile.rows, tile.columns, y_row};
      break;
    case HEDDLE_OPERAND_LAST_DIMENSION:
      part = {tile.first_column, 1, tile.columns, tile.columns};
      break;
    case onednn::operand_per_row:
      part = {tile.first_row, 1, tile.rows, tile.rows};
      break;
    default:
      break;
  }
  auto* dense = reinterpret_cast<float*>(scratch + operand_at_[epilogue_op]);
  load_floats(dtype_, operand, part, dense);
  return dense;
}

}  // namespace heddle::cpu

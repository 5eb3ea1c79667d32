// A batch of matrix products y = a b as strides, and its division into tiles. Extents and strides in elements. Pure.
#pragma once

#include <vector>

#include "shared/dims.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// One operand: matrices `row` and `column` apart inside, `batch[i]` apart along batch dimension i (0: the same matrix).
struct MatrixStrides {
  int64_t row = 0, column = 1;
  std::vector<int64_t> batch;
};

struct MatMulProblem {
  std::vector<int64_t> batch;                // broadcast batch dims
  int64_t rows = 0, columns = 0, depth = 0;  // y is [batch..., rows, columns]
  MatrixStrides a, b, y;

  int64_t images() const { return count_of(batch); }
  double flops() const {
    return 2.0 * static_cast<double>(images()) * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  }
};

// ONNX MatMul (NumPy's matmul): 1-D operands are a row on the left and a column on the right.
Status resolve_matmul(Dims a, Dims b, MatMulProblem* problem, std::vector<int64_t>* y_dims);
// Drops what can be dropped: batches that share b become rows, batch dims with one common stride are merged into one.
void simplify(MatMulProblem* problem);

// Images [first_image, first_image + images), rows and columns [first, first + count) of each.
struct MatMulTile {
  int64_t first_image = 0, images = 0;
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
};
// Tiles of whole images when there are enough; else of columns at multiples of 16 (each packs its own weights once) or of rows. A
// function of the shape and of whether b is constant.
// Where one of these would be above the marks of tile_cap.h, a grid of tiles; empty when that can not be done (a depth of 2^24 and more, or
// more tiles than a table should have): plain loops then.
std::vector<MatMulTile> divide_matmul(const MatMulProblem& problem, bool constant_b);

// Whether the whole product is within the marks.
bool may_be_one_tile(const MatMulProblem& problem);

// Offset of image `image` for an operand.
int64_t image_offset(const MatMulProblem& problem, const MatrixStrides& strides, int64_t image);

}  // namespace heddle::cpu

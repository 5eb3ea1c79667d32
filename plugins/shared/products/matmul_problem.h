// A batch of matrix products y = a b as strides. Extents and strides in elements. Pure.
#pragma once

#include <vector>

#include "shared/dims.h"
#include "shared/operator_api.h"

namespace heddle::operators {

// One operand: matrices `row` and `column` apart inside, `batch[i]` apart along batch dimension i (0: the same matrix).
// Steps from an element to the next one in its column and in its row.
struct MatrixSteps {
  int64_t row = 0, column = 1;

  bool is_transposed() const { return row == 1 && column > 1; }  // its rows are one element apart
};

struct MatrixStrides : MatrixSteps {
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
// Simplifies the problem: batches that share b become rows, batch dims with one common stride are merged into one.
void simplify(MatMulProblem* problem);
// ONNX Gemm's product of two matrices, each transposed or not.
Status resolve_gemm(bool transpose_a, bool transpose_b, Dims a, Dims b, MatMulProblem* problem);

// Offset of image `image` for an operand.
int64_t image_offset(const MatMulProblem& problem, const MatrixStrides& strides, int64_t image);

}  // namespace heddle::operators

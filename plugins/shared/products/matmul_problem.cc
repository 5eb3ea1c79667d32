#include "shared/products/matmul_problem.h"

#include <algorithm>
#include <string>

namespace heddle::operators {
namespace {

Status does_not_fit(Dims a, Dims b, const std::string& why) {
  return invalid("A is " + dims_text(a) + " and B is " + dims_text(b) + ": " + why);
}

// Dims of a row-major operand aligned to `rank` batch dims; missing ones are 1.
void batch_strides(Dims dims, int matrix_rank, size_t rank, MatrixStrides* strides) {
  strides->batch.assign(rank, 0);
  const int own = dims.rank - matrix_rank;
  int64_t stride = dims.count(own, dims.rank);
  for (int i = own - 1; i >= 0; --i) {
    if (dims[i] != 1) strides->batch[rank - static_cast<size_t>(own - i)] = stride;
    stride *= dims[i];
  }
}

// True when dimension i + 1 of the operand continues dimension i.
bool merges(const MatrixStrides& strides, const std::vector<int64_t>& batch, size_t i) {
  return strides.batch[i] == strides.batch[i + 1] * batch[i + 1];
}

bool continues_into_rows(const MatMulProblem& problem, const MatrixStrides& strides) {
  return problem.batch.size() == 1 && strides.batch[0] == problem.rows * strides.row;
}

}  // namespace

Status resolve_matmul(Dims a, Dims b, MatMulProblem* problem, std::vector<int64_t>* y_dims) {
  if (a.rank == 0 || b.rank == 0) return does_not_fit(a, b, "neither may be a scalar");
  *problem = {};
  problem->rows = a.rank == 1 ? 1 : a[-2];
  problem->depth = a[-1];
  problem->columns = b.rank == 1 ? 1 : b[-1];
  const int64_t b_depth = b.rank == 1 ? b[0] : b[-2];
  if (problem->depth != b_depth)
    return does_not_fit(
        a, b, "expected as many columns of A (" + std::to_string(problem->depth) + ") as rows of B (" + std::to_string(b_depth) + ")");
  const int a_matrix = std::min(a.rank, 2), b_matrix = std::min(b.rank, 2);
  if (!broadcast_dims(problem->batch, {a.data, a.rank - a_matrix}) || !broadcast_dims(problem->batch, {b.data, b.rank - b_matrix}))
    return does_not_fit(a, b, "the batch dimensions do not broadcast");
  const size_t rank = problem->batch.size();
  problem->a.row = problem->depth;
  problem->b.row = problem->columns;
  problem->y.row = problem->columns;
  batch_strides(a, a_matrix, rank, &problem->a);
  batch_strides(b, b_matrix, rank, &problem->b);
  *y_dims = problem->batch;
  y_dims->push_back(problem->rows);
  y_dims->push_back(problem->columns);
  batch_strides(dims_of(*y_dims), 2, rank, &problem->y);
  if (b.rank == 1) y_dims->pop_back();
  if (a.rank == 1) y_dims->erase(y_dims->end() - (b.rank == 1 ? 1 : 2));
  return {};
}

void simplify(MatMulProblem* problem) {
  for (size_t i = problem->batch.size(); i-- > 0;) {
    if (problem->batch[i] != 1) continue;
    problem->batch.erase(problem->batch.begin() + static_cast<std::ptrdiff_t>(i));
    for (MatrixStrides* s : {&problem->a, &problem->b, &problem->y}) s->batch.erase(s->batch.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (size_t i = problem->batch.size(); i-- > 1;) {
    bool all = true;
    for (const MatrixStrides* s : {&problem->a, &problem->b, &problem->y}) all = all && merges(*s, problem->batch, i - 1);
    if (!all) continue;
    problem->batch[i - 1] *= problem->batch[i];
    problem->batch.erase(problem->batch.begin() + static_cast<std::ptrdiff_t>(i));
    for (MatrixStrides* s : {&problem->a, &problem->b, &problem->y}) s->batch.erase(s->batch.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
  if (problem->batch.size() == 1 && problem->b.batch[0] == 0 && continues_into_rows(*problem, problem->a) &&
      continues_into_rows(*problem, problem->y)) {
    problem->rows *= problem->batch[0];
    problem->batch.clear();
    for (MatrixStrides* s : {&problem->a, &problem->b, &problem->y}) s->batch.clear();
  }
}

Status resolve_gemm(bool transpose_a, bool transpose_b, Dims a, Dims b, MatMulProblem* problem) {
  const char* operands[] = {"A", "B"};
  const Dims dims[] = {a, b};
  for (int i = 0; i < 2; ++i)
    if (dims[i].rank != 2) return invalid(std::string(operands[i]) + " is " + dims_text(dims[i]) + ", expected a matrix");
  *problem = {};
  problem->rows = a[transpose_a ? 1 : 0];
  problem->depth = a[transpose_a ? 0 : 1];
  problem->columns = b[transpose_b ? 0 : 1];
  const int64_t b_depth = b[transpose_b ? 1 : 0];
  if (problem->depth != b_depth)
    return invalid("A is " + dims_text(a) + (transpose_a ? " transposed" : "") + " and B is " + dims_text(b) +
                   (transpose_b ? " transposed" : "") + ": expected as many columns of A (" + std::to_string(problem->depth) +
                   ") as rows of B (" + std::to_string(b_depth) + ")");
  problem->a = transpose_a ? MatrixStrides{1, a[1], {}} : MatrixStrides{a[1], 1, {}};
  problem->b = transpose_b ? MatrixStrides{1, b[1], {}} : MatrixStrides{b[1], 1, {}};
  problem->y = {problem->columns, 1, {}};
  return {};
}

int64_t image_offset(const MatMulProblem& problem, const MatrixStrides& strides, int64_t image) {
  int64_t offset = 0;
  for (size_t i = problem.batch.size(); i-- > 0;) {
    offset += image % problem.batch[i] * strides.batch[i];
    image /= problem.batch[i];
  }
  return offset;
}

}  // namespace heddle::operators

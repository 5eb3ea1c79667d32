// Shapes and tiles of matrix products. See matmul_problem.h.
#include "matmul/matmul_problem.h"

#include <algorithm>

#include "conv/conv_tiles.h"
#include "shared/dims.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int64_t column_unit = 16;      // oneDNN's kernels work on groups of 16 columns
constexpr double flops_per_byte = 10.0;  // reading b takes as long as so many operations on each byte

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

std::vector<MatMulTile> divide_one_image(const MatMulProblem& problem, int64_t first_image, int64_t blocks, bool constant_b) {
  std::vector<MatMulTile> tiles;
  const MatMulTile whole = {first_image, 1, 0, problem.rows, 0, problem.columns};
  const int64_t column_units = (problem.columns + column_unit - 1) / column_unit;
  const bool by_columns = column_units >= 2 * blocks && (constant_b || problem.rows < 64 * blocks);
  const bool by_rows = !by_columns && problem.rows >= 16 * blocks;
  if (!by_columns && !by_rows) return {whole};
  for (int64_t t = 0; t < blocks; ++t) {
    MatMulTile tile = whole;
    if (by_columns) {
      const int64_t end = std::min(problem.columns, column_units * (t + 1) / blocks * column_unit);
      tile.first_column = column_units * t / blocks * column_unit;
      tile.columns = end - tile.first_column;
    } else {
      tile.first_row = problem.rows * t / blocks;
      tile.rows = problem.rows * (t + 1) / blocks - tile.first_row;
    }
    tiles.push_back(tile);
  }
  return tiles;
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

namespace {

// Bytes of a, b and y that a tile touches.
double touched_bytes(const MatMulProblem& problem, const MatMulTile& tile) {
  const auto depth = static_cast<double>(problem.depth), rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
  return sizeof(float) * static_cast<double>(tile.images) * (rows * depth + depth * columns + rows * columns);
}

bool within_marks(const MatMulProblem& problem, const std::vector<MatMulTile>& tiles) {
  const double whole = touched_bytes(problem, {0, problem.images(), 0, problem.rows, 0, problem.columns});
  const auto count = static_cast<double>(tiles.size());
  // What all tiles read (the b of tiles of rows) is read from caches: what counts are the bytes of the product.
  return problem.flops() / count <= most_tile_flops && whole / count <= most_tile_bytes;
}

// Tiles of equal shares of images, rows and columns; all of them counts of parts.
std::vector<MatMulTile> grid(const MatMulProblem& problem, int64_t images, int64_t rows, int64_t columns) {
  std::vector<MatMulTile> tiles;
  const int64_t units = (problem.columns + column_unit - 1) / column_unit;
  const bool whole_units = units >= columns;
  const auto column_begin = [&](int64_t part) {
    return whole_units ? std::min(problem.columns, units * part / columns * column_unit) : problem.columns * part / columns;
  };
  for (int64_t i = 0; i < images; ++i)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < rows; ++r) {
        MatMulTile tile;
        tile.first_image = problem.images() * i / images;
        tile.images = problem.images() * (i + 1) / images - tile.first_image;
        tile.first_row = problem.rows * r / rows;
        tile.rows = problem.rows * (r + 1) / rows - tile.first_row;
        tile.first_column = column_begin(c);
        tile.columns = column_begin(c + 1) - tile.first_column;
        tiles.push_back(tile);
      }
  return tiles;
}

// As few parts as the marks allow, the larger side of an image's product first, so that tiles are nearly square.
std::vector<MatMulTile> divide_more(const MatMulProblem& problem) {
  constexpr int64_t most_depth = int64_t{1} << 24, most_extent = int64_t{1} << 30, most_tiles_of_library = int64_t{1} << 18;
  const double whole = touched_bytes(problem, {0, problem.images(), 0, problem.rows, 0, problem.columns});
  const int64_t least = least_tiles(problem.flops(), whole);
  if (problem.depth > most_depth || least > most_tiles_of_library / 4) return {};
  const int64_t images = std::min(problem.images(), least);
  int64_t rows = 1, columns = 1;
  while (images * rows * columns < least) {
    const int64_t tall = problem.rows / rows, wide = problem.columns / columns;
    if (tall <= 1 && wide <= 1) return {};
    if (tall >= wide || wide < 2 * column_unit)
      tall > 1 ? rows = std::min(2 * rows, problem.rows) : columns = std::min(2 * columns, problem.columns);
    else
      columns *= 2;
  }
  if (problem.rows / rows >= most_extent || problem.columns / columns >= most_extent) return {};
  return grid(problem, images, rows, columns);
}

std::vector<MatMulTile> divide_tuned(const MatMulProblem& problem, bool constant_b) {
  const int64_t images = problem.images();
  const double b_bytes = static_cast<double>(problem.depth) * static_cast<double>(problem.columns) * sizeof(float);
  const int64_t count = tiles_for_flops(std::max(problem.flops(), flops_per_byte * b_bytes * static_cast<double>(images)));
  std::vector<MatMulTile> tiles;
  if (images >= count) {
    for (int64_t t = 0; t < count; ++t) {
      const int64_t first = images * t / count;
      tiles.push_back({first, images * (t + 1) / count - first, 0, problem.rows, 0, problem.columns});
    }
    return tiles;
  }
  const int64_t blocks = (count + images - 1) / images;
  for (int64_t image = 0; image < images; ++image) {
    if (images == 1 && blocks == 1) return {{0, 1, 0, problem.rows, 0, problem.columns}};
    const std::vector<MatMulTile> own = divide_one_image(problem, image, blocks, constant_b);
    tiles.insert(tiles.end(), own.begin(), own.end());
  }
  return tiles;
}

}  // namespace

std::vector<MatMulTile> divide_matmul(const MatMulProblem& problem, bool constant_b) {
  std::vector<MatMulTile> tiles = divide_tuned(problem, constant_b);
  return within_marks(problem, tiles) ? tiles : divide_more(problem);
}

bool may_be_one_tile(const MatMulProblem& problem) {
  return within_marks(problem, {{0, problem.images(), 0, problem.rows, 0, problem.columns}});
}

int64_t image_offset(const MatMulProblem& problem, const MatrixStrides& strides, int64_t image) {
  int64_t offset = 0;
  for (size_t i = problem.batch.size(); i-- > 0;) {
    offset += image % problem.batch[i] * strides.batch[i];
    image /= problem.batch[i];
  }
  return offset;
}

}  // namespace heddle::cpu

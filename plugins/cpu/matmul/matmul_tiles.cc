// Tiles of matrix products. See matmul_tiles.h.
#include "matmul/matmul_tiles.h"

#include <algorithm>

#include "conv/conv_tiles.h"
#include "shared/dims.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int64_t column_unit = 16;      // oneDNN's kernels work on groups of 16 columns
constexpr double flops_per_byte = 10.0;  // reading a byte of b takes as long as so many operations

std::vector<MatMulTile> divide_one_image(const MatMulProblem& problem, int64_t first_image, int64_t blocks, bool constant_b) {
  std::vector<MatMulTile> tiles;
  const MatMulTile whole = {first_image, 1, 0, problem.rows, 0, problem.columns};
  const int64_t column_units = (problem.columns + column_unit - 1) / column_unit;
  // Tiles of rows read all of b again, and tiles of columns all of a: prefer to reread the smaller one, and the one that is not transposed.
  const bool a_is_smaller = problem.b.is_transposed() ? problem.rows <= problem.columns : 2 * problem.rows <= problem.columns;
  const int64_t min_rows = problem.a.is_transposed() ? 16 : 64;
  const bool by_columns = column_units >= 2 * blocks && (constant_b || a_is_smaller || problem.rows < min_rows * blocks);
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

// Bytes of a, b and y that a tile touches.
double touched_bytes(const MatMulProblem& problem, const MatMulTile& tile) {
  const auto depth = static_cast<double>(problem.depth), rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
  return sizeof(float) * static_cast<double>(tile.images) * (rows * depth + depth * columns + rows * columns);
}

bool within_marks(const MatMulProblem& problem, const std::vector<MatMulTile>& tiles) {
  const double whole = touched_bytes(problem, {0, problem.images(), 0, problem.rows, 0, problem.columns});
  const auto count = static_cast<double>(tiles.size());
  // Data that all tiles read (the b of tiles of rows) comes from caches: only the bytes of the whole product count.
  return problem.flops() / count <= max_tile_flops && whole / count <= max_tile_bytes;
}

// Tiles of equal shares of images, rows and columns; the arguments are numbers of parts.
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

// The fewest parts that stay within the marks, dividing the larger side of an image's product first, so that tiles are nearly square.
std::vector<MatMulTile> divide_more(const MatMulProblem& problem) {
  constexpr int64_t max_depth = int64_t{1} << 24, max_extent = int64_t{1} << 30, max_tiles_of_library = int64_t{1} << 18;
  const double whole = touched_bytes(problem, {0, problem.images(), 0, problem.rows, 0, problem.columns});
  const int64_t least = min_tiles(problem.flops(), whole);
  if (problem.depth > max_depth || least > max_tiles_of_library / 4) return {};
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
  if (problem.rows / rows >= max_extent || problem.columns / columns >= max_extent) return {};
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

}  // namespace heddle::cpu

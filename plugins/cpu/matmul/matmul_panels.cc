// Products of f64 by panels. See matmul_panels.h.
#include "matmul/matmul_panels.h"

#include <algorithm>
#include <array>

#include "recurrent/recurrent_panels.h"

namespace heddle::cpu {
namespace {

constexpr int64_t max_depth = 128, max_rows = 64, max_columns = 32;  // of one call of the loops; their blocks fit the second cache

// One block of rows, times a panel of `depth` rows from `first` on.
struct RowBlock {
  std::array<double, max_rows * max_depth> a;
  std::array<double, max_rows * max_columns> y;
  std::array<const double*, max_rows> a_rows;
  std::array<double*, max_rows> y_rows;
};

void multiply_block(const StridedProduct<double>& p, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t first,
                    int64_t depth, const double* panel, RowBlock& block) {
  const RecurrentLoops<double>& loops = recurrent_loops<double>();
  const bool whole = columns == loops.panel_columns;
  for (int64_t i = 0; i < rows; ++i) {
    const double* const a = p.a + (row + i) * p.a_row + first * p.a_column;
    double* const y = p.y + (row + i) * p.y_row + column;
    const auto at = static_cast<size_t>(i);
    block.a_rows[at] = p.a_column == 1 ? a : block.a.data() + i * max_depth;
    block.y_rows[at] = whole ? y : block.y.data() + i * max_columns;
    for (int64_t k = 0; k < depth && p.a_column != 1; ++k) block.a[static_cast<size_t>(i * max_depth + k)] = a[k * p.a_column];
    if (!whole && first > 0) std::copy_n(y, columns, block.y_rows[at]);
  }
  loops.multiply(block.a_rows.data(), 0, block.y_rows.data(), 0, rows, depth, panel, first > 0);
  for (int64_t i = 0; i < rows && !whole; ++i)
    std::copy_n(block.y_rows[static_cast<size_t>(i)], columns, p.y + (row + i) * p.y_row + column);
}

}  // namespace

void multiply_by_panels(const StridedProduct<double>& p, CancellationPoll& poll) {
  const int64_t width = recurrent_loops<double>().panel_columns;
  std::array<double, max_depth * max_columns> panel;
  RowBlock block;
  if (p.depth == 0)
    for (int64_t i = 0; i < p.rows; ++i) std::fill_n(p.y + i * p.y_row, p.columns, 0.0);
  for (int64_t column = 0; column < p.columns; column += width)
    for (int64_t first = 0; first < p.depth; first += max_depth) {
      const int64_t columns = std::min(width, p.columns - column), depth = std::min(max_depth, p.depth - first);
      if (poll.stops((p.rows / 4 + 1) * depth * width)) return;
      pack_panel(p.b + first * p.b_row + column * p.b_column, p.b_row, p.b_column, columns, depth, panel.data());
      for (int64_t row = 0; row < p.rows; row += max_rows)
        multiply_block(p, row, std::min(max_rows, p.rows - row), column, columns, first, depth, panel.data(), block);
    }
}

int64_t rows_by_panels(int64_t all_rows, int64_t columns, int64_t depth) {
  const double flops_of_row = 2 * static_cast<double>(columns) * static_cast<double>(depth);
  constexpr double worth_dividing = 1e6;
  if (flops_of_row * static_cast<double>(all_rows) < worth_dividing) return std::max<int64_t>(1, all_rows);
  const double fitting = std::clamp(operators::max_tile_flops / std::max(flops_of_row, 1.0), 1.0, static_cast<double>(max_rows));
  return std::clamp<int64_t>(all_rows / 4, 1, static_cast<int64_t>(fitting));
}

}  // namespace heddle::cpu

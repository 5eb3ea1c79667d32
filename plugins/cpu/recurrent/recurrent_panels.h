// Weights of recurrent layers as panels, and products of the rows of several batch entries with them.
//
// A panel has as many columns of a matrix as a few vectors of this processor hold, stored row after row; columns beyond the matrix are
// zeros. Rows of operands and results are padded to whole panels, too: they have padded() elements.
#pragma once

#include <algorithm>
#include <type_traits>

#include "recurrent/recurrent_loops.h"
#include "shared/tile_cap.h"

namespace heddle::cpu {

template <class T>
const RecurrentLoops<T>& recurrent_loops() {
  if constexpr (std::is_same_v<T, double>)
    return isa_recurrent_table().of_double;
  else
    return isa_recurrent_table().of_float;
}

template <class T>
int64_t padded(int64_t columns) {
  const int64_t panel = recurrent_loops<T>().panel_columns;
  return (columns + panel - 1) / panel * panel;
}

// Packs `count` columns of a matrix of `depth` rows, at most a panel's; element (row, column) lies at row * row_stride + column *
// column_stride.
template <class T>
void pack_panel(const T* matrix, int64_t row_stride, int64_t column_stride, int64_t count, int64_t depth, T* panel) {
  const int64_t columns = recurrent_loops<T>().panel_columns;
  // A few rows at a time: where a column of the matrix is contiguous, each of its cache lines is then read once. With strides that are a
  // power of two, a line would be evicted before its next element is read.
  constexpr int64_t rows_at_once = 64 / sizeof(T);
  for (int64_t first = 0; first < depth; first += rows_at_once, panel += rows_at_once * columns) {
    const int64_t rows = std::min(rows_at_once, depth - first);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t k = 0; k < rows; ++k) panel[k * columns + j] = matrix[(first + k) * row_stride + j * column_stride];
    for (int64_t k = 0; k < rows; ++k) std::fill(panel + k * columns + count, panel + (k + 1) * columns, T(0));
  }
}
// Packs all columns. `poll`: may be null; unfinished when it stops.
template <class T>
void pack_panels(const T* matrix, int64_t row_stride, int64_t column_stride, int64_t columns, int64_t depth, T* panels,
                 operators::CancellationPoll* poll) {
  const int64_t panel = recurrent_loops<T>().panel_columns;
  for (int64_t first = 0; first < columns && !(poll && poll->stops(panel * depth)); first += panel)
    pack_panel(matrix + first * column_stride, row_stride, column_stride, std::min(panel, columns - first), depth, panels + first * depth);
}

// Rows [0, rows) of y, from column y_first on: y = or += a . panels, of `columns` columns, a multiple of a panel's. The elements of a from
// a_first on are multiplied with `depth` rows of the panels, whose own depth is panel_depth, from first_row on.
template <class T>
struct PanelProduct {
  const T* const* a;
  T* const* y;
  const T* panels;
  int64_t rows, columns, depth, panel_depth;
  int64_t a_first = 0, y_first = 0, first_row = 0;
  bool adds = false;
};
// Unfinished when `poll` stops.
template <class T>
void multiply(const PanelProduct<T>& p, operators::CancellationPoll& poll) {
  const RecurrentLoops<T>& loops = recurrent_loops<T>();
  for (int64_t first = 0; first < p.columns; first += loops.panel_columns) {
    if (poll.stops(p.rows * p.depth * loops.panel_columns / 16)) return;
    loops.multiply(p.a, p.a_first, p.y, p.y_first + first, p.rows, p.depth,
                   p.panels + first * p.panel_depth + p.first_row * loops.panel_columns, p.adds);
  }
}

}  // namespace heddle::cpu

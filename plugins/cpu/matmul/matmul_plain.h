// Matrix products of any dtype as plain loops: for types and sizes that are not worth a library.
#pragma once

#include <algorithm>
#include <type_traits>

#include "matmul/integer_rows.h"
#include "matmul/matmul_panels.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Integers of 32 and 64 bits, the columns of b contiguous.
template <class T>
void multiply_integers(const StridedProduct<T>& p, CancellationPoll& poll) {
  using U = std::make_unsigned_t<T>;
  constexpr int64_t rows_at_once = 32, depth_at_once = 4096;
  for (int64_t i = 0; i < p.rows; i += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, p.rows - i);
    for (int64_t r = i; r < i + rows; ++r) std::fill_n(p.y + r * p.y_row, p.columns, T(0));
    for (int64_t k = 0; k < p.depth; k += depth_at_once) {
      const int64_t depth = std::min(depth_at_once, p.depth - k);
      if (poll.stops(rows * (1 + depth * p.columns / 8))) return;
      const IntegerRows<U> product = {reinterpret_cast<const U*>(p.a) + i * p.a_row + k * p.a_column,
                                      reinterpret_cast<const U*>(p.b) + k * p.b_row,
                                      reinterpret_cast<U*>(p.y) + i * p.y_row,
                                      rows,
                                      p.columns,
                                      depth,
                                      p.a_row,
                                      p.a_column,
                                      p.b_row,
                                      p.y_row};
      if constexpr (sizeof(U) == sizeof(uint32_t))
        isa_integer_products().add_32(product);
      else
        isa_integer_products().add_64(product);
    }
  }
}

// Sums run over depth in ascending order; in float for 16-bit types (rounded once), wrapping for integers. Unfinished when `poll` stops.
template <class T>
void multiply(const StridedProduct<T>& p, CancellationPoll& poll) {
  if constexpr (std::is_same_v<T, double>) return multiply_by_panels(p, poll);
  if constexpr (std::is_integral_v<T> && sizeof(T) >= sizeof(uint32_t))
    if (p.b_column == 1) return multiply_integers(p, poll);
  constexpr int64_t stretch = 1 << 16;
  for (int64_t i = 0; i < p.rows; ++i) {
    T* y = p.y + i * p.y_row;
    if constexpr (std::is_same_v<T, Arithmetic<T>>) {
      // Row by row of b, so that its columns are read contiguously and become vectors.
      for (int64_t j = 0; j < p.columns; ++j) y[j] = T(0);
      for (int64_t k = 0; k < p.depth; ++k) {
        if (poll.stops(p.columns)) return;
        const T factor = p.a[i * p.a_row + k * p.a_column];
        const T* b = p.b + k * p.b_row;
        for (int64_t j = 0; j < p.columns; ++j) y[j] = wrapping_add(y[j], wrapping_mul(factor, b[j * p.b_column]));
      }
    } else {
      for (int64_t j = 0; j < p.columns; ++j) {
        Arithmetic<T> sum = 0;
        for (int64_t k = 0; k < p.depth; ++k) {
          if (k % stretch == 0 && poll.stops(std::min(stretch, p.depth))) return;
          sum += to_arithmetic(p.a[i * p.a_row + k * p.a_column]) * to_arithmetic(p.b[k * p.b_row + j * p.b_column]);
        }
        y[j] = from_arithmetic<T>(sum);
      }
    }
  }
}

}  // namespace heddle::cpu

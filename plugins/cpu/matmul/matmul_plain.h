// Matrix products of any dtype as plain loops: for types and sizes that are not worth a library.
#pragma once

#include <algorithm>
#include <type_traits>

#include "matmul/matmul_panels.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Sums run over depth in ascending order; in float for 16-bit types (rounded once), wrapping for integers. Unfinished when `poll` stops.
template <class T>
void multiply(const StridedProduct<T>& p, CancellationPoll& poll) {
  if constexpr (std::is_same_v<T, double>) return multiply_by_panels(p, poll);
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

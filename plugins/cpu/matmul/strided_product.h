// The operands of a matrix product in memory.
#pragma once

#include <cstdint>

namespace heddle::cpu {

// y = a b; strides in elements, columns of y contiguous.
template <class T>
struct StridedProduct {
  const T* a = nullptr;
  const T* b = nullptr;
  T* y = nullptr;
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t a_row = 0, a_column = 1, b_row = 0, b_column = 1, y_row = 0;
};

}  // namespace heddle::cpu

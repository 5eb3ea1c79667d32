// The loops of integer products of one instruction set level: blocks of y stay in registers over the whole depth.
#include "matmul/integer_rows.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// `rows` x `width` vectors of y from row `i` and column `j` on.
template <int rows, int width, class U>
void add_block(const IntegerRows<U>& p, int64_t i, int64_t j) {
  using V = Vector<U>;
  V sums[rows][width];
  for (int r = 0; r < rows; ++r)
    for (int w = 0; w < width; ++w) sums[r][w] = load<V>(p.y + (i + r) * p.y_row + j + w * lanes<U>);
  for (int64_t k = 0; k < p.depth; ++k) {
    V b[width];
    for (int w = 0; w < width; ++w) b[w] = load<V>(p.b + k * p.b_row + j + w * lanes<U>);
    for (int r = 0; r < rows; ++r) {
      const V factor = splat<V>(p.a[(i + r) * p.a_row + k * p.a_column]);
      for (int w = 0; w < width; ++w) sums[r][w] += factor * b[w];
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int w = 0; w < width; ++w) store(p.y + (i + r) * p.y_row + j + w * lanes<U>, sums[r][w]);
}
template <int rows, class U>
void add_rows(const IntegerRows<U>& p, int64_t i) {
  int64_t j = 0;
  for (; p.columns - j >= 2 * lanes<U>; j += 2 * lanes<U>) add_block<rows, 2>(p, i, j);
  for (; p.columns - j >= lanes<U>; j += lanes<U>) add_block<rows, 1>(p, i, j);
  for (; j < p.columns; ++j)
    for (int r = 0; r < rows; ++r) {
      U sum = p.y[(i + r) * p.y_row + j];
      for (int64_t k = 0; k < p.depth; ++k) sum += p.a[(i + r) * p.a_row + k * p.a_column] * p.b[k * p.b_row + j];
      p.y[(i + r) * p.y_row + j] = sum;
    }
}
template <class U>
void add_products(const IntegerRows<U>& p) {
  int64_t i = 0;
  for (; p.rows - i >= 4; i += 4) add_rows<4>(p, i);
  for (; i < p.rows; ++i) add_rows<1>(p, i);
}

}  // namespace

constinit const IntegerProducts integer_products = {add_products<uint32_t>, add_products<uint64_t>};

}  // namespace heddle::cpu::HEDDLE_ISA

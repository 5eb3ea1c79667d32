// The division of a batch of matrix products (shared/products/matmul_problem.h) into tiles. Pure.
#pragma once

#include <vector>

#include "shared/products/matmul_problem.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Images [first_image, first_image + images), rows and columns [first, first + count) of each.
struct MatMulTile {
  int64_t first_image = 0, images = 0;
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
};
// Returns tiles of whole images when there are enough; else of columns at multiples of 16 (each packs its own weights once) or of rows. The
// division is a function of the shape and of whether b is constant. Where one of these would exceed the marks of tile_cap.h, a grid of
// tiles; empty when that can not be done (a depth of 2^24 and more, or more tiles than a table should have): the caller uses plain loops
// then.
std::vector<MatMulTile> divide_matmul(const MatMulProblem& problem, bool constant_b);

// True if the whole product is within the marks of tile_cap.h.
bool may_be_one_tile(const MatMulProblem& problem);

}  // namespace heddle::cpu

// Products of f64, which oneDNN does not have: b in panels of a few vectors, a block of rows at a time, by the loops of recurrent layers.
#pragma once

#include "matmul/strided_product.h"
#include "shared/tile_cap.h"

namespace heddle::cpu {

using operators::CancellationPoll;

// Each element is one sum over depth in ascending order, so that it does not depend on the rows and columns beside it. Unfinished when
// `poll` stops.
void multiply_by_panels(const StridedProduct<double>& product, CancellationPoll& poll);

// The number of rows that a tile takes together: each packs all of b. At most 64, a quarter of all unless these are little
// work, and as many as a tile may compute.
int64_t rows_by_panels(int64_t all_rows, int64_t columns, int64_t depth);

}  // namespace heddle::cpu

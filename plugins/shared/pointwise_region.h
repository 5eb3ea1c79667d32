// Region: the mapping from the elements of an output, in storage order, to those of broadcasting inputs.
#pragma once

#include <cstdint>

#include "heddle/op.h"

namespace heddle::operators {

// dims[0] is the outermost; adjacent dimensions are merged where every input steps through them evenly, so same-shaped operands of any
// common layout give rank 1. Strides in elements, 0 where an input is repeated.
struct Region {
  struct Input {
    int64_t strides[HEDDLE_MAX_RANK] = {};
    bool linear = false;  // element i of the output is element i of the input
    bool scalar = false;  // one element for all
  };
  int rank = 0;
  int64_t dims[HEDDLE_MAX_RANK] = {};
  int64_t element_count = 1;
  Input* inputs = nullptr;  // the caller's memory
};

// The region of `output` = f(`inputs`), shapes broadcasting to the output's; null inputs count as scalars. Dense views in any dimension
// order. `storage` holds 2 * input_count entries and lives as long as the region. No allocation unless it fails.
plugin::Status make_region(const heddle_tensor& output, const heddle_tensor* const* inputs, uint32_t input_count, Region::Input* storage,
                           Region* region);

}  // namespace heddle::operators

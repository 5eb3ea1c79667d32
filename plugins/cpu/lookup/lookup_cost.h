// What a run moves that looks rows of a table up: not the table, of which most may lie untouched. Pure.
#pragma once

#include <algorithm>

#include "support/cpu_api.h"

namespace heddle::cpu {

// Of a row for each index, and of the indices.
struct LookupCost {
  double elements = 0, bytes = 0;

  LookupCost(const heddle_tensor& table, const heddle_tensor& indices) {
    const auto lookups = static_cast<double>(indices.element_count);
    const double rows = table.rank > 0 ? std::max(1.0, static_cast<double>(table.dims[0])) : 1;
    elements = lookups * static_cast<double>(table.element_count) / rows;
    bytes = elements * static_cast<double>(byte_width(table.dtype)) + static_cast<double>(indices.byte_size);
  }
};

// What infer left of an output.
inline double bytes_of(const heddle_type& type) {
  double bytes = static_cast<double>(byte_width(type.dtype));
  for (int32_t i = 0; i < type.rank; ++i) bytes *= static_cast<double>(type.dims[i]);
  return bytes;
}

}  // namespace heddle::cpu

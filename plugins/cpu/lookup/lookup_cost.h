// The memory traffic of operators that look up rows of a table: not that of the whole table, most of which may be unused. Pure.
#pragma once

#include <algorithm>

#include "support/cpu_api.h"

namespace heddle::cpu {

// Elements and bytes of a row for each index, and the bytes of the indices.
struct LookupCost {
  double elements = 0, bytes = 0;

  LookupCost(const heddle_tensor& table, const heddle_tensor& indices) {
    const auto lookups = static_cast<double>(indices.element_count);
    const double rows = table.rank > 0 ? std::max(1.0, static_cast<double>(table.dims[0])) : 1;
    elements = lookups * static_cast<double>(table.element_count) / rows;
    bytes = elements * static_cast<double>(byte_width(table.dtype)) + static_cast<double>(indices.byte_size);
  }
};

// Bytes of an output as infer has set its type.
inline double bytes_of(const heddle_type& type) {
  double bytes = static_cast<double>(byte_width(type.dtype));
  for (int32_t i = 0; i < type.rank; ++i) bytes *= static_cast<double>(type.dims[i]);
  return bytes;
}

}  // namespace heddle::cpu

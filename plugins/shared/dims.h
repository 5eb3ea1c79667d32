// Extents as vectors and as views. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/operator_api.h"

namespace heddle::operators {

inline int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t dim : dims) n *= dim;
  return n;
}
inline std::vector<int64_t> vector_of(Dims dims) {
  return {dims.begin(), dims.end()};
}
inline Dims dims_of(const heddle_tensor& tensor) {
  return {tensor.dims, tensor.rank};
}
inline Dims dims_of(const heddle_type& type) {
  return {type.dims, type.rank};
}
inline Dims dims_of(const std::vector<int64_t>& dims) {
  return {dims.data(), static_cast<int>(dims.size())};
}

}  // namespace heddle::operators

// Axes and indices as ONNX counts them: negative ones from the end. Error texts for those outside. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shared/operator_api.h"

namespace heddle::operators {

// `axis` in [0, rank), negative ones counted from the end; false when it is outside [-rank, rank).
inline bool normalize_axis(int64_t axis, int rank, int* normalized) {
  if (axis < -rank || axis >= rank) return false;
  *normalized = static_cast<int>(axis < 0 ? axis + rank : axis);
  return true;
}
Status axis_outside(const char* what, int64_t axis, int rank);
// Normalises every axis; an axis given twice is an error.
Status normalize_axes(const char* what, const std::vector<int64_t>& axes, int rank, std::vector<int>* normalized);
// Errors: the rank of an output exceeds HEDDLE_MAX_RANK.
Status check_rank(size_t rank);
Status not_one_dimensional(const char* operand, Dims dims);
// Sets the axes that `axes` (null: none) names, as bits; one outside the rank or named twice is an error.
Status axis_set(const char* what, const heddle_tensor* axes, int rank, uint32_t* set);

// "length 7 is outside [0, 4]"
Status outside_range(const std::string& what, int64_t value, int64_t lower, int64_t upper);
// "index 7 is outside [-5, 4]: axis 1 has 5 elements"
Status index_outside(int64_t index, int64_t bound, int axis);
// Replaces an ONNX index by its position; false when it is outside [-bound, bound).
inline bool resolve_index(int64_t* index, int64_t bound) {
  if (*index < 0) *index += bound;
  return *index >= 0 && *index < bound;
}

}  // namespace heddle::operators

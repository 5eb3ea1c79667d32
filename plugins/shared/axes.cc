#include "shared/axes.h"

#include <algorithm>
#include <string>

#include "shared/dtype_dispatch.h"

namespace heddle::operators {

Status axis_outside(const char* what, int64_t axis, int rank) {
  if (rank == 0) return invalid(std::string(what) + " is " + std::to_string(axis) + " but the input is a scalar");
  return invalid(std::string(what) + " is " + std::to_string(axis) + ", expected a number in [" + std::to_string(-rank) + ", " +
                 std::to_string(rank - 1) + "] for an input of rank " + std::to_string(rank));
}

Status normalize_axes(const char* what, const std::vector<int64_t>& axes, int rank, std::vector<int>* normalized) {
  normalized->clear();
  for (int64_t axis : axes) {
    int position = 0;
    if (!normalize_axis(axis, rank, &position)) return axis_outside(what, axis, rank);
    if (std::find(normalized->begin(), normalized->end(), position) != normalized->end())
      return invalid(std::string(what) + " names axis " + std::to_string(position) + " twice");
    normalized->push_back(position);
  }
  return {};
}

Status axis_set(const char* what, const heddle_tensor* axes, int rank, uint32_t* set) {
  *set = 0;
  for (int64_t i = 0; axes && i < axes->element_count; ++i) {
    int axis = 0;
    if (!normalize_axis(integer_at(*axes, i), rank, &axis)) return axis_outside(what, integer_at(*axes, i), rank);
    if (*set >> axis & 1) return invalid(std::string(what) + " names axis " + std::to_string(axis) + " twice");
    *set |= 1u << axis;
  }
  return {};
}

Status check_rank(size_t rank) {
  if (rank <= HEDDLE_MAX_RANK) return {};
  return invalid("the output would have " + std::to_string(rank) + " dimensions, at most " + std::to_string(HEDDLE_MAX_RANK) +
                 " are possible");
}

Status not_one_dimensional(const char* operand, Dims dims) {
  return invalid(std::string(operand) + " has shape " + dims_text(dims) + ", expected one dimension");
}

Status outside_range(const std::string& what, int64_t value, int64_t lower, int64_t upper) {
  return invalid(what + " " + std::to_string(value) + " is outside [" + std::to_string(lower) + ", " + std::to_string(upper) + "]");
}

Status index_outside(int64_t index, int64_t bound, int axis) {
  return invalid("index " + std::to_string(index) + " is outside [" + std::to_string(-bound) + ", " + std::to_string(bound - 1) +
                 "]: axis " + std::to_string(axis) + " has " + std::to_string(bound) + " elements");
}

}  // namespace heddle::operators

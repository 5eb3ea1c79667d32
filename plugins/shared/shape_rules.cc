#include "shared/shape_rules.h"

#include <algorithm>

#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"

namespace heddle::operators {

Status expand_extents(Dims from, const heddle_tensor& shape, Extents* to) {
  const int wanted = static_cast<int>(shape.element_count);
  for (int i = 0; i < wanted; ++i)
    if (integer_at(shape, i) < 0) return invalid("shape has the extent " + std::to_string(integer_at(shape, i)) + ", expected 0 or more");
  to->rank = std::max(from.rank, wanted);
  for (int i = 1; i <= to->rank; ++i) {  // from the last one on
    const int64_t have = i <= from.rank ? from[-i] : 1, want = i <= wanted ? integer_at(shape, wanted - i) : 1;
    if (have != want && have != 1 && want != 1)
      return invalid("input " + dims_text(from) + " does not broadcast to shape: dimension " + std::to_string(to->rank - i) + " is " +
                     std::to_string(have) + " and " + std::to_string(want));
    to->values[to->rank - i] = have == 1 ? want : have;
  }
  return {};
}

Status tile_extents(Dims from, const heddle_tensor& repeats, Extents* to) {
  for (int i = 0; i < from.rank; ++i) {
    int64_t dim = integer_at(repeats, i);
    if (dim < 0) return invalid("repeats has " + std::to_string(dim) + " for axis " + std::to_string(i) + ", expected 0 or more");
    if (__builtin_mul_overflow(dim, from[i], &dim)) return invalid("the extent of axis " + std::to_string(i) + " overflows");
    to->push(dim);
  }
  return {};
}

Status one_hot_extents(Dims indices, int axis, const heddle_tensor& operand, Extents* to) {
  const double depth = number_at(operand, 0);
  if (!(depth >= 0 && depth <= 4e18)) return invalid("depth is not a number of elements");
  for (int i = 0; i <= indices.rank; ++i) to->push(i == axis ? static_cast<int64_t>(depth) : indices[i < axis ? i : i - 1]);
  return {};
}

Status constant_extents(const heddle_tensor& shape, Extents* to) {
  for (int64_t i = 0; i < shape.element_count; ++i) {
    const int64_t dim = integer_at(shape, i);
    if (dim < 0) return invalid("the shape has the extent " + std::to_string(dim) + ", expected 0 or more");
    to->push(dim);
  }
  return {};
}

}  // namespace heddle::operators

#include "shared/extent_rules.h"

#include <algorithm>

#include "shared/axes.h"
#include "shared/dims.h"
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

Status reshape_extents(Dims from, const heddle_tensor* operand, bool keeps_zero, Extents* to) {
  int unknown = -1;
  int64_t known = 1;
  bool has_zero = false;
  for (int i = 0; i < static_cast<int>(operand->element_count); ++i) {
    int64_t dim = integer_at(*operand, i);
    if (dim == 0 && !keeps_zero) {
      if (i >= from.rank)
        return invalid("shape copies dimension " + std::to_string(i) + " of an input of rank " + std::to_string(from.rank));
      dim = from[i];
    } else if (dim == -1) {
      if (unknown >= 0) return invalid("shape has more than one -1");
      unknown = i;
      to->push(-1);
      continue;
    } else if (dim < 0) {
      return invalid("shape has the extent " + std::to_string(dim) + ", expected -1 or more");
    }
    to->push(dim);
    has_zero = has_zero || dim == 0;
    if (__builtin_mul_overflow(known, dim, &known)) return invalid("shape overflows at the extent " + std::to_string(dim));
  }
  const int64_t elements = from.count(0, from.rank);
  if (unknown >= 0) {
    if (keeps_zero && has_zero) return invalid("shape has both -1 and 0, which allowzero forbids");
    if (known == 0 ? elements != 0 : elements % known != 0)
      return invalid("cannot infer -1: " + std::to_string(elements) + " elements of " + dims_text(from) + " do not divide by " +
                     std::to_string(known));
    to->values[unknown] = known == 0 ? 0 : elements / known;
  } else if (known != elements) {
    return invalid("input " + dims_text(from) + " has " + std::to_string(elements) + " elements, shape " + dims_text(to->dims()) + " has " +
                   std::to_string(known));
  }
  return {};
}

Status squeeze_extents(Dims from, const heddle_tensor* axes, bool, Extents* to) {
  uint32_t set = 0;
  HEDDLE_PLUGIN_CHECK(axis_set("axes", axes, from.rank, &set));
  for (int i = 0; i < from.rank; ++i) {
    const bool named = set >> i & 1;
    if (named && from[i] != 1) return invalid("cannot squeeze axis " + std::to_string(i) + " of " + dims_text(from) + ": it is not 1");
    if (!named && (axes || from[i] != 1)) to->push(from[i]);
  }
  return {};
}

Status unsqueeze_extents(Dims from, const heddle_tensor* axes, bool, Extents* to) {
  const int rank = from.rank + static_cast<int>(axes->element_count);
  uint32_t set = 0;
  HEDDLE_PLUGIN_CHECK(axis_set("axes", axes, rank, &set));
  int next = 0;
  for (int i = 0; i < rank; ++i) to->push(set >> i & 1 ? 1 : from[next++]);
  return {};
}

}  // namespace heddle::operators

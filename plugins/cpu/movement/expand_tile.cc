// Expand and Tile: one tensor repeated along its dimensions.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// The input's extents broadcast together with `shape`.
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

Status infer_expand(InferContext& context) {
  const Dims from = context.dims(0), operand = context.dims(1);
  if (operand.rank != 1) return not_one_dimensional("shape", operand);
  const int rank = std::max(from.rank, static_cast<int>(std::min<int64_t>(operand[0], INT32_MAX)));
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(rank)));
  if (!context.known(1)) return context.set_dynamic(0, rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(expand_extents(from, context.input(1), &to));
  context.set_dims(0, to.dims());
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

Status infer_tile(InferContext& context) {
  const Dims from = context.dims(0), operand = context.dims(1);
  if (operand.rank != 1 || operand[0] != from.rank)
    return invalid("repeats has shape " + dims_text(operand) + ", expected [" + std::to_string(from.rank) + "]");
  if (!context.known(1)) return context.set_dynamic(0, from.rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(tile_extents(from, context.input(1), &to));
  context.set_dims(0, to.dims());
  return {};
}

struct ExpandRule {
  static constexpr const char* operand = "shape";
  static constexpr auto extents = expand_extents;
};
struct TileRule {
  static constexpr const char* operand = "repeats";
  static constexpr auto extents = tile_extents;
};

// Every dimension of the output is repetitions of a dimension of the input; what is missing in front counts as 1.
template <class Rule>
class Repeat : public CopyKernel {
 public:
  Status prepare(PrepareContext& context) {
    varies_ = varies(context, {1});
    const heddle_tensor &x = *context.input(0), &y = *context.output(0);
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    copy_ = StridedCopy(width);
    int64_t source = width, target = width;
    for (int i = y.rank - 1, j = x.rank - 1; i >= 0; --i, --j) {
      const int64_t extent = j >= 0 ? x.dims[j] : 1;
      copy_.add(extent, source, target);
      if (extent > 0) copy_.add(y.dims[i] / extent, 0, target * extent);
      source *= extent;
      target *= y.dims[i];
    }
    copy_.finish();
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{Rule::operand, context.inputs[1]}}, *context.outputs[0],
                                        [&](Extents* to) { return Rule::extents(dims_of(*context.inputs[0]), *context.inputs[1], to); }));
    return CopyKernel::run(context, begin, end);
  }

 private:
  bool varies_ = true;
};

}  // namespace

void add_expand_tile(Builder& plugin) {
  plugin.add(Op("Expand", "", 13)
                 .doc("the input broadcast together with shape")
                 .in("input")
                 .shape_operand("shape")
                 .out("output")
                 .infer(infer_expand)
                 .cpu<Repeat<ExpandRule>>()
                 .example("f32[3,1] = 1 2 3, i64[2] = 3 2 -> f32[3,2] = 1 1 2 2 3 3", "ONNX Runtime")
                 .example("i32[1,3] = 1 0 1, i64[3] = 2 1 3 -> i32[2,1,3] = 1 0 1 1 0 1", "ONNX Runtime"));
  plugin.add(Op("Tile", "", 13)
                 .doc("the input repeated along every axis")
                 .in("input")
                 .shape_operand("repeats")
                 .out("output")
                 .infer(infer_tile)
                 .cpu<Repeat<TileRule>>()
                 .example("f32[2,2] = 1 2 3 4, i64[2] = 1 2 -> f32[2,4] = 1 2 1 2 3 4 3 4", "ONNX Runtime")
                 .example("i32[3] = 1 0 1, i64[1] = 3 -> i32[9] = 1 0 1 1 0 1 1 0 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu

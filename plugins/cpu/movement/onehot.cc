// OneHot: for every index a line of `off` values along a new axis with one `on`; an index outside [-depth, depth) gives none.
#include <cmath>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/filling.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status infer_one_hot(InferContext& context) {
  const Dims indices = context.dims(0);
  if (context.input(1).element_count != 1)
    return invalid("depth has shape " + dims_text(context.dims(1)) + ", expected a scalar or one element");
  if (context.dims(2).rank != 1 || context.dims(2)[0] != 2)
    return invalid("values has shape " + dims_text(context.dims(2)) + ", expected [2]: off and on");
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), indices.rank + 1, &axis))
    return axis_outside("axis", context.attributes.i("axis"), indices.rank + 1);
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(indices.rank) + 1));
  if (!context.known(1)) return context.set_dynamic(0, indices.rank + 1), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(one_hot_extents(indices, axis, context.input(1), &to));
  context.set_dims(0, to.dims());
  return {};
}

class OneHot {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.output(0)->rank, &axis_);
    return {};
  }
  Status prepare(PrepareContext& context) {
    varies_ = varies(context, {1});
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  // Output [before, depth, after]; a tile is a range of `before`.
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &indices = *context.inputs[0], &values = *context.inputs[2], &y = *context.outputs[0];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{"depth", context.inputs[1]}}, y,
                                        [&](Extents* to) { return one_hot_extents(dims_of(indices), axis_, *context.inputs[1], to); }));
    const Dims dims = dims_of(y);
    const int64_t depth = dims[axis_], after = dims.count(axis_ + 1, dims.rank);
    const Tiling::Range range = tiling_.range(dims.count(0, axis_), begin, end);
    CancellationPoll poll(context);
    with_width(byte_width(y.dtype), [&](auto tag) {
      using W = typename decltype(tag)::type;
      const W *choice = static_cast<const W*>(values.data), off = choice[0], on = choice[1];
      W* data = static_cast<W*>(y.data) + range.first * depth * after;
      fill_elements(data, sizeof(W), &off, (range.last - range.first) * depth * after, poll);
      for (int64_t row = range.first; row < range.last; ++row, data += depth * after)
        for (int64_t i = 0; i < after && !poll.stops(4); ++i)
          if (const int64_t at = place(indices, row * after + i, depth); at >= 0) data[at * after + i] = on;
    });
    return poll.status();
  }

 private:
  // The position of index `i`; -1: it has none.
  static int64_t place(const heddle_tensor& indices, int64_t i, int64_t depth) {
    if (indices.dtype == HEDDLE_I32 || indices.dtype == HEDDLE_I64) {
      int64_t index = integer_at(indices, i);
      return resolve_index(&index, depth) ? index : -1;
    }
    const double wanted = std::trunc(number_at(indices, i));  // an index that is no integer is truncated first
    const double index = wanted < 0 ? wanted + static_cast<double>(depth) : wanted;
    return index >= 0 && index < static_cast<double>(depth) ? static_cast<int64_t>(index) : -1;
  }
  int axis_ = 0;
  bool varies_ = true;
  Tiling tiling_;
};

// The gradients of the two values: the sums of dY over the elements that have each value.
Status one_hot_gradient(GradientContext& g) {
  constexpr float is_on[] = {0, 1};
  const GradientValue choice = g.emit("CastLike", {g.constant(HEDDLE_F32, {2}, is_on), g.x(2)});
  const GradientValue on = g.emit("OneHot", {g.x(0), g.x(1), choice}, {g.same("axis")});
  const auto sum = [&](const char* program) {
    return reshape(g, g.emit("ReduceSum", {pointwise(g, program, {on, g.dy(0)})}), g.ints({1}));
  };
  g.give(2, g.emit("Concat", {sum("select(eq(x0, 0), x1, 0)"), sum("select(eq(x0, 0), 0, x1)")}, {{"axis", 0}}));
  return {};
}

}  // namespace

void add_onehot(Builder& plugin) {
  plugin.add(Op("OneHot", "", 11)
                 .doc("Writes an on-value at each index along a new axis of off-values. values holds both, the off-value first. Negative "
                      "indices count from the end; where an index is outside [-depth, depth) there are off-values alone.")
                 .shapes("output has the dims of indices, with extent depth inserted at axis")
                 .in("indices", numeric_dtypes, nullptr)
                 .not_differentiable()
                 .shape_operand("depth", numeric_dtypes)
                 .not_differentiable()
                 .in("values")
                 .out("output")
                 .attribute("axis", -1)
                 .infer(infer_one_hot)
                 .gradient<one_hot_gradient>()
                 .cpu<OneHot>()
                 .example("i64[3] = 0 -1 5, i64[] = 3, f32[2] = 1 5 -> f32[3,3] = 5 1 1 1 1 5 1 1 1", "ONNX Runtime")
                 .example("i64[3] = 0 -1 5, i64[] = 3, i32[2] = 1 5 -> i32[3,3] = 5 1 1 1 1 5 1 1 1", "the ONNX reference")
                 .example("i64[3] = 0 -1 5, i64[] = 3, u8[2] = 1 5 -> u8[3,3] = 5 1 1 1 1 5 1 1 1", "the ONNX reference")
                 .example("f32[4] = -0.5 1.5 -1.5 -2.5, f32[] = 2, f32[2] = 1 5 -> f32[4,2] = 5 1 1 5 1 5 5 1", "ONNX Runtime")
                 .example("f32[2] = 1 0, f32[1] = 2, f32[2] = 0.5 2; axis=0 -> f32[2,2] = 0.5 2 2 0.5", "ONNX Runtime")
                 .example_of_each(numeric_dtypes, "i64[2] = 1 0, $[] = 2, f32[2] = 0 1 -> f32[2,2] = 0 1 1 0", "by hand")
                 .example_of_each(any_dtype, "i64[2] = 1 0, i64[] = 2, $[2] = 0 1 -> $[2,2] = 0 1 1 0", "by hand"));
}

}  // namespace heddle::cpu

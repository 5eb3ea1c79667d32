// Expand and Tile: one tensor repeated along its dimensions.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/movement/boxes.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

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

// Every dimension of the output is a repetition of a dimension of the input; missing leading dimensions count as 1.
template <class Rule>
class Repeat : public CopyKernel {
 public:
  Status prepare(PrepareContext& context) {
    varies_ = varies(context, {1});
    const heddle_tensor& y = *context.output(0);
    copy_ = StridedCopy(repeated_box(*context.input(0), y));
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

// Reshapes each dimension to [repeats, extent], and sums over the first.
Status tile_gradient(GradientContext& g) {
  const int rank = g.input_type(0).rank;
  const GradientValue last = g.ints({1});
  const GradientValue repeats = g.emit("Unsqueeze", {g.x(1), last}), extents = g.emit("Unsqueeze", {shape_of(g, g.x(0)), last});
  const GradientValue pairs = reshape(g, g.emit("Concat", {repeats, extents}, {{"axis", 1}}), g.ints({-1}));
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(2 * i);
  if (2 * rank > HEDDLE_MAX_RANK)
    return unsupported("the gradient of Tile of more than " + std::to_string(HEDDLE_MAX_RANK / 2) + " dimensions");
  g.give(0, rank == 0 ? g.dy(0) : g.emit("ReduceSum", {reshape(g, g.dy(0), pairs), g.ints(axes)}, {{"keepdims", 0}}));
  return {};
}

}  // namespace

void add_expand_tile(Builder& plugin) {
  plugin.add(Op("Expand", "", 13)
                 .doc("Repeats a tensor along axes of extent 1, as broadcasting does.")
                 .shapes("output has the dims to which input and a tensor of dims `shape` broadcast")
                 .in("input")
                 .shape_operand("shape")
                 .out("output")
                 .infer(infer_expand)
                 .gradient("Shape", {"input"}, {"t0"})
                 .gradient("SumTo", {"doutput", "t0"}, {"dinput"}, "heddle")
                 .cpu<Repeat<ExpandRule>>()
                 .example("f32[3,1] = 1 2 3, i64[2] = 3 2 -> f32[3,2] = 1 1 2 2 3 3", "ONNX Runtime")
                 .example("i32[1,3] = 1 0 1, i64[3] = 2 1 3 -> i32[2,1,3] = 1 0 1 1 0 1", "ONNX Runtime"));
  plugin.add(Op("Tile", "", 13)
                 .doc("Repeats a tensor along each axis as often as repeats says.")
                 .shapes("output has for each axis the extent of input times its element of repeats")
                 .in("input")
                 .shape_operand("repeats")
                 .out("output")
                 .infer(infer_tile)
                 .gradient<tile_gradient>()
                 .cpu<Repeat<TileRule>>()
                 .example("f32[2,2] = 1 2 3 4, i64[2] = 1 2 -> f32[2,4] = 1 2 1 2 3 4 3 4", "ONNX Runtime")
                 .example("i32[3] = 1 0 1, i64[1] = 3 -> i32[9] = 1 0 1 1 0 1 1 0 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu

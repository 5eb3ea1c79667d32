// Reshape, Flatten, Squeeze, Unsqueeze, Identity, StopGradient, ZeroGradient: operators that keep every byte and change at most the dims.
// They are views: the compiler gives output and input the same bytes and runs nothing; the kernel copies where it could not.
#include <cstring>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t view_traits = HEDDLE_TRAIT_VIEW | HEDDLE_TRAIT_CHEAP;

class ViewCopy {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& y = *context.output(0);
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& x = *context.inputs[0];
    heddle_tensor& y = *context.outputs[0];
    if (x.data == y.data || y.byte_size == 0) return {};
    const Tiling::Range range = tiling_.range(static_cast<int64_t>(y.byte_size), begin, end);
    std::memcpy(static_cast<char*>(y.data) + range.first, static_cast<const char*>(x.data) + range.first,
                static_cast<size_t>(range.last - range.first));
    return {};
  }

 private:
  Tiling tiling_;
};

Status infer_reshape(InferContext& context) {
  const Dims operand = context.dims(1);
  if (operand.rank != 1) return not_one_dimensional("shape", operand);
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(operand[0])));
  if (!context.known(1)) return context.set_dynamic(0, static_cast<int>(operand[0])), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(reshape_extents(context.dims(0), &context.input(1), context.attributes.i("allowzero") != 0, &to));
  context.set_dims(0, to.dims());
  return {};
}

Status infer_flatten(InferContext& context) {
  const Dims from = context.dims(0);
  const int64_t axis = context.attributes.i("axis");
  if (axis < -from.rank || axis > from.rank)
    return invalid("axis is " + std::to_string(axis) + ", expected a number in [" + std::to_string(-from.rank) + ", " +
                   std::to_string(from.rank) + "]");
  const int split = static_cast<int>(axis < 0 ? axis + from.rank : axis);
  context.set_dims(0, std::vector<int64_t>{from.count(0, split), from.count(split, from.rank)});
  return {};
}

Status infer_squeeze(InferContext& context) {
  const Dims from = context.dims(0);
  if (context.has_input(1)) {
    const Dims operand = context.dims(1);
    if (operand.rank > 1) return not_one_dimensional("axes", operand);
    if (!context.known(1)) {
      const int64_t removed = operand.count(0, operand.rank);
      if (removed > from.rank) return invalid("axes has " + std::to_string(removed) + " entries for an input " + dims_text(from));
      return context.set_dynamic(0, from.rank - static_cast<int>(removed)), Status();
    }
  }
  Extents to;
  HEDDLE_PLUGIN_CHECK(squeeze_extents(from, context.has_input(1) ? &context.input(1) : nullptr, false, &to));
  context.set_dims(0, to.dims());
  return {};
}

Status infer_unsqueeze(InferContext& context) {
  const Dims from = context.dims(0);
  const Dims operand = context.dims(1);
  if (operand.rank > 1) return not_one_dimensional("axes", operand);
  const int64_t rank = from.rank + operand.count(0, operand.rank);
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(rank)));
  if (!context.known(1)) return context.set_dynamic(0, static_cast<int>(rank)), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(unsqueeze_extents(from, &context.input(1), false, &to));
  context.set_dims(0, to.dims());
  return {};
}

// A view whose extents input 1 decides. A run copies the bytes of the output, and only if the operand still gives the planned extents.
struct ReshapeRule {
  static constexpr const char* operand = "shape";
  static constexpr auto extents = reshape_extents;
};
struct SqueezeRule {
  static constexpr const char* operand = "axes";
  static constexpr auto extents = squeeze_extents;
};
struct UnsqueezeRule {
  static constexpr const char* operand = "axes";
  static constexpr auto extents = unsqueeze_extents;
};
template <class Rule>
class OperandView : public ViewCopy {
 public:
  Status create(const CreateContext& context) {
    keeps_zero_ = context.attributes.declares("allowzero") && context.attributes.i("allowzero") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    varies_ = varies(context, {1});
    return ViewCopy::prepare(context);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor* operand = context.input_count > 1 ? context.inputs[1] : nullptr;
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{Rule::operand, operand}}, *context.outputs[0],
                                        [&](Extents* to) { return Rule::extents(dims_of(*context.inputs[0]), operand, keeps_zero_, to); }));
    return ViewCopy::run(context, begin, end);
  }

 private:
  bool keeps_zero_ = false, varies_ = true;
};

Status shape_back(GradientContext& g) {
  g.give(0, reshape(g, g.dy(0), shape_of(g, g.x(0))));
  return {};
}

}  // namespace

void add_reshape(Builder& plugin) {
  plugin.add(Op("Reshape", "", 14)
                 .doc("Gives the same elements other dims. In shape, 0 takes an extent from data (with allowzero 1 it is 0), and one -1 "
                      "stands for what is left.")
                 .shapes("reshaped has the dims that shape holds")
                 .in("data")
                 .shape_operand("shape")
                 .out("reshaped")
                 .in_place("reshaped", "data")
                 .attribute("allowzero", 0)
                 .traits(view_traits)
                 .infer(infer_reshape)
                 .gradient<shape_back>()
                 .cpu<OperandView<ReshapeRule>>()
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 3 -1 -> f32[3,2] = 1 2 3 4 5 6", "ONNX Runtime")
                 .example("i32[2,1,2] = 1 0 0 1, i64[2] = 0 2 -> i32[2,2] = 1 0 0 1", "ONNX Runtime")
                 .example("f32[0,3], i64[2] = 3 0; allowzero=1 -> f32[3,0]", "ONNX Runtime"));
  plugin.add(Op("Flatten", "", 13)
                 .doc("Gives the same elements as a matrix.")
                 .shapes("output is [product of the dims before axis, product of the others]")
                 .in("input")
                 .out("output")
                 .in_place("output", "input")
                 .attribute("axis", 1)
                 .traits(view_traits)
                 .infer(infer_flatten)
                 .gradient<shape_back>()
                 .cpu<ViewCopy>()
                 .example("f32[2,1,3] = 1 2 3 4 5 6 -> f32[2,3] = 1 2 3 4 5 6", "ONNX Runtime")
                 .example("i32[2,2,1] = 1 0 0 1; axis=-1 -> i32[4,1] = 1 0 0 1", "ONNX Runtime"));
  plugin.add(Op("Squeeze", "", 13)
                 .doc("Removes axes of extent 1: those in axes, or all.")
                 .shapes("squeezed has the dims of data without these axes")
                 .in("data")
                 .shape_operand("axes", dtypes<int64_t>(), true)
                 .out("squeezed")
                 .in_place("squeezed", "data")
                 .traits(view_traits)
                 .infer(infer_squeeze)
                 .gradient<shape_back>()
                 .cpu<OperandView<SqueezeRule>>()
                 .example("f32[1,3,1] = 1 2 3 -> f32[3] = 1 2 3", "ONNX Runtime")
                 .example("i32[1,2,1] = 1 0, i64[1] = -1 -> i32[1,2] = 1 0", "ONNX Runtime"));
  plugin.add(Op("Unsqueeze", "", 13)
                 .doc("Inserts axes of extent 1, which axes numbers in the result.")
                 .shapes("expanded has the dims of data, with 1 at each of axes")
                 .in("data")
                 .shape_operand("axes")
                 .out("expanded")
                 .in_place("expanded", "data")
                 .traits(view_traits)
                 .infer(infer_unsqueeze)
                 .gradient<shape_back>()
                 .cpu<OperandView<UnsqueezeRule>>()
                 .example("f32[3] = 1 2 3, i64[2] = 0 -1 -> f32[1,3,1] = 1 2 3", "ONNX Runtime")
                 .example("i32[2,1] = 1 0, i64[1] = 1 -> i32[2,1,1] = 1 0", "ONNX Runtime"));
  plugin.add(Op("Identity", "", 16)
                 .doc("Gives the input.")
                 .formula("output = input")
                 .in("input")
                 .out("output", same_as("input"))
                 .in_place("output", "input")
                 .traits(view_traits)
                 .gradient("Identity", {"doutput"}, {"dinput"})
                 .cpu<ViewCopy>()
                 .example("f32[3] = 1 -2 3 -> f32[3] = 1 -2 3", "ONNX Runtime")
                 .example("i32[1,2] = 1 0 -> i32[1,2] = 1 0", "ONNX Runtime"));
  // Forward they are Identity; runtime/derive defines their gradients.
  const auto view = [](const char* name, const char* doc) {
    Op op(name, "heddle");
    op.doc(doc)
        .formula("output = input")
        .in("input")
        .not_differentiable()
        .out("output", same_as("input"))
        .in_place("output", "input")
        .traits(view_traits);
    op.cpu<ViewCopy>().example("f32[3] = 1 -2 3 -> f32[3] = 1 -2 3", "by hand");
    return op;
  };
  plugin.add(view("StopGradient", "Gives the input, and lets no gradient through."));
  plugin.add(view("ZeroGradient", "Gives the input, and a gradient of zeros to it, whether anything reads the output or not."));
}

}  // namespace heddle::cpu

// ConstantOfShape: one value, repeated.
#include <cstring>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/extent_rules.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/filling.h"

namespace heddle::cpu {
namespace {

Status infer_constant_of_shape(InferContext& context) {
  const heddle_tensor* value = context.attributes.tensor("value");
  if (value && value->element_count != 1) return invalid("value has " + std::to_string(value->element_count) + " elements, expected 1");
  context.set_dtype(0, value ? value->dtype : HEDDLE_F32);
  const Dims operand = context.dims(0);
  if (operand.rank != 1) return not_one_dimensional("input", operand);
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(operand[0])));
  if (!context.known(0)) return context.set_dynamic(0, static_cast<int>(operand[0])), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(0), &to));
  context.set_dims(0, to.dims());
  return {};
}

class ConstantOfShape {
 public:
  Status create(const CreateContext& context) {
    if (const heddle_tensor* value = context.attributes.tensor("value")) std::memcpy(&value_, value->data, value->byte_size);
    return {};
  }
  Status prepare(PrepareContext& context) {
    varies_ = varies(context, {0});
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& y = *context.outputs[0];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(
          check_planned({{"input", context.inputs[0]}}, y, [&](Extents* to) { return constant_extents(*context.inputs[0], to); }));
    const Tiling::Range range = tiling_.range(y.element_count, begin, end);
    const auto width = static_cast<int64_t>(byte_width(y.dtype));
    fill_elements(static_cast<char*>(y.data) + range.first * width, width, &value_, range.last - range.first);
    return {};
  }

 private:
  bool varies_ = true;
  uint64_t value_ = 0;  // the bytes of one element
  Tiling tiling_;
};

}  // namespace

void add_constant_of_shape(Builder& plugin) {
  plugin.add(Op("ConstantOfShape", "", 9)
                 .doc("Makes a tensor of one repeated value, which is 0 in f32 if none is given.")
                 .shapes("output has the dims that input holds")
                 .shape_operand("input")
                 .out("output", {}, any_dtype, nullptr)
                 .maybe("value", HEDDLE_ATTRIBUTE_TENSOR)
                 .traits(HEDDLE_TRAIT_CHEAP)
                 .infer(infer_constant_of_shape)
                 .cpu<ConstantOfShape>()
                 .example("i64[2] = 2 3 -> f32[2,3] = 0", "ONNX Runtime")
                 .example("i64[1] = 3; value=f32[1] = 2.5 -> f32[3] = 2.5", "ONNX Runtime")
                 .example("i64[2] = 2; value=i32[1] = -7 -> i32[2,2] = -7", "ONNX Runtime"));
}

}  // namespace heddle::cpu

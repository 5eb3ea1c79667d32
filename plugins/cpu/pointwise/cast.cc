// Cast and CastLike: conversion of every element to another dtype, with the rules of vector/convert.h.
#include <algorithm>

#include "families.h"
#include "shared/onnx_dtype.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

class Cast {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    tiling_.plan(context, static_cast<int64_t>(x.byte_size + context.output(0)->byte_size), 1.5);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& x = *context.inputs[0];
    const heddle_tensor& y = *context.outputs[0];
    const auto [first, last] = tiling_.range(x.element_count, begin, end);
    convert(x.dtype, static_cast<const char*>(x.data) + first * static_cast<int64_t>(byte_width(x.dtype)), y.dtype,
            static_cast<char*>(y.data) + first * static_cast<int64_t>(byte_width(y.dtype)), last - first);
    return {};
  }

 private:
  Tiling tiling_;
};

Status infer_cast(InferContext& context) {
  heddle_dtype to = HEDDLE_DTYPE_NONE;
  if (Status s = dtype_attribute(context.attributes, "to", &to); !s.ok()) return s;
  context.set_dtype(0, to);
  return {};
}
Status infer_cast_like(InferContext& context) {
  context.set_dtype(0, context.input(1).dtype);
  return {};
}

}  // namespace

void add_cast(Builder& plugin) {
  plugin.add(Op("Cast", "", 13)
                 .doc("Converts each element to the dtype `to`, which is a number of ONNX's TensorProto.DataType. A float becomes an "
                      "integer by truncation and saturation, NaN becomes 0; an integer wraps to a narrower one; a bool says whether the "
                      "number differs from 0. `saturate` is about 8-bit floats, which there are none of.")
                 .shapes("output has the dims of input")
                 .in("input", any_dtype, "T1")
                 .out("output", same_as("input"), any_dtype, nullptr)
                 .required("to", HEDDLE_ATTRIBUTE_INT)
                 .attribute("saturate", 1)
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_cast)
                 .gradient("CastLike", {"doutput", "input"}, {"dinput"})
                 .cpu<Cast>()
                 .example("f32[4] = 0 1.75 1 1.25; to=6 -> i32[4] = 0 1 1 1", "by hand")
                 .example("i32[3] = 0 1 1; to=16 -> bf16[3] = 0 1 1", "by hand")
                 .example("f32[3] = 0 1 1; to=9, saturate=0 -> bool[3] = 0 1 1", "by hand"));
  Op op("CastLike", "", 15);
  op.doc("Converts each element to the dtype of target_type, as Cast does.").shapes("output has the dims of input");
  op.in("input", any_dtype, "T1")
      .in("target_type", any_dtype, "T2")
      .not_differentiable()
      .out("output", same_as("input"), any_dtype, nullptr)
      .attribute("saturate", 1)
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .infer(infer_cast_like)
      .gradient("CastLike", {"doutput", "input"}, {"dinput"})
      .cpu<Cast>()
      .example("f32[4] = 0 1.75 1 1.25, i32[2] = 7 8; saturate=0 -> i32[4] = 0 1 1 1", "by hand");
  // The other dtypes of target_type.
  for (const char* text : {
           "f32[4] = 0 1 1 0, f16[1] = 1 -> f16[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, bf16[1] = 1 -> bf16[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, f32[1] = 1 -> f32[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, f64[1] = 1 -> f64[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, i8[1] = 1 -> i8[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, i16[1] = 1 -> i16[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, i64[1] = 1 -> i64[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, u8[1] = 1 -> u8[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, u16[1] = 1 -> u16[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, u32[1] = 1 -> u32[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, u64[1] = 1 -> u64[4] = 0 1 1 0",
           "f32[4] = 0 1 1 0, bool[1] = 1 -> bool[4] = 0 1 1 0",
       })
    op.example(text, "by hand");
  plugin.add(op);
}

}  // namespace heddle::cpu

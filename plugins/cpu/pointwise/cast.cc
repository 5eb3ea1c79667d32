// Cast and CastLike: conversion of every element to another dtype, as vector/convert.h says.
#include <algorithm>

#include "families.h"
#include "support/onnx_dtype.h"
#include "support/tiling.h"
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
                 .doc("float to integer truncates and saturates, NaN gives 0; integer to integer wraps; to bool: x != 0")
                 .in("input", any_dtype, "T1")
                 .out("output", same_as("input"), any_dtype, nullptr)
                 .required("to", HEDDLE_ATTRIBUTE_INT)
                 .attribute("saturate", 1)
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_cast)
                 .cpu<Cast>());
  plugin.add(Op("CastLike", "", 15)
                 .in("input", any_dtype, "T1")
                 .in("target_type", any_dtype, "T2")
                 .out("output", same_as("input"), any_dtype, nullptr)
                 .attribute("saturate", 1)
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_cast_like)
                 .cpu<Cast>());
}

}  // namespace heddle::cpu

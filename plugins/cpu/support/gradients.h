// Helpers from which the gradients of several operator families are built.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string>

#include "heddle/op.h"
#include "shared/onnx_dtype.h"

namespace heddle::cpu {

using plugin::GradientContext;
using plugin::GradientValue;

inline GradientValue shape_of(GradientContext& g, GradientValue value) {
  return g.emit("Shape", {value});
}
// Emits an expression of x0, x1, ... = the operands, which broadcast.
inline GradientValue pointwise(GradientContext& g, const std::string& program, std::initializer_list<GradientValue> operands) {
  return g.emit("Pointwise", operands, {{"program", program}}, "heddle");
}
// A number in the syntax of expressions, with all its bits.
inline std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}
inline GradientValue cast(GradientContext& g, GradientValue value, heddle_dtype dtype) {
  return g.emit("Cast", {value}, {{"to", operators::onnx_from_dtype(dtype)}});
}
// Emits zeros of the given extents, and of the dtype of `like`.
inline GradientValue zeros_of(GradientContext& g, GradientValue extents, GradientValue like) {
  return g.emit("CastLike", {g.emit("ConstantOfShape", {extents}), like});
}
inline GradientValue zeros_like(GradientContext& g, GradientValue value) {
  return zeros_of(g, shape_of(g, value), value);
}
// Emits zeros like input `i` of the forward operator; for f32 ConstantOfShape needs no cast.
inline GradientValue zeros_like_input(GradientContext& g, uint32_t i) {
  const GradientValue extents = shape_of(g, g.x(i));
  return g.input_type(i).dtype == HEDDLE_F32 ? g.emit("ConstantOfShape", {extents}) : zeros_of(g, extents, g.x(i));
}
// `value` summed to the shape of `like`, which was broadcast.
inline GradientValue sum_to(GradientContext& g, GradientValue value, GradientValue like) {
  return g.emit("SumTo", {value, shape_of(g, like)}, {}, "heddle");
}
// Emits `value` with another shape.
inline GradientValue reshape(GradientContext& g, GradientValue value, GradientValue shape) {
  return g.emit("Reshape", {value, shape}, {{"allowzero", 1}});
}

}  // namespace heddle::cpu

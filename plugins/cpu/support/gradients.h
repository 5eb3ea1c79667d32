// What the gradients of several operator families are built from.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string>

#include "heddle/op.h"

namespace heddle::cpu {

using plugin::GradientContext;
using plugin::GradientValue;

inline GradientValue shape_of(GradientContext& g, GradientValue value) {
  return g.emit("Shape", {value});
}
// An expression of x0, x1, ... = the operands, which broadcast.
inline GradientValue pointwise(GradientContext& g, const std::string& program, std::initializer_list<GradientValue> operands) {
  return g.emit("Pointwise", operands, {{"program", program}}, "heddle");
}
// A number as expressions have it, with all its bits.
inline std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}
inline GradientValue zeros_like(GradientContext& g, GradientValue value) {
  return g.emit("CastLike", {g.emit("ConstantOfShape", {shape_of(g, value)}), value});
}
// `value` summed to the shape of `like`, which was broadcast.
inline GradientValue sum_to(GradientContext& g, GradientValue value, GradientValue like) {
  return g.emit("SumTo", {value, shape_of(g, like)}, {}, "heddle");
}
// Under another shape.
inline GradientValue reshape(GradientContext& g, GradientValue value, GradientValue shape) {
  return g.emit("Reshape", {value, shape}, {{"allowzero", 1}});
}

}  // namespace heddle::cpu

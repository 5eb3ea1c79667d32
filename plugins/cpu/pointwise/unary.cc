// Operators of one input whose value is a mathematical function of it: Abs ... Tanh.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {

void add_unary(Builder& plugin) {
  plugin.add(unary_operator("Abs", 13, "abs(X)", numeric_dtypes).gradient("Sign", {"X"}, {"t0"}).gradient("Mul", {"dY", "t0"}, {"dX"}));
  plugin.add(unary_operator("Neg", 13, "-X", signed_dtypes).gradient("Neg", {"dY"}, {"dX"}));
  plugin.add(unary_operator("Sign", 13, "sign(input)", numeric_dtypes, "input", "output"));
  plugin.add(unary_operator("Reciprocal", 13, "reciprocal(X)", float_dtypes));
  plugin.add(unary_operator("Ceil", 13, "ceil(X)", float_dtypes));
  plugin.add(unary_operator("Floor", 13, "floor(X)", float_dtypes));
  plugin.add(unary_operator("Round", 11, "round(X)", float_dtypes).doc("to the nearest integer, halves to even"));
  plugin.add(unary_operator("Sqrt", 13, "sqrt(X)", float_dtypes));
  plugin.add(unary_operator("Exp", 13, "exp(input)", float_dtypes, "input", "output").gradient("Mul", {"doutput", "output"}, {"dinput"}));
  plugin.add(unary_operator("Log", 13, "log(input)", float_dtypes, "input", "output").gradient("Div", {"doutput", "input"}, {"dinput"}));
  plugin.add(unary_operator("Erf", 13, "erf(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Tanh", 13, "tanh(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Sin", 7, "sin(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Cos", 7, "cos(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Tan", 7, "tan(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Asin", 7, "asin(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Acos", 7, "acos(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Atan", 7, "atan(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Sinh", 9, "sinh(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Cosh", 9, "cosh(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Asinh", 9, "asinh(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Acosh", 9, "acosh(input)", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Atanh", 9, "atanh(input)", float_dtypes, "input", "output"));
}

}  // namespace heddle::cpu

// Operators of one input whose value is a mathematical function of it: Abs ... Tanh.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {

namespace {

void declare_trigonometric(Builder& plugin) {
  plugin.add(unary_operator("Sin", 7, "sin(input)", float_dtypes, "input", "output")
                 .doc("Computes the sine of each element, which is an angle in radians.")
                 .example("f32[4] = -1 0 0.5 2 -> f32[4] = -0.841471 0 0.4794255 0.9092974", "NumPy: np.sin"));
  plugin.add(unary_operator("Cos", 7, "cos(input)", float_dtypes, "input", "output")
                 .doc("Computes the cosine of each element, which is an angle in radians.")
                 .example("f32[4] = -1 0 0.5 2 -> f32[4] = 0.5403023 1 0.8775826 -0.4161468", "NumPy: np.cos"));
  plugin.add(unary_operator("Tan", 7, "tan(input)", float_dtypes, "input", "output")
                 .doc("Computes the tangent of each element, which is an angle in radians.")
                 .example("f32[4] = -1 0 0.5 2 -> f32[4] = -1.557408 0 0.5463025 -2.18504", "NumPy: np.tan"));
  plugin.add(unary_operator("Asin", 7, "asin(input)", float_dtypes, "input", "output")
                 .doc("Computes the arcsine of each element, in radians.")
                 .example("f32[5] = -1 -0.5 0 0.5 1 -> f32[5] = -1.570796 -0.5235988 0 0.5235988 1.570796", "NumPy: np.arcsin"));
  plugin.add(unary_operator("Acos", 7, "acos(input)", float_dtypes, "input", "output")
                 .doc("Computes the arccosine of each element, in radians.")
                 .example("f32[5] = -1 -0.5 0 0.5 1 -> f32[5] = 3.141593 2.094395 1.570796 1.047198 0", "NumPy: np.arccos"));
  plugin.add(unary_operator("Atan", 7, "atan(input)", float_dtypes, "input", "output")
                 .doc("Computes the arctangent of each element, in radians.")
                 .example("f32[5] = -2 -0.5 0 0.5 1 -> f32[5] = -1.107149 -0.4636476 0 0.4636476 0.7853982", "NumPy: np.arctan"));
  plugin.add(unary_operator("Sinh", 9, "sinh(input)", float_dtypes, "input", "output")
                 .doc("Computes the hyperbolic sine of each element.")
                 .example("f32[5] = -2 -0.5 0 0.5 1 -> f32[5] = -3.62686 -0.5210953 0 0.5210953 1.175201", "NumPy: np.sinh"));
  plugin.add(unary_operator("Cosh", 9, "cosh(input)", float_dtypes, "input", "output")
                 .doc("Computes the hyperbolic cosine of each element.")
                 .example("f32[5] = -2 -0.5 0 0.5 1 -> f32[5] = 3.762196 1.127626 1 1.127626 1.543081", "NumPy: np.cosh"));
  plugin.add(unary_operator("Asinh", 9, "asinh(input)", float_dtypes, "input", "output")
                 .doc("Computes the inverse hyperbolic sine of each element.")
                 .example("f32[5] = -2 -0.5 0 0.5 1 -> f32[5] = -1.443635 -0.4812118 0 0.4812118 0.8813736", "NumPy: np.arcsinh"));
  plugin.add(unary_operator("Acosh", 9, "acosh(input)", float_dtypes, "input", "output")
                 .doc("Computes the inverse hyperbolic cosine of each element.")
                 .example("f32[4] = 1 1.5 2 10 -> f32[4] = 0 0.9624237 1.316958 2.993223", "NumPy: np.arccosh"));
  plugin.add(unary_operator("Atanh", 9, "atanh(input)", float_dtypes, "input", "output")
                 .doc("Computes the inverse hyperbolic tangent of each element.")
                 .example("f32[4] = -0.75 -0.5 0 0.5 -> f32[4] = -0.9729551 -0.5493061 0 0.5493061", "NumPy: np.arctanh"));
}

}  // namespace

void add_unary(Builder& plugin) {
  plugin.add(unary_operator("Abs", 13, "abs(X)", numeric_dtypes)
                 .doc("Computes the absolute value of each element.")
                 .gradient("Sign", {"X"}, {"t0"})
                 .gradient("Mul", {"dY", "t0"}, {"dX"})
                 .example("f32[4] = -2.5 -0.5 0 1.5 -> f32[4] = 2.5 0.5 0 1.5", "NumPy: np.abs")
                 .example("i32[3] = 0 1 7 -> i32[3] = 0 1 7", "NumPy: np.abs"));
  plugin.add(unary_operator("Neg", 13, "-X", signed_dtypes)
                 .doc("Negates each element.")
                 .gradient("Neg", {"dY"}, {"dX"})
                 .example("f32[3] = -2.5 0 1.5 -> f32[3] = 2.5 -0 -1.5", "NumPy: np.negative")
                 .example("i32[3] = -3 0 5 -> i32[3] = 3 0 -5", "NumPy: np.negative"));
  plugin.add(unary_operator("Sign", 13, "sign(input)", numeric_dtypes, "input", "output")
                 .doc("Gives the sign of each element: -1, 0 or 1.")
                 .example("f32[3] = -2.5 0 1.5 -> f32[3] = -1 0 1", "NumPy: np.sign")
                 .example("i32[3] = -3 0 5 -> i32[3] = -1 0 1", "NumPy: np.sign"));
  plugin.add(unary_operator("Reciprocal", 13, "reciprocal(X)", float_dtypes)
                 .doc("Computes one divided by each element.")
                 .formula("Y = 1 / X")
                 .example("f32[3] = -2 0.5 4 -> f32[3] = -0.5 2 0.25", "NumPy: np.reciprocal"));
  plugin.add(unary_operator("Ceil", 13, "ceil(X)", float_dtypes)
                 .doc("Rounds each element up to an integer.")
                 .example("f32[4] = -1.5 -0.25 0.25 2 -> f32[4] = -1 -0 1 2", "NumPy: np.ceil"));
  plugin.add(unary_operator("Floor", 13, "floor(X)", float_dtypes)
                 .doc("Rounds each element down to an integer.")
                 .example("f32[4] = -1.5 -0.25 0.25 2 -> f32[4] = -2 -1 0 2", "NumPy: np.floor"));
  plugin.add(unary_operator("Round", 11, "round(X)", float_dtypes)
                 .doc("Rounds each element to the nearest integer. Halves are rounded to the even one of the two.")
                 .example("f32[6] = -2.5 -0.75 0.5 1.25 1.5 2.5 -> f32[6] = -2 -1 0 1 2 2", "NumPy: np.round"));
  plugin.add(unary_operator("Sqrt", 13, "sqrt(X)", float_dtypes)
                 .doc("Computes the square root of each element. That of a negative number is NaN.")
                 .example("f32[4] = 0 0.25 2 9 -> f32[4] = 0 0.5 1.414214 3", "NumPy: np.sqrt"));
  plugin.add(unary_operator("Exp", 13, "exp(input)", float_dtypes, "input", "output")
                 .doc("Computes e to the power of each element.")
                 .gradient("Mul", {"doutput", "output"}, {"dinput"})
                 .example("f32[5] = -inf -1 0 0.5 2 -> f32[5] = 0 0.3678794 1 1.648721 7.389056", "NumPy: np.exp"));
  plugin.add(unary_operator("Log", 13, "log(input)", float_dtypes, "input", "output")
                 .doc("Computes the natural logarithm of each element. That of a negative number is NaN, that of 0 is -inf.")
                 .gradient("Div", {"doutput", "input"}, {"dinput"})
                 .example("f32[4] = 0.5 1 2 10 -> f32[4] = -0.6931472 0 0.6931472 2.302585", "NumPy: np.log"));
  plugin.add(unary_operator("Erf", 13, "erf(input)", float_dtypes, "input", "output")
                 .doc("Computes the Gauss error function of each element.")
                 .example("f32[5] = -1 -0.5 0 0.25 2 -> f32[5] = -0.8427008 -0.5204999 0 0.2763264 0.9953223", "SciPy: special.erf"));
  plugin.add(unary_operator("Tanh", 13, "tanh(input)", float_dtypes, "input", "output")
                 .doc("Computes the hyperbolic tangent of each element.")
                 .example("f32[5] = -2 -0.5 0 0.5 1 -> f32[5] = -0.9640276 -0.4621172 0 0.4621172 0.7615942", "NumPy: np.tanh"));
  declare_trigonometric(plugin);
}

}  // namespace heddle::cpu

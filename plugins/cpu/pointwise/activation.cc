// Activations: Relu and its relatives. Formulas from the ONNX operator specification, arranged so that nothing overflows on the way.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {
namespace {

// At a bound the derivative by the input is 0 (PyTorch 2.15: clamp_backward). For the pair of two bounds the derivative's own convention
// gives that; one bound alone would be Max or Min, where equal operands get half each, so select() takes the bound first.
constexpr const char* clip_expression =
    "one = select(has_min, select(le(input, min), min, max(input, min)),"
    "             select(has_max, select(ge(input, max), max, min(input, max)), input));"
    "select(has_min, select(has_max, min(max(input, min), max), one), one)";
constexpr const char* gelu_expression =
    "select(approximate_is_tanh,"
    "       0.5 * X * (1 + tanh(0.7978845608028654 * (X + 0.044715 * X * X * X))),"
    "       0.5 * X * (1 + erf(0.7071067811865476 * X)))";

Status infer_clip(InferContext& context) {
  for (uint32_t i = 1; i < context.input_count(); ++i)
    if (context.has_input(i) && (context.input(i).element_count != 1 || context.dims(i).rank > context.dims(0).rank))
      return invalid(std::string(i == 1 ? "min" : "max") + " has shape " + dims_text(context.dims(i)) + ", expected a scalar");
  return {};
}

}  // namespace

void add_activation(Builder& plugin) {
  plugin.add(unary_operator("Relu", 14, "max(X, 0)", signed_dtypes)
                 .doc("Replaces negative elements by 0.")
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = 0 0 0 0.5 3", "NumPy: np.maximum(x, 0)")
                 .example("i32[3] = -3 0 5 -> i32[3] = 0 0 5", "NumPy: np.maximum(x, 0)"));
  plugin.add(unary_operator("LeakyRelu", 16, "select(gt(X, 0), X, alpha * X)", float_dtypes)
                 .doc("Keeps positive elements and multiplies the others with alpha.")
                 .formula("Y = X where X > 0, else alpha X")
                 .attribute("alpha", 0.01)
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.02 -0.005 0 0.5 3", "NumPy: np.where(x < 0, alpha * x, x)")
                 .example("f32[5] = -2 -0.5 0 0.5 3; alpha=0.25 -> f32[5] = -0.5 -0.125 0 0.5 3", "NumPy: np.where(x < 0, alpha * x, x)"));
  plugin.add(Op("PRelu", "", 16)
                 .doc("Multiplies negative elements with slope, which is learned and broadcasts to X, and keeps the others.")
                 .formula("Y = X where X >= 0, else slope X")
                 .shapes("Y has the dims of X, to which slope broadcasts")
                 .in("X", numeric_dtypes)
                 .in("slope", numeric_dtypes)
                 .out("Y", broadcast(), numeric_dtypes)
                 .in_place("Y", "X")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .pointwise("select(lt(X, 0), slope * X, X)")
                 .example("f32[2,3] = -2 -0.5 0 1 -4 3, f32[3] = 0.5 0.25 2 -> f32[2,3] = -1 -0.125 0 1 -1 3",
                          "NumPy: np.where(x < 0, slope * x, x)")
                 .example("i32[3] = -4 0 3, i32[] = 2 -> i32[3] = -8 0 3", "NumPy: np.where(x < 0, slope * x, x)"));
  plugin.add(
      unary_operator("Elu", 6, "select(gt(X, 0), X, alpha * expm1(X))", float_dtypes)
          .doc("Computes the exponential linear unit (Clevert et al. 2015).")
          .formula("Y = X where X > 0, else alpha (exp(X) - 1)")
          .attribute("alpha", 1.0)
          .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.8646647 -0.3934693 0 0.5 3", "NumPy: np.where(x > 0, x, alpha * np.expm1(x))")
          .example("f32[5] = -2 -0.5 0 0.5 3; alpha=0.5 -> f32[5] = -0.4323324 -0.1967347 0 0.5 3",
                   "NumPy: np.where(x > 0, x, alpha * np.expm1(x))"));
  plugin.add(unary_operator("Celu", 12, "select(gt(X, 0), X, alpha * expm1(X / alpha))", float_dtypes)
                 .doc("Computes the continuously differentiable exponential linear unit (Barron 2017).")
                 .formula("Y = max(0, X) + min(0, alpha (exp(X / alpha) - 1))")
                 .attribute("alpha", 1.0)
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.8646647 -0.3934693 0 0.5 3",
                          "NumPy: np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)")
                 .example("f32[5] = -2 -0.5 0 0.5 3; alpha=2 -> f32[5] = -1.264241 -0.4423984 0 0.5 3",
                          "NumPy: np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)"));
  plugin.add(unary_operator("Selu", 6, "gamma * select(gt(X, 0), X, alpha * expm1(X))", float_dtypes)
                 .doc("Computes the scaled exponential linear unit (Klambauer et al. 2017).")
                 .formula("Y = gamma X where X > 0, else gamma alpha (exp(X) - 1)")
                 .attribute("alpha", 1.67326319217681884765625)
                 .attribute("gamma", 1.05070102214813232421875)
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -1.520166 -0.6917582 0 0.5253505 3.152103",
                          "NumPy: gamma * np.where(x > 0, x, alpha * np.expm1(x))")
                 .example("f32[5] = -2 -0.5 0 0.5 3; alpha=2, gamma=0.5 -> f32[5] = -0.8646647 -0.3934693 0 0.25 1.5",
                          "NumPy: gamma * np.where(x > 0, x, alpha * np.expm1(x))"));
  plugin.add(unary_operator("ThresholdedRelu", 10, "select(gt(X, alpha), X, 0)", float_dtypes)
                 .doc("Replaces elements that are not greater than alpha by 0.")
                 .formula("Y = X where X > alpha, else 0")
                 .attribute("alpha", 1.0)
                 .example("f32[5] = -2 0.5 1 1.5 3 -> f32[5] = 0 0 0 1.5 3", "NumPy: np.where(x > alpha, x, 0)")
                 .example("f32[4] = -2 0.25 0.5 3; alpha=0.25 -> f32[4] = 0 0 0.5 3", "NumPy: np.where(x > alpha, x, 0)"));
  plugin.add(unary_operator("Shrink", 9, "select(lt(input, -lambd), input + bias, select(gt(input, lambd), input - bias, 0))", float_dtypes,
                            "input", "output")
                 .doc("Moves elements toward 0 by bias where their magnitude is greater than lambd, and replaces the others by 0.")
                 .formula("Y = X + bias where X < -lambd, X - bias where X > lambd, else 0")
                 .attribute("bias", 0.0)
                 .attribute("lambd", 0.5)
                 .example("f32[5] = -2 -0.5 0.25 0.5 3 -> f32[5] = -2 0 0 0 3",
                          "NumPy: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))")
                 .example("f32[5] = -2 -1 0.5 1.5 3; bias=0.25, lambd=1 -> f32[5] = -1.75 0 0 1.25 2.75",
                          "NumPy: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))"));
  plugin.add(unary_operator("Sigmoid", 13, "sigmoid(X)", float_dtypes)
                 .doc("Computes the logistic function.")
                 .formula("Y = 1 / (1 + exp(-X))")
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = 0.1192029 0.3775407 0.5 0.6224593 0.9525741", "SciPy: special.expit"));
  // These are choices, not min and max: the derivative at the knots is 0, that of a clamp is 1 there (PyTorch: hardsigmoid_backward,
  // hardswish_backward).
  plugin.add(unary_operator("HardSigmoid", 6, "t = alpha * X + beta; select(le(t, 0), 0, select(ge(t, 1), 1, t))", float_dtypes)
                 .doc("Computes a piecewise linear sigmoid.")
                 .formula("Y = max(0, min(1, alpha X + beta))")
                 .attribute("alpha", 0.2)
                 .attribute("beta", 0.5)
                 .example("f32[5] = -4 -1 0 2 3 -> f32[5] = 0 0.3 0.5 0.9 1", "NumPy: np.clip(alpha * x + beta, 0, 1)")
                 .example("f32[5] = -4 -0.25 0 1 3; alpha=0.5, beta=0.25 -> f32[5] = 0 0.125 0.25 0.75 1",
                          "NumPy: np.clip(alpha * x + beta, 0, 1)"));
  plugin.add(unary_operator("HardSwish", 14, "t = X / 6 + 0.5; X * select(le(t, 0), 0, select(ge(t, 1), 1, t))", float_dtypes)
                 .doc("Multiplies each element with a piecewise linear sigmoid of it (Howard et al. 2019).")
                 .formula("Y = X max(0, min(1, X / 6 + 1/2))")
                 .example("f32[6] = -4 -1.5 0 1.5 3 4 -> f32[6] = -0 -0.375 0 1.125 3 4", "NumPy: x * np.clip(x / 6 + 0.5, 0, 1)"));
  plugin.add(
      unary_operator("Swish", 24, "X * sigmoid(alpha * X)", float_dtypes)
          .doc("Multiplies each element with the logistic function of alpha times it (Ramachandran et al. 2017).")
          .formula("Y = X / (1 + exp(-alpha X))")
          .attribute("alpha", 1.0)
          .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.2384058 -0.1887703 0 0.3112297 2.857722", "SciPy: x * special.expit(alpha * x)")
          .example("f32[5] = -2 -0.5 0 0.5 3; alpha=2 -> f32[5] = -0.03597242 -0.1344707 0 0.3655293 2.992582",
                   "SciPy: x * special.expit(alpha * x)"));
  plugin.add(unary_operator("Softplus", 1, "max(X, 0) + log1p(exp(-abs(X)))", float_dtypes)
                 .doc("Computes a smooth form of Relu.")
                 .formula("Y = ln(1 + exp(X))")
                 .example("f32[6] = -2 -0.5 0 0.5 3 100 -> f32[6] = 0.126928 0.474077 0.6931472 0.974077 3.048587 100",
                          "NumPy: np.logaddexp(0, x)"));
  plugin.add(unary_operator("Softsign", 1, "input / (1 + abs(input))", float_dtypes, "input", "output")
                 .doc("Divides each element by one plus its magnitude.")
                 .formula("output = input / (1 + |input|)")
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.6666667 -0.3333333 0 0.3333333 0.75", "NumPy: x / (1 + np.abs(x))"));
  plugin.add(unary_operator("Mish", 18, "X * tanh(max(X, 0) + log1p(exp(-abs(X))))", float_dtypes)
                 .doc("Multiplies each element with the hyperbolic tangent of its softplus (Misra 2019).")
                 .formula("Y = X tanh(ln(1 + exp(X)))")
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.2525015 -0.2207438 0 0.3752452 2.986535",
                          "NumPy: x * np.tanh(np.logaddexp(0, x))"));
  plugin.add(unary_operator("Gelu", 20, gelu_expression, float_dtypes)
                 .doc("Computes the Gaussian error linear unit (Hendrycks and Gimpel 2016), exactly or, with approximate=\"tanh\", by its "
                      "approximation.")
                 .formula("Y = X / 2 (1 + erf(X / sqrt(2))), or X / 2 (1 + tanh(sqrt(2 / pi) (X + 0.044715 X^3)))")
                 .attribute("approximate", "none")
                 .cpu<ExpressionKernel>()
                 .equals_pointwise()
                 .example("f32[5] = -2 -0.5 0 0.5 3 -> f32[5] = -0.04550026 -0.1542688 0 0.3457312 2.99595",
                          "SciPy: x / 2 * special.erfc(-x / np.sqrt(2))")
                 .example("f32[5] = -2 -0.5 0 0.5 3; approximate=\"tanh\" -> f32[5] = -0.04540231 -0.154286 0 0.345714 2.996363",
                          "NumPy: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))"));
  plugin.add(Op("Clip", "", 13)
                 .doc("Limits each element to the range from min to max. An input that is absent limits nothing.")
                 .formula("output = min(max(input, min), max)")
                 .shapes("output has the dims of input; min and max are one number each")
                 .in("input", numeric_dtypes)
                 .optional("min", numeric_dtypes)
                 .optional("max", numeric_dtypes)
                 .out("output", same_as("input"), numeric_dtypes)
                 .in_place("output", "input")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_clip)
                 .pointwise(clip_expression)
                 .cpu<ExpressionKernel>()
                 .equals_pointwise()
                 .example("f32[5] = -2 -0.5 0.25 1 3, f32[] = -1, f32[] = 0.5 -> f32[5] = -1 -0.5 0.25 0.5 0.5", "NumPy: np.clip")
                 .example("f32[5] = -2 -0.5 0.25 1 3, -, f32[] = 1 -> f32[5] = -2 -0.5 0.25 1 1", "NumPy: np.clip")
                 .example("i32[4] = 0 2 5 9, i32[] = 3 -> i32[4] = 3 3 5 9", "NumPy: np.clip"));
}

}  // namespace heddle::cpu

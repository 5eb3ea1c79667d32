// Activations: Relu and its relatives. Formulas from the ONNX operator specification, arranged so that nothing overflows on the way.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {
namespace {

constexpr const char* clip_expression =
    "lower = select(has_min, max(input, min), input);"
    "select(has_max, min(lower, max), lower)";
constexpr const char* gelu_expression =
    "select(approximate_is_tanh,"
    "       0.5 * X * (1 + tanh(0.7978845608028654 * (X + 0.044715 * X * X * X))),"
    "       0.5 * X * (1 + erf(0.7071067811865476 * X)))";

Status infer_clip(InferContext& context) {
  for (uint32_t i = 1; i < context.input_count(); ++i)
    if (context.has_input(i) && context.input(i).element_count != 1)
      return invalid(std::string(i == 1 ? "min" : "max") + " has shape " + dims_text(context.dims(i)) + ", expected a scalar");
  return {};
}

}  // namespace

void add_activation(Builder& plugin) {
  plugin.add(unary_operator("Relu", 14, "max(X, 0)", signed_dtypes));
  plugin.add(unary_operator("LeakyRelu", 16, "select(lt(X, 0), alpha * X, X)", float_dtypes).attribute("alpha", 0.01));
  plugin.add(Op("PRelu", "", 16)
                 .in("X", numeric_dtypes)
                 .in("slope", numeric_dtypes)
                 .out("Y", broadcast(), numeric_dtypes)
                 .in_place("Y", "X")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .pointwise("select(lt(X, 0), slope * X, X)"));
  plugin.add(unary_operator("Elu", 6, "select(gt(X, 0), X, alpha * expm1(X))", float_dtypes).attribute("alpha", 1.0));
  plugin.add(unary_operator("Celu", 12, "max(X, 0) + min(alpha * expm1(X / alpha), 0)", float_dtypes).attribute("alpha", 1.0));
  plugin.add(unary_operator("Selu", 6, "gamma * select(gt(X, 0), X, alpha * expm1(X))", float_dtypes)
                 .attribute("alpha", 1.67326319217681884765625)
                 .attribute("gamma", 1.05070102214813232421875));
  plugin.add(unary_operator("ThresholdedRelu", 10, "select(gt(X, alpha), X, 0)", float_dtypes).attribute("alpha", 1.0));
  plugin.add(unary_operator("Shrink", 9, "select(lt(input, -lambd), input + bias, select(gt(input, lambd), input - bias, 0))", float_dtypes,
                            "input", "output")
                 .attribute("bias", 0.0)
                 .attribute("lambd", 0.5));
  plugin.add(unary_operator("Sigmoid", 13, "sigmoid(X)", float_dtypes));
  plugin.add(
      unary_operator("HardSigmoid", 6, "max(min(alpha * X + beta, 1), 0)", float_dtypes).attribute("alpha", 0.2).attribute("beta", 0.5));
  plugin.add(unary_operator("HardSwish", 14, "X * max(min(X / 6 + 0.5, 1), 0)", float_dtypes));
  plugin.add(unary_operator("Swish", 24, "X * sigmoid(alpha * X)", float_dtypes).attribute("alpha", 1.0));
  plugin.add(unary_operator("Softplus", 1, "max(X, 0) + log1p(exp(-abs(X)))", float_dtypes));
  plugin.add(unary_operator("Softsign", 1, "input / (1 + abs(input))", float_dtypes, "input", "output"));
  plugin.add(unary_operator("Mish", 18, "X * tanh(max(X, 0) + log1p(exp(-abs(X))))", float_dtypes));
  plugin.add(unary_operator("Gelu", 20, gelu_expression, float_dtypes)
                 .attribute("approximate", "none")
                 .cpu<ExpressionKernel>()
                 .equals_pointwise());
  plugin.add(Op("Clip", "", 13)
                 .in("input", numeric_dtypes)
                 .optional("min", numeric_dtypes)
                 .optional("max", numeric_dtypes)
                 .out("output", same_as("input"), numeric_dtypes)
                 .in_place("output", "input")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_clip)
                 .pointwise(clip_expression)
                 .cpu<ExpressionKernel>()
                 .equals_pointwise());
}

}  // namespace heddle::cpu

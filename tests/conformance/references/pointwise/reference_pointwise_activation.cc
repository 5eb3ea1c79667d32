// Activations: Relu and its relatives, by the formulas of the ONNX operator specification.
#include <cmath>

#include "conformance/cases/pointwise_cases.h"
#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_pointwise_activation {
namespace {

// A result, and the magnitude that its rounding error is relative to if that is not the result.
struct Term {
  Number value, scale = 0;
};
using Activation = std::function<Term(Number)>;

// Returns the reference that applies the activation of the call's attributes to each element.
Reference of_elements(const std::function<Activation(const Call&)>& made) {
  return [made](const Call& c) {
    const Activation f = made(c);
    Numbers result = zeros(c[0].dtype, c[0].shape);
    for (const Number x : c[0].values) result.scale.push_back(f(x).scale);
    for (size_t i = 0; i < result.values.size(); ++i) result.values[i] = f(c[0].values[i]).value;
    return std::vector{result};
  };
}

// Returns all shapes without attributes, and for each of the lists of attributes a few, one of them large.
Cases calls(const std::string& range, const Names& attributes) {
  Cases cases = joined({one_input_cases(range), over_special(Kind::odd, "T[18] = SPECIAL"),
                        each(float_names, Kind::odd, "T[9] = -3 -2 -1 -0.5 -0.25 0.25 0.5 1 3")});
  for (const std::string& given : attributes) {
    const std::string end = "; " + given;
    cases = joined({cases, over_special(Kind::odd, "T[18] = SPECIAL" + end),
                    each(float_names, Kind::odd, "T[9] = -3 -2 -1 -0.5 -0.25 0.25 0.5 1 3" + end)});
    cases.push_back({Kind::odd, "T[3,5,17] = " + range + end});
    cases.push_back({Kind::empty, "T[2,0] = " + range + end});
    cases.push_back({Kind::large, "f32[301,257] = " + range + end});
  }
  return cases;
}

Row row(const std::string& type, const std::string& range, const Names& attributes, double ulps_f32, double ulps_f64,
        const std::function<Activation(const Call&)>& made) {
  return {.type = type,
          .reference = of_elements(made),
          .cases = calls(range, attributes),
          .ulps = ulps_f32,
          .without = one_input_only,
          .ulps_of = beside_f32(ulps_f32, ulps_f64)};
}
Row row(const std::string& type, const std::string& range, double ulps_f32, double ulps_f64, Term (*f)(Number)) {
  return row(type, range, {}, ulps_f32, ulps_f64, [f](const Call&) { return f; });
}

// ---------------------------------------------------------------- of straight lines

Row leaky_relu() {
  return row("LeakyRelu", "-3..3", {"alpha=0.25", "alpha=-1.5", "alpha=0"}, 1, 0.5, [](const Call& c) {
    const Number alpha = c.f("alpha", 0.01);
    return [=](Number x) { return Term{x < 0 ? alpha * x : x}; };
  });
}

Row thresholded_relu() {
  return row("ThresholdedRelu", "-3..3", {"alpha=0.25", "alpha=-2", "alpha=0"}, 0, 0, [](const Call& c) {
    const Number alpha = c.f("alpha", 1);
    return [=](Number x) { return Term{x > alpha ? x : 0}; };
  });
}

Row shrink() {
  return row("Shrink", "-3..3", {"bias=0.25, lambd=1", "lambd=0.125", "bias=-1.5", "bias=2, lambd=0"}, 0, 0.01, [](const Call& c) {
    const Number bias = c.f("bias", 0), lambd = c.f("lambd", 0.5);
    return [=](Number x) { return Term{x < -lambd ? x + bias : x > lambd ? x - bias : 0}; };
  });
}

Row hard_sigmoid() {
  return row("HardSigmoid", "-5..5", {"alpha=0.5, beta=0.25", "alpha=-0.125", "beta=-0.5", "alpha=0"}, 1, 1, [](const Call& c) {
    const Number alpha = c.f("alpha", 0.2), beta = c.f("beta", 0.5);
    return [=](Number x) { return Term{greater(0, lesser(1, alpha * x + beta)), std::fabs(alpha * x) + std::fabs(beta)}; };
  });
}

Term hard_swish(Number x) {
  return {x * greater(0, lesser(1, x / 6 + Number(0.5))), std::fabs(x) * (std::fabs(x / 6) + Number(0.5))};
}

// The slope is broadcast to the elements.
Row prelu() {
  Cases cases = over_special(Kind::broadcast, "T[18,1] = SPECIAL, T[1] = 0.25");
  const auto add = [&](Kind kind, const std::string& x, const std::string& slope) {
    cases.push_back({kind, "T" + x + " = -5..6, T" + slope + " = -2..3"});
  };
  for (const char* shape : {"[]", "[1]", "[7]", "[17]", "[33]", "[65]", "[3,5,17]"}) add(Kind::odd, shape, shape);
  add(Kind::empty, "[3,0,2]", "[2]");
  for (const char* slope : {"[]", "[1]", "[3,1,1]", "[5]", "[7,1]", "[2,1,7,5]"}) add(Kind::broadcast, "[2,3,7,5]", slope);
  add(Kind::rank, "[1,2,1,2,3,2,1,3]", "[2,1,3]");
  add(Kind::large, "[301,257]", "[257]");
  add(Kind::large, "[301,257]", "[301,257]");
  add(Kind::large, "[7,43,257]", "[43,1]");
  return {.type = "PRelu",
          .reference = of_two([](Number x, Number slope) { return x < 0 ? slope * x : x; }),
          .cases = cases,
          .without = no_strides,
          .ulps_of = {{DType::f64, 0.01}}};
}

// If the minimum is above the maximum, the maximum wins.
Row clip() {
  const auto clipped = [](const Call& c) {
    Numbers result = c[0];
    for (Number& x : result.values) {
      if (c.has(1)) x = greater(x, c[1].values[0]);
      if (c.has(2)) x = lesser(x, c[2].values[0]);
    }
    return std::vector{result};
  };
  Cases cases =
      joined({one_input_cases("-5..6"), over_special(Kind::odd, "T[18] = SPECIAL, T[] = -1.5, T[] = 2"),
              over_special(Kind::odd, "T[18] = SPECIAL, -, T[] = 0"), over_special(Kind::odd, "T[18] = SPECIAL, T[] = -inf, T[] = inf"),
              over_special(Kind::odd, "T[18] = SPECIAL, T[] = 0.5, T[] = -1")});
  for (const char* shape : {"[]", "[1]", "[17]", "[33]", "[65]", "[3,5,17]", "[301,257]"})
    for (const char* limits : {", T[] = 2", ", -, T[] = 3", ", T[] = 1, T[] = 4", ", T[] = 4, T[] = 1"})
      cases.push_back({shape == std::string("[301,257]") ? Kind::large : Kind::odd, "T" + (shape + (" = -5..6" + std::string(limits)))});
  cases.push_back({Kind::odd, "T[3,5] = -5..6, T[1] = 2, T[1,1] = 4"});
  cases.push_back({Kind::empty, "T[0,3], T[] = 1, T[] = 4"});
  cases.push_back({Kind::rank, "T[1,2,1,2,3,2,1,3] = 0..9, T[] = 2, T[] = 5"});
  cases.push_back(
      {Kind::odd, "i64[3] = 9007199254740993 9223372036854775807 -9007199254740993, i64[] = -9007199254740994, i64[] = 9007199254740995"});
  cases.push_back({Kind::odd, "u64[3] = 18446744073709551615 9007199254740993 0, u64[] = 1, u64[] = 18446744073709551614"});
  return {.type = "Clip",
          .reference = clipped,
          .cases = cases,
          .without = {{Kind::strided, "it takes whole tensors"}, {Kind::broadcast, "limits are scalars"}}};
}

// ---------------------------------------------------------------- of exponentials

Number sigmoid(Number x) {
  return 1 / (1 + std::exp(-x));
}
Number softplus(Number x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

Row elu() {
  return row("Elu", "-4..4", {"alpha=0.5", "alpha=-2", "alpha=0"}, 1, 1, [](const Call& c) {
    const Number alpha = c.f("alpha", 1);
    return [=](Number x) { return Term{x < 0 ? alpha * std::expm1(x) : x}; };
  });
}

Row celu() {
  return row("Celu", "-4..4", {"alpha=2", "alpha=0.25"}, 1, 1.5, [](const Call& c) {
    const Number alpha = c.f("alpha", 1);
    return [=](Number x) { return Term{greater(0, x) + lesser(0, alpha * std::expm1(x / alpha))}; };
  });
}

Row selu() {
  return row("Selu", "-4..4", {"alpha=2, gamma=0.5", "alpha=0.5", "gamma=-2"}, 2, 2, [](const Call& c) {
    const Number alpha = c.f("alpha", 1.67326319217681884765625), gamma = c.f("gamma", 1.05070102214813232421875);
    return [=](Number x) { return Term{gamma * (x <= 0 ? alpha * std::expm1(x) : x)}; };
  });
}

Row swish() {
  return row("Swish", "-6..6", {"alpha=2", "alpha=-0.5", "alpha=0"}, 2, 2, [](const Call& c) {
    const Number alpha = c.f("alpha", 1);
    return [=](Number x) { return Term{x * sigmoid(alpha * x)}; };
  });
}

// 1 + erf(...) and 1 + tanh(...) are rounded: below 0, where they cancel, that is more than the result's own error.
Row gelu() {
  return row("Gelu", "-6..6", {"approximate=\"tanh\""}, 1.5, 1.5, [](const Call& c) -> Activation {
    if (c.s("approximate", "none") == "tanh")
      return [](Number x) {
        const Number bent = std::tanh(std::sqrt(2 / std::acos(Number(-1))) * (x + Number(0.044715L) * x * x * x));
        return Term{x / 2 * (1 + bent), std::fabs(x / 2) * (1 + std::fabs(bent))};
      };
    return [](Number x) {
      const Number error = std::erf(x / std::sqrt(Number(2)));
      return Term{x / 2 * (1 + error), std::fabs(x / 2) * (1 + std::fabs(error))};
    };
  });
}

}  // namespace
}  // namespace reference_pointwise_activation

std::vector<Row> pointwise_activation_rows() {
  using namespace reference_pointwise_activation;
  Row relu = row("Relu", "-5..6", 0, 0, [](Number x) { return Term{x == 0 ? 0 : greater(0, x)}; });
  return {relu,
          leaky_relu(),
          prelu(),
          elu(),
          celu(),
          selu(),
          thresholded_relu(),
          shrink(),
          row("Sigmoid", "-6..6", 2, 2, [](Number x) { return Term{sigmoid(x)}; }),
          hard_sigmoid(),
          row("HardSwish", "-5..5", 1, 1, hard_swish),
          swish(),
          row("Softplus", "-6..6", 1.5, 1.5, [](Number x) { return Term{softplus(x)}; }),
          row("Softsign", "-6..6", 1, 1, [](Number x) { return Term{x / (1 + std::fabs(x))}; }),
          row("Mish", "-6..6", 2, 3, [](Number x) { return Term{x * std::tanh(softplus(x))}; }),
          gelu(),
          clip()};
}

}  // namespace heddle::conformance

// Derivatives of expressions as text, their values at points where they are a convention, and their length.
#include "derive/expression/expression_derivative.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "derive/expression/derivative_rules.h"
#include "derive/expression/random_programs.h"
#include "heddle/expression_evaluate.h"

namespace heddle::testing_derive {
namespace {

using expression::Opcode;
using expression::Program;

constexpr double infinity = std::numeric_limits<double>::infinity();

// The program has the inputs x0, x1, ... up to the last that the text mentions.
Program parsed(const std::string& text) {
  Program program;
  for (const std::string& number : expression::mentioned(text, "x"))
    while (program.inputs.size() <= std::stoul(number)) program.inputs.push_back("x" + std::to_string(program.inputs.size()));
  std::string error;
  EXPECT_TRUE(expression::parse(text, {}, program, error)) << text << ": " << error;
  return program;
}

// The derivative by x<input>.
std::string derivative(const std::string& text, size_t input = 0, ResultOfForward result = ResultOfForward::kept) {
  auto program = expression_derivative(parsed(text), input, result);
  return program.ok() ? expression::print(*program) : program.status().text();
}

// The derivative for dy = 1.
double derivative_at(const std::string& text, std::vector<double> at, size_t input = 0, ResultOfForward result = ResultOfForward::kept) {
  const Program program = parsed(text);
  auto derived = expression_derivative(program, input, result);
  EXPECT_TRUE(derived.ok()) << derived.status().text();
  const double y = *expression::evaluate<double>(program, at.data());
  at.push_back(1);
  at.push_back(y);
  return *expression::evaluate<double>(*derived, at.data());
}

TEST(ExpressionDerivative, OfActivations) {
  EXPECT_EQ(derivative("max(x0, 0)"), "select(le(y, 0), 0, dy)");
  EXPECT_EQ(derivative("sigmoid(x0)"), "mul(dy, mul(y, sub(1, y)))");
  EXPECT_EQ(derivative("x0 * sigmoid(x0)"),  // silu
            "t1 = sigmoid(x0); add(mul(dy, t1), mul(mul(dy, x0), mul(t1, sub(1, t1))))");
  EXPECT_EQ(derivative("max(x0, 0) + log1p(exp(-abs(x0)))"), "mul(dy, sigmoid(x0))");  // softplus
  EXPECT_EQ(derivative("x0 * max(min(x0 / 6 + 0.5, 1), 0)"),                           // hard swish
            "t4 = add(div(x0, 6), 0.5); t6 = min(t4, 1); "
            "add(mul(dy, max(t6, 0)), select(gt(t6, 0), select(lt(t4, 1), div(mul(dy, x0), 6), 0), 0))");
  EXPECT_EQ(derivative("min(max(x0, -1), 1)"), "select(lt(max(x0, -1), 1), select(gt(x0, -1), dy, 0), 0)");  // clip
  EXPECT_EQ(derivative("select(lt(x0, 0), 0.01 * x0, x0)"), "select(lt(x0, 0), mul(dy, 0.01), dy)");         // leaky relu
  EXPECT_EQ(derivative("select(gt(x0, 0), x0, 1.5 * expm1(x0))"),                                            // elu
            "select(gt(x0, 0), dy, mul(mul(dy, 1.5), add(expm1(x0), 1)))");
  // gelu by tanh: with k = 0.797..., dy * (0.5 x (1 - t^2) k (1 + 3 * 0.0447 x^2) + 0.5 (1 + t))
  EXPECT_EQ(derivative("0.5 * x0 * (1 + tanh(0.7978845608028654 * (x0 + 0.044715 * x0 * x0 * x0)))"),
            "t6 = mul(0.044715, x0); t7 = mul(t6, x0); t11 = tanh(mul(0.7978845608028654, add(x0, mul(t7, x0)))); "
            "t19 = mul(mul(mul(dy, mul(0.5, x0)), sub(1, mul(t11, t11))), 0.7978845608028654); t20 = mul(t19, x0); "
            "add(add(add(add(t19, mul(t19, t7)), mul(t20, t6)), mul(mul(t20, x0), 0.044715)), mul(mul(dy, add(1, t11)), 0.5))");
}

TEST(ExpressionDerivative, OfArithmetic) {
  EXPECT_EQ(derivative("x0 + x1"), "dy");
  EXPECT_EQ(derivative("x0 - x1", 1), "neg(dy)");
  EXPECT_EQ(derivative("x0 * x1"), "mul(dy, x1)");
  EXPECT_EQ(derivative("x0 * x0"), "t2 = mul(dy, x0); add(t2, t2)");
  EXPECT_EQ(derivative("x0 / x1"), "div(dy, x1)");
  EXPECT_EQ(derivative("x0 / x1", 1), "neg(mul(div(dy, x1), y))");
  EXPECT_EQ(derivative("pow(x0, 3)"), "mul(dy, mul(pow(x0, 2), 3))");
  EXPECT_EQ(derivative("pow(x0, 2)"), "mul(dy, mul(x0, 2))");
  EXPECT_EQ(derivative("pow(x0, 1)"), "dy");
  EXPECT_EQ(derivative("pow(x0, 0)"), "0");
  EXPECT_EQ(derivative("pow(x0, 0.5)"), "mul(dy, mul(pow(x0, -0.5), 0.5))");
  EXPECT_EQ(derivative("pow(x0, x1)"), "select(eq(x1, 0), 0, mul(dy, mul(x1, pow(x0, sub(x1, 1)))))");
  EXPECT_EQ(derivative("pow(x0, x1)", 1), "select(and(eq(x0, 0), ge(x1, 0)), 0, mul(dy, mul(y, log(x0))))");
  EXPECT_EQ(derivative("pow(2, x0)"), "mul(dy, mul(y, 0.6931471805599453))");
  EXPECT_EQ(derivative("mod(x0, x1)"), "dy");
  EXPECT_EQ(derivative("mod(x0, x1)", 1), "neg(mul(dy, round(div(sub(x0, y), x1))))");
  EXPECT_EQ(derivative("atan(x0 / x1)", 1), "t2 = div(x0, x1); neg(mul(div(div(dy, add(mul(t2, t2), 1)), x1), t2))");
}

TEST(ExpressionDerivative, IsShort) {
  EXPECT_EQ(derivative("x0"), "dy");
  EXPECT_EQ(derivative("-(-x0)"), "dy");
  EXPECT_EQ(derivative("x0 * 1 + 0"), "dy");
  EXPECT_EQ(derivative("-x0 * -3"), "mul(dy, 3)");
  EXPECT_EQ(derivative("2 * (x0 * 3)"), "mul(dy, 6)");
  EXPECT_EQ(derivative("x0 + floor(x0) * x1"), "dy");  // floor has the derivative zero
  EXPECT_EQ(derivative("x0 * 0"), "mul(dy, 0)");       // NaN for an infinite dy
  EXPECT_EQ(derivative("select(x1, x0, x0)"), "dy");
  EXPECT_EQ(derivative("select(lt(x0, 0.5), x0 + 1, select(gt(x0, 2), x0 - 1, 0))"), "select(lt(x0, 0.5), dy, select(gt(x0, 2), dy, 0))");
  EXPECT_EQ(derivative("select(x1, x0, select(x1, 3 * x0, 2 * x0))"), "select(x1, dy, mul(dy, 2))");  // one branch is never taken
  EXPECT_EQ(derivative("7 + x0 * 0 - x1", 1), "neg(dy)");
  // The derivative of t in one select is zero, and remains so when it is doubled.
  EXPECT_EQ(derivative("t = 2 * x0; select(x1, t, 1) + select(x2, t, 1)"), "mul(add(select(x2, dy, 0), select(x1, dy, 0)), 2)");
  // The parser copies a result that is not last.
  EXPECT_EQ(derivative("t = exp(x0); u = t + x1; t"), "mul(dy, y)");
}

TEST(ExpressionDerivative, ReadsTheResultWhereThatIsShorter) {
  const auto both = [](const std::string& text) { return derivative(text) + " | " + derivative(text, 0, ResultOfForward::gone); };
  EXPECT_EQ(both("exp(x0)"), "mul(dy, y) | mul(dy, exp(x0))");
  EXPECT_EQ(both("tanh(x0)"), "mul(dy, sub(1, mul(y, y))) | t1 = tanh(x0); mul(dy, sub(1, mul(t1, t1)))");
  EXPECT_EQ(both("sqrt(x0)"), "div(dy, mul(y, 2)) | div(dy, mul(sqrt(x0), 2))");
  EXPECT_EQ(both("rsqrt(x0)"), "mul(dy, mul(mul(mul(y, y), y), -0.5)) | t1 = rsqrt(x0); mul(dy, mul(mul(mul(t1, t1), t1), -0.5))");
  EXPECT_EQ(both("reciprocal(x0)"), "neg(mul(dy, mul(y, y))) | t1 = reciprocal(x0); neg(mul(dy, mul(t1, t1)))");
  EXPECT_EQ(both("expm1(x0)"), "mul(dy, add(y, 1)) | mul(dy, add(expm1(x0), 1))");
  EXPECT_EQ(both("log(x0)"), "div(dy, x0) | div(dy, x0)");
  auto derived = expression_derivative(parsed("exp(x0)"), 0);
  ASSERT_TRUE(derived.ok());
  EXPECT_EQ(derived->inputs, (std::vector<std::string>{"x0", "dy", "y"}));
  EXPECT_FALSE(reads_input(*derived, 0));
  EXPECT_TRUE(reads_input(*derived, 1));
  EXPECT_TRUE(reads_input(*derived, 2));
}

TEST(ExpressionDerivative, OfSeveralInputsIsOneProgramForEach) {
  const Program program = parsed("x0 * tanh(x1) + floor(x2)");
  const std::vector<size_t> inputs = {2, 1, 0};
  auto derived = expression_derivatives(program, inputs);
  ASSERT_TRUE(derived.ok());
  ASSERT_EQ(derived->size(), 3u);
  EXPECT_EQ(expression::print((*derived)[0]), "0");
  EXPECT_TRUE(is_zero((*derived)[0]));
  EXPECT_EQ(expression::print((*derived)[1]), "t2 = tanh(x1); mul(mul(dy, x0), sub(1, mul(t2, t2)))");
  EXPECT_FALSE(is_zero((*derived)[1]));
  EXPECT_EQ(expression::print((*derived)[2]), "mul(dy, tanh(x1))");
  auto none = expression_derivatives(program, {});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST(ExpressionDerivative, HasPytorchsConventionsAtKinks) {
  EXPECT_EQ(derivative_at("abs(x0)", {0}), 0);
  EXPECT_EQ(derivative_at("max(x0, 0)", {0}), 0);
  EXPECT_EQ(derivative_at("max(0, x0)", {0}), 0);
  EXPECT_EQ(derivative_at("max(x0, x1)", {2, 2}), 0.5);
  EXPECT_EQ(derivative_at("max(x0, x1)", {2, 2}, 1), 0.5);
  EXPECT_EQ(derivative_at("min(x0, x1)", {2, 2}), 0.5);
  EXPECT_EQ(derivative_at("min(x0, x1)", {1, 2}), 1);
  EXPECT_EQ(derivative_at("min(x0, x1)", {1, 2}, 1), 0);
  EXPECT_EQ(derivative_at("max(x0, x0)", {2}), 1);
  for (const double bound : {-1.0, 1.0}) EXPECT_EQ(derivative_at("min(max(x0, -1), 1)", {bound}), 0) << bound;
  for (const double outside : {-1.5, 1.5}) EXPECT_EQ(derivative_at("min(max(x0, -1), 1)", {outside}), 0) << outside;
  for (const double bound : {0.0, 6.0}) EXPECT_EQ(derivative_at("min(max(x0, 0), 6)", {bound}), 0) << bound;
  for (const double bound : {0.0, 6.0}) EXPECT_EQ(derivative_at("max(min(6, x0), 0)", {bound}), 0) << bound;
  EXPECT_EQ(derivative_at("min(max(x0, x1), x2)", {1, 1, 3}), 0);
  EXPECT_EQ(derivative_at("min(max(x0, x1), x2)", {1, 1, 3}, 1), 0);
  EXPECT_EQ(derivative_at("min(max(x0, x1), x2)", {3, 1, 3}), 0);
  EXPECT_EQ(derivative_at("min(max(x0, x1), x2)", {3, 1, 3}, 2), 0);
  EXPECT_EQ(derivative_at("min(max(x0, x1), x2)", {0, 1, 3}, 1), 1);
  EXPECT_EQ(derivative_at("min(max(x0, x1), x2)", {4, 1, 3}, 2), 1);
  EXPECT_EQ(derivative_at("max(x0, -2)", {-2}), 0);
  // There is no pair: the inner one has another reader.
  EXPECT_EQ(derivative_at("t = min(x0, x1); max(t, x2) * t", {2, 2, 1}), 2);
  EXPECT_EQ(derivative_at("t = max(x0, 0); min(t, 2) + t", {0}), 0);
  EXPECT_EQ(derivative_at("sqrt(x0)", {0}), infinity);
  EXPECT_EQ(derivative_at("pow(x0, x1)", {0, 0}), 0);
  EXPECT_EQ(derivative_at("pow(x0, x1)", {0, 1}), 1);
  EXPECT_EQ(derivative_at("pow(x0, x1)", {0, 2}), 0);
  EXPECT_EQ(derivative_at("pow(x0, x1)", {0, 0.5}), infinity);
  EXPECT_EQ(derivative_at("pow(x0, x1)", {0, 0}, 1), 0);
  EXPECT_EQ(derivative_at("pow(x0, x1)", {0, 2}, 1), 0);
  EXPECT_TRUE(std::isnan(derivative_at("pow(x0, x1)", {-2, 2}, 1)));
  EXPECT_EQ(derivative_at("pow(0, x0)", {2}), 0);
  for (const char* flat : {"floor(x0)", "ceil(x0)", "round(x0)", "sign(x0)", "lt(x0, 1)", "and(x0, 1)", "isnan(x0)", "select(x0, 2, 3)"})
    EXPECT_EQ(derivative(flat), "0") << flat;
  // The kinks of the two terms cancel each other.
  EXPECT_EQ(derivative_at("max(x0, 0) + log1p(exp(-abs(x0)))", {0}), 0.5);
  EXPECT_EQ(derivative_at("log1p(exp(-abs(3 * x0))) + max(0, 3 * x0)", {0}), 1.5);
  EXPECT_EQ(derivative_at("max(x0, x1) + log1p(exp(-abs(x0 - x1)))", {1, 1}, 1), 0.5);
  EXPECT_EQ(derivative_at("select(gt(x0, 0), x0, 2 * expm1(x0 / 2))", {0}), 1);  // celu
}

TEST(ExpressionDerivative, PassesNanOnLikePytorch) {
  const double nan = std::nan("");
  EXPECT_EQ(derivative_at("max(x0, 0)", {nan}), 1);
  EXPECT_EQ(derivative_at("max(x0, x1)", {nan, 1}, 1), 1);
  EXPECT_EQ(derivative_at("min(max(x0, -1), 1)", {nan}), 0);
  EXPECT_TRUE(std::isnan(derivative_at("abs(x0)", {nan})));
  EXPECT_TRUE(std::isnan(derivative_at("x0 * x0", {nan})));
}

// 0 * inf is NaN: the derivative must not be multiplied by the branch that is not taken.
TEST(ExpressionDerivative, HasNothingOfBranchesThatAreNotTaken) {
  EXPECT_EQ(derivative_at("select(gt(x0, 0), sqrt(x0), 0)", {0}), 0);
  EXPECT_EQ(derivative_at("select(gt(x0, 0), sqrt(x0), 0)", {-1}), 0);
  EXPECT_EQ(derivative_at("select(le(x0, 0), 2 * x0, log(x0))", {0}), 2);
  EXPECT_EQ(derivative_at("select(le(x0, 0), 2 * x0, x0 * log(x0))", {0}), 2);
  EXPECT_EQ(derivative_at("select(lt(x0, 100), x0, exp(exp(x0)))", {20}), 1);
  // One value is used in two branches, and further inside.
  const std::string two = "t = sqrt(x0); select(x1, t, 1) + select(x2, t, 1)";
  EXPECT_EQ(derivative_at(two, {0, 0, 0}), 0);
  EXPECT_EQ(derivative_at(two, {4, 1, 0}), 0.25);
  EXPECT_EQ(derivative_at(two, {4, 1, 1}), 0.5);
  EXPECT_EQ(derivative_at(two, {0, 0, 1}), infinity);
  const std::string nested = "t = log(sqrt(x0)); u = select(x1, select(x2, t, x0), 3 * x0) + select(x2, t * t, x0); exp(u) * 0 + u";
  EXPECT_EQ(derivative_at(nested, {0, 0, 0}), 4);
  EXPECT_EQ(derivative_at(nested, {0, 1, 0}), 2);
  EXPECT_EQ(derivative_at(nested, {1, 0, 1}), 3);
  EXPECT_EQ(derivative_at(nested, {1, 1, 1}), 0.5);
  // The side of a max that is not chosen, and a base whose exponent is 0.
  EXPECT_EQ(derivative_at("max(sqrt(x0), x1)", {0, 1}), 0);
  EXPECT_EQ(derivative_at("max(sqrt(x0), 2)", {0}), 0);
  EXPECT_EQ(derivative_at("pow(sqrt(x0), x1)", {0, 0}), 0);
}

TEST(ExpressionDerivative, RefusesWhatHasNone) {
  EXPECT_EQ(derivative("bit_and(x0, 1)"), "error[unsupported]: the expression has no derivative: bit_and is not defined for floats");
  EXPECT_EQ(derivative("x0", 1), "error[invalid-argument]: the expression has 1 inputs, so that it has no derivative by input 1");
  EXPECT_EQ(derivative("x0 * dy"),
            "error[invalid-argument]: the expression has an input \"dy\", which its derivative calls something else");
  EXPECT_EQ(derivative("x0 * y"), "error[invalid-argument]: the expression has an input \"y\", which its derivative calls something else");
  Program empty;
  empty.inputs = {"x0"};
  EXPECT_EQ(expression_derivative(empty, 0).status().code(), Code::unsupported);
  Program misleads = parsed("x0 + 1");
  misleads.code.back().b = 9;
  EXPECT_EQ(expression_derivative(misleads, 0).status().code(), Code::unsupported);
}

TEST(DerivativeRules, KnowEveryOpcode) {
  for (int k = 0; k < expression::opcode_count; ++k) {
    const auto op = static_cast<Opcode>(k);
    const DerivativeRule* const rule = derivative_rule(op);
    ASSERT_TRUE(rule) << expression::info(op).name << " has neither a derivative nor a place among those that have none";
    EXPECT_EQ(rule->kind == DerivativeRule::rule, rule->backward != nullptr) << expression::info(op).name;
    EXPECT_EQ(rule->kind == DerivativeRule::leaf, k < 2) << expression::info(op).name;
    EXPECT_EQ(rule->kind == DerivativeRule::undefined, k >= 2 && !is_of_floats(op)) << expression::info(op).name;
  }
}

// Measures the derivatives of programs as long as the longest fused chain.
TEST(ExpressionDerivative, IsBounded) {
  uint64_t state = 64;
  RandomPrograms random(state);
  size_t most = 0, sum = 0, count = 0, longest = 0;
  const auto measure = [&](const Program& program) {
    std::vector<size_t> inputs;
    for (size_t i = 0; i < program.inputs.size(); ++i) inputs.push_back(i);
    auto derived = expression_derivatives(program, inputs);
    ASSERT_TRUE(derived.ok()) << derived.status().text();
    for (const Program& one : *derived) {
      if (is_zero(one)) continue;
      most = std::max(most, one.code.size());
      sum += one.code.size();
      ++count;
      // The derivative is passed on as text.
      Program again;
      again.inputs = one.inputs;
      std::string error;
      ASSERT_TRUE(expression::parse(expression::print(one), {}, again, error)) << error;
      const std::vector<double> at = {0.5, -1.25, 0.75, 2, 1.5, 0.25};
      const double value = *expression::evaluate<double>(one, at.data()), of_text = *expression::evaluate<double>(again, at.data());
      EXPECT_TRUE(value == of_text || (std::isnan(value) && std::isnan(of_text))) << value << " " << of_text;
    }
  };
  for (int k = 0; k < 1000; ++k) {
    const Program program = random.whole(1 + below(state, 4), 64);
    longest = std::max(longest, program.code.size());
    measure(program);
  }
  std::printf("of 64 instructions: %zu at most, %zu on average\n", most, sum / count);
  EXPECT_EQ(longest, 64u);
  EXPECT_LE(most, 300u);
  most = 0;
  // Nested choices, each of which reads all earlier values: each value passes one select for each choice.
  std::string nested = "t0 = x0";
  for (int k = 0; k < 15; ++k)
    nested += "; t" + std::to_string(k + 1) + " = select(gt(x1, " + std::to_string(k + 2) + "), t" + std::to_string(k) + " * x0, x0)";
  measure(parsed(nested + "; t15"));
  std::printf("of nested choices: %zu\n", most);
  EXPECT_LE(most, 160u);
}

}  // namespace
}  // namespace heddle::testing_derive

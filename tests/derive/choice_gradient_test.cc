// Where, applied to operators instead of one expression: the branch that is not taken has the gradient 0 even if its own derivative is
// infinite or NaN, as within one expression.
#include "derive/control_nets.h"

namespace heddle {
namespace {

using namespace testing_derive;

// Returns the gradient by x of the sum of the value that `make` makes of x.
std::vector<double> gradient_at(const std::vector<double>& x, const std::function<ValueId(NetBuilder&, ValueId)>& make) {
  NetBuilder b("choice");
  const Shape shape{static_cast<int64_t>(x.size())};
  b.output(sum_of(b, "loss", make(b, b.input("x", DType::f64, shape))));
  const Values all = gradients_of(b.finish(), {shape}, {x});
  return all.empty() ? std::vector<double>() : all[0];
}

// Returns the gradient of one operator with that expression of x0.
std::vector<double> gradient_of_expression(const std::vector<double>& x, const std::string& expression) {
  return gradient_at(x, [&](NetBuilder& b, ValueId in) { return b.add1("Pointwise", "y", {in}, {{"program", expression}}, "heddle"); });
}

const std::vector<double> points = {0, 2, -1, 0.5, 0};

void expect_same(const char* what, const std::string& expression, const std::function<ValueId(NetBuilder&, ValueId)>& make) {
  const std::vector<double> made = gradient_at(points, make), wanted = gradient_of_expression(points, expression);
  ASSERT_EQ(made.size(), points.size()) << what;
  ASSERT_EQ(wanted.size(), points.size()) << what;
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_TRUE(std::isfinite(wanted[i])) << what << " at " << points[i];
    EXPECT_DOUBLE_EQ(made[i], wanted[i]) << what << " at " << points[i];
  }
}

ValueId is_positive(NetBuilder& b, ValueId x) {
  return b.add1("Greater", "positive", {x, number(b, "zero", 0)});
}

TEST(ChoiceGradient, IsThatOfOneExpression) {
  expect_same("log", "select(gt(x0, 0), log(x0), 0)", [](NetBuilder& b, ValueId x) {
    return b.add1("Where", "y", {is_positive(b, x), b.add1("Log", "log", {x}), number(b, "none", 0)});
  });
  expect_same("sqrt, the other branch", "select(le(x0, 0), x0, sqrt(x0))", [](NetBuilder& b, ValueId x) {
    const ValueId low = b.add1("LessOrEqual", "low", {x, number(b, "zero", 0)});
    return b.add1("Where", "y", {low, x, b.add1("Sqrt", "root", {x})});
  });
  expect_same("a quotient", "select(gt(x0, 0), sin(x0) / x0, 1)", [](NetBuilder& b, ValueId x) {
    const ValueId quotient = b.add1("Div", "quotient", {b.add1("Sin", "sin", {x}), x});
    return b.add1("Where", "y", {is_positive(b, x), quotient, number(b, "one", 1)});
  });
  expect_same("a chain", "select(gt(x0, 0), 3 * log(sqrt(x0)) + x0, 0)", [](NetBuilder& b, ValueId x) {
    const ValueId log = b.add1("Log", "log", {b.add1("Sqrt", "root", {x})});
    const ValueId sum = b.add1("Add", "sum", {b.add1("Mul", "thrice", {number(b, "three", 3), log}), x});
    return b.add1("Where", "y", {is_positive(b, x), sum, number(b, "none", 0)});
  });
  expect_same("a power", "select(gt(x0, 0), pow(x0, 0.5), 0)", [](NetBuilder& b, ValueId x) {
    return b.add1("Where", "y", {is_positive(b, x), b.add1("Pow", "power", {x, number(b, "half", 0.5)}), number(b, "none", 0)});
  });
  expect_same("nested", "select(gt(x0, 0), select(gt(x0, 1), log(x0 - 1), log(x0)), 0)", [](NetBuilder& b, ValueId x) {
    const ValueId one = number(b, "one", 1);
    const ValueId inner = b.add1(
        "Where", "inner",
        {b.add1("Greater", "large", {x, one}), b.add1("Log", "log of less", {b.add1("Sub", "less", {x, one})}), b.add1("Log", "log", {x})});
    return b.add1("Where", "y", {is_positive(b, x), inner, number(b, "none", 0)});
  });
  expect_same("two readers", "select(gt(x0, 0), log(x0), 0) + select(gt(x0, 1), 2 * log(x0), x0)", [](NetBuilder& b, ValueId x) {
    const ValueId log = b.add1("Log", "log", {x});
    const ValueId first = b.add1("Where", "first", {is_positive(b, x), log, number(b, "none", 0)});
    const ValueId large = b.add1("Greater", "large", {x, number(b, "one", 1)});
    return b.add1("Add", "y", {first, b.add1("Where", "second", {large, b.add1("Mul", "twice", {log, number(b, "two", 2)}), x})});
  });
}

// Views, sums and movements of elements are between the choice and its operands.
TEST(ChoiceGradient, GoesThroughWhatMovesElements) {
  const std::vector<double> wanted = gradient_of_expression(points, "select(gt(x0, 0), log(x0), 0)");
  const auto made = gradient_at(points, [](NetBuilder& b, ValueId x) {
    const ValueId column = b.add1("Reshape", "column", {b.add1("Log", "log", {x}), b.constant_ints("dims", {5, 1})});
    const ValueId row = b.add1("Transpose", "row", {column}, {{"perm", std::vector<int64_t>{1, 0}}});
    const ValueId wide = b.add1("Concat", "wide", {row, row}, {{"axis", int64_t{1}}});
    const ValueId half =
        b.add1("Slice", "half", {wide, b.constant_ints("from", {5}), b.constant_ints("to", {10}), b.constant_ints("axis", {1})});
    return b.add1("Where", "y", {is_positive(b, x), half, number(b, "none", 0)});
  });
  ASSERT_EQ(made.size(), wanted.size());
  for (size_t i = 0; i < made.size(); ++i) EXPECT_DOUBLE_EQ(made[i], wanted[i]) << points[i];
}

// An element of a branch that is broadcast has the gradient 0 only if it is taken nowhere.
TEST(ChoiceGradient, OfABranchThatIsBroadcast) {
  NetBuilder b("broadcast");
  const ValueId x = b.input("x", DType::f64, Shape{2}), large = b.input("large", DType::f64, Shape{3, 2});
  const ValueId y = b.add1("Where", "y", {is_positive(b, large), b.add1("Log", "log", {x}), large});
  b.output(sum_of(b, "loss", y));
  const Values all = gradients_of(b.finish(), {Shape{2}, Shape{3, 2}}, {{0, 2}, {-1, 1, -1, 1, -1, -1}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (std::vector<double>{0, 1}));
  EXPECT_EQ(all[1], (std::vector<double>{1, 0, 1, 0, 1, 1}));
}

// (x x - 1)^2 where x > 0: at 1 the first derivative is 0, and the second is 12 x x - 4.
TEST(ChoiceGradient, HasASecondDerivativeWhereTheFirstIsZero) {
  NetBuilder b("twice");
  const ValueId x = b.input("x", DType::f64, Shape{2});
  const ValueId y = b.add1("Where", "y", {is_positive(b, x), b.add1("Mul", "square", {x, x}), number(b, "none", 0)});
  const ValueId d = b.add1("Sub", "d", {y, number(b, "one", 1)});
  b.output(sum_of(b, "loss", b.add1("Mul", "squared", {d, d})));
  const Net net = b.finish();
  const auto first = derived(net, all_inputs(net));
  ASSERT_TRUE(first.ok()) << first.status().text();
  DifferentiateOptions options = all_inputs(net);
  options.losses = {"x.gradient"};
  const auto second = derived(first->net, options);
  ASSERT_TRUE(second.ok()) << second.status().text();
  const Values all = gradients_of(*second, {Shape{2}}, {{1, 2}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (std::vector<double>{0, 24}));
  EXPECT_EQ(all[1], (std::vector<double>{8, 44}));
}

// Operands of at most four elements each; in the run one of them has one, and the other three.
TEST(ChoiceGradient, OfOperandsThatHaveTheSameBoundAndOtherExtents) {
  NetBuilder b("bounded");
  const ValueId x = b.input("x", DType::f64, Shape{4}), k = b.input("k", DType::f64, Shape{4});
  const auto above = [&](const std::string& name, double bound) { return b.add1("Greater", name, {x, number(b, name + ".bound", bound)}); };
  const ValueId large = b.add1("Compress", "large", {x, above("is large", 3.5)}, {{"axis", int64_t{0}}});
  const ValueId positive = b.add1("Compress", "positive", {k, above("is positive", 0)}, {{"axis", int64_t{0}}});
  b.output(sum_of(b, "loss", b.add1("Mul", "products", {large, positive})));
  const Values all = gradients_of(b.finish(), {Shape{4}, Shape{4}}, {{2, 3, 4, -1}, {1, 2, 3, 5}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (std::vector<double>{0, 0, 6, 0}));
  EXPECT_EQ(all[1], (std::vector<double>{4, 4, 4, 0}));
}

// Tests the same for an operator that has a gradient of its own.
TEST(ChoiceGradient, OfASlopeThatHasTheSameBoundAndOneElement) {
  NetBuilder b("slope");
  const ValueId x = b.input("x", DType::f64, Shape{4}), k = b.input("k", DType::f64, Shape{4});
  const auto above = [&](const std::string& name, double bound) { return b.add1("Greater", name, {x, number(b, name + ".bound", bound)}); };
  const ValueId slope = b.add1("Compress", "slope", {x, above("is large", 3.5)}, {{"axis", int64_t{0}}});
  const ValueId taken = b.add1("Compress", "taken", {k, above("is positive", 0)}, {{"axis", int64_t{0}}});
  const ValueId y = b.add1("PRelu", "y", {taken, slope}), zero = number(b, "zero", 0);
  b.output(sum_of(b, "loss", b.add1("Where", "below zero", {b.add1("Less", "is below", {y, zero}), y, zero})));
  const Values all = gradients_of(b.finish(), {Shape{4}, Shape{4}}, {{2, 3, 4, -1}, {-1, 2, -3, 5}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (std::vector<double>{0, 0, -4, 0}));
  EXPECT_EQ(all[1], (std::vector<double>{4, 0, 4, 0}));
}

// A value that another reader takes without a choice keeps its own derivative.
TEST(ChoiceGradient, WhatIsReadWithoutAChoiceKeepsItsOwn) {
  const auto made = gradient_at({0, 2}, [](NetBuilder& b, ValueId x) {
    const ValueId root = b.add1("Sqrt", "root", {x});
    return b.add1("Add", "y", {root, b.add1("Where", "chosen", {is_positive(b, x), root, number(b, "none", 0)})});
  });
  ASSERT_EQ(made.size(), 2u);
  EXPECT_TRUE(std::isinf(made[0]));
  EXPECT_DOUBLE_EQ(made[1], 1 / std::sqrt(2.0));
}

// Random numbers do not depend on the tensor whose shape they take, or on their probability.
TEST(ChoiceGradient, OfNoiseIsNone) {
  for (const char* type : {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "EyeLike"}) {
    NetBuilder b("noise");
    const ValueId x = b.input("x", DType::f64, Shape{2, 2});
    const ValueId noise = b.add1(type, "noise", {b.add1("Sigmoid", "p", {x})});
    b.output(sum_of(b, "loss", b.add1("Add", "sum", {b.add1("Mul", "square", {x, x}), noise})));
    const Values all = gradients_of(b.finish(), {Shape{2, 2}}, {{1, 2, 3, 4}});
    ASSERT_EQ(all.size(), 1u) << type;
    EXPECT_EQ(all[0], (std::vector<double>{2, 4, 6, 8})) << type;
  }
}

}  // namespace
}  // namespace heddle

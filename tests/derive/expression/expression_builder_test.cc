// Tests which operations the builder leaves out and combines, as text.
#include "derive/expression/expression_builder.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace heddle::testing_derive {
namespace {

using expression::Opcode;

class ExpressionBuilding : public ::testing::Test {
 protected:
  std::string text(int value) const { return expression::print(build.program_of(value)); }

  ExpressionBuilder build{{"a", "b", "c"}};
  const int a = build.input(0), b = build.input(1), c = build.input(2);
  int constant(double number) { return build.constant(number); }
};

TEST_F(ExpressionBuilding, MakesEqualInstructionsOnce) {
  EXPECT_EQ(build.mul(a, b), build.mul(b, a));
  EXPECT_EQ(build.add(a, b), build.add(b, a));
  EXPECT_NE(build.sub(a, b), build.sub(b, a));
  EXPECT_NE(build.div(a, b), build.div(b, a));
  EXPECT_EQ(build.copy(Opcode::exp, a), build.make(Opcode::exp, a));
  EXPECT_NE(constant(0.0), constant(-0.0));
}

TEST_F(ExpressionBuilding, FoldsConstants) {
  EXPECT_EQ(text(build.add(constant(2), constant(3))), "5");
  EXPECT_EQ(text(build.make(Opcode::log, constant(1))), "0");
  EXPECT_EQ(text(build.mul(build.mul(constant(2), a), constant(3))), "mul(a, 6)");
  EXPECT_EQ(text(build.neg(build.mul(a, constant(3)))), "mul(a, -3)");
  // It does not combine constants if the product overflows, or is NaN for an infinite a.
  EXPECT_EQ(text(build.mul(build.mul(a, constant(1e200)), constant(1e200))), "mul(mul(a, 1e+200), 1e+200)");
  EXPECT_EQ(text(build.mul(a, constant(0))), "mul(a, 0)");
  EXPECT_EQ(text(build.mul(build.mul(a, constant(0)), constant(2))), "mul(mul(a, 0), 2)");
}

TEST_F(ExpressionBuilding, LeavesOutWhatChangesNothing) {
  const int zero = constant(0), one = constant(1), minus_one = constant(-1);
  EXPECT_EQ(build.add(a, zero), a);
  EXPECT_EQ(build.add(zero, a), a);
  EXPECT_EQ(build.sub(a, zero), a);
  EXPECT_EQ(text(build.sub(zero, a)), "neg(a)");
  EXPECT_EQ(build.mul(a, one), a);
  EXPECT_EQ(build.mul(one, a), a);
  EXPECT_EQ(text(build.mul(minus_one, a)), "neg(a)");
  EXPECT_EQ(build.div(a, one), a);
  EXPECT_EQ(text(build.div(a, minus_one)), "neg(a)");
  EXPECT_EQ(build.make(Opcode::pow, a, one), a);
  EXPECT_EQ(build.make(Opcode::pow, a, zero), one);
}

TEST_F(ExpressionBuilding, MovesSignsOutward) {
  const int minus_a = build.neg(a), minus_b = build.neg(b);
  EXPECT_EQ(build.neg(minus_a), a);
  EXPECT_EQ(text(build.neg(build.sub(a, b))), "sub(b, a)");
  EXPECT_EQ(text(build.add(a, minus_b)), "sub(a, b)");
  EXPECT_EQ(text(build.add(minus_a, b)), "sub(b, a)");
  EXPECT_EQ(text(build.sub(a, minus_b)), "add(a, b)");
  EXPECT_EQ(text(build.mul(minus_a, minus_b)), "mul(a, b)");
  EXPECT_EQ(text(build.mul(minus_a, b)), "neg(mul(a, b))");
  EXPECT_EQ(text(build.mul(a, minus_b)), "neg(mul(a, b))");
  EXPECT_EQ(text(build.mul(minus_a, constant(2))), "mul(a, -2)");
  EXPECT_EQ(text(build.div(minus_a, b)), "neg(div(a, b))");
  EXPECT_EQ(text(build.div(minus_a, constant(2))), "div(a, -2)");
}

TEST_F(ExpressionBuilding, MakesChoicesOnce) {
  const int not_c = build.make(Opcode::logical_not, c);
  EXPECT_EQ(build.select(c, a, a), a);
  EXPECT_EQ(build.select(constant(2), a, b), a);
  EXPECT_EQ(build.select(constant(0), a, b), b);
  EXPECT_EQ(text(build.select(not_c, a, b)), "select(c, b, a)");
  const int choice = build.select(c, a, b);
  EXPECT_EQ(build.select(c, choice, b), choice);
  EXPECT_EQ(build.select(c, a, choice), choice);
  EXPECT_EQ(build.select(c, choice, a), a);
}

TEST_F(ExpressionBuilding, CopiesWhatIsThereUnchanged) {
  EXPECT_EQ(text(build.copy(Opcode::add, a, constant(0))), "add(a, 0)");
  EXPECT_EQ(text(build.copy(Opcode::add, constant(2), constant(3))), "add(2, 3)");
  EXPECT_EQ(text(build.copy(Opcode::neg, constant(2))), "-2");
  EXPECT_EQ(text(build.copy(Opcode::neg, constant(std::numeric_limits<double>::infinity()))), "neg(inf)");
  EXPECT_EQ(build.copy(Opcode::select, constant(0), a, b), b);
}

}  // namespace
}  // namespace heddle::testing_derive

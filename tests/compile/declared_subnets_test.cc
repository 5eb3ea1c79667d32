// Tests which subnets a plan contains, those that their operators declare, and what the judge reports about variables that they update.
#include <gtest/gtest.h>

#include "compile/plan_check/plan_check.h"
#include "compile/plan_check_nets.h"
#include "compile/spoiled_plan.h"

namespace heddle {
namespace {

using namespace testing_nets;

// If `known`, the first branch is certain to be taken; the other would not fit.
Net branching(bool known) {
  NetBuilder taken("taken"), other("other"), b("branching");
  taken.output(taken.add1("Neg", "neg", {taken.input("x", DeclaredType())}));
  const ValueId x = other.input("x", DeclaredType());
  other.output(known ? other.add1("Add", "add", {x, other.constant("three", blob(Shape{3}, 1, 1))}) : other.add1("Exp", "exp", {x}));
  const ValueId c = known ? yes(b) : b.input("c", DType::boolean, Shape{});
  b.output(b.add1("If", "if", {c, b.input("x", DType::f32, Shape{2})}, {{"then_branch", subnet(taken)}, {"else_branch", subnet(other)}}));
  return b.finish();
}

TEST(DeclaredSubnets, ABranchThatIsNotTakenIsNotCompiled) {
  for (const bool known : {true, false}) {
    const auto plan = plan_of(runtime(), branching(known), {});
    ASSERT_NE(plan, nullptr);
    ASSERT_EQ(plan->steps.size(), 1u);
    std::vector<std::string> names;
    for (const NestedPlan& nested : *plan->steps[0].nested) names.push_back(nested.subnet->name);
    EXPECT_EQ(names, known ? std::vector<std::string>{"taken"} : (std::vector<std::string>{"taken", "other"}));
  }
}

// The branch reads w, and then updates it.
Net updating() {
  NetBuilder branch("branch"), b("updating");
  const ValueId w = branch.input("w", DeclaredType());
  const ValueId read = branch.add1("Exp", "read", {w});
  branch.output(branch.add1("AccumulateAdd", "sum", {w, branch.add1("Neg", "neg", {read})}, {}, "heddle"));
  const auto same = subnet(branch);
  const ValueId variable = b.variable("w", blob(Shape{4}, 1, 1));
  const ValueId next =
      b.add1("If", "if", {b.input("c", DType::boolean, Shape{}), variable}, {{"then_branch", same}, {"else_branch", same}});
  b.updates(next, variable);
  b.output(next);
  return b.finish();
}

TEST(DeclaredSubnets, UpdatesInThemAreJudged) {
  const auto right = plan_of(runtime(), updating(), {});
  ASSERT_NE(right, nullptr);
  EXPECT_TRUE(compiling::check(*right).ok()) << compiling::check(*right).text();
  EXPECT_TRUE(right->has_variable_updates);
  ASSERT_FALSE(right->steps[0].nested->empty());
  const Plan& inner = *right->steps[0].nested->at(0).plan;
  const auto judged = [&](const std::function<void(Spoiled&)>& spoil) {
    Spoiled spoiled{copy_of(inner)};
    spoil(spoiled);
    return compiling::check(spoiled.plan);
  };
  EXPECT_TRUE(judged([](Spoiled&) {}).ok());
  const std::string unmarked = judged([](Spoiled& s) { s.step("sum").updates_variable = false; }).text();
  EXPECT_NE(unmarked.find("an input of the net"), std::string::npos) << unmarked;
  Spoiled outer{copy_of(*right)};
  outer.step("if").updates_variable = false;
  const std::string text = compiling::check(outer.plan).text();
  EXPECT_NE(text.find("writes a variable and is not marked as an update"), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle

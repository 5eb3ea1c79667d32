// Tests which layouts values get.
#include <algorithm>

#include "compile/plan_check_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// This resembles the backward part of a net: an operator that joins two values is not the first reader of one of them.
TEST(Layouts, WhatJoinsValuesTakesThemAsTheyAreThoughOthersReadThemFirst) {
  for (const bool later_first : {false, true}) {
    NetBuilder b("joined");
    const ValueId x = b.input("x", DType::f32, Shape{2, 16, 40, 40});
    const std::vector<int64_t> pads = {1, 1, 1, 1};
    const auto conv = [&](const char* name, ValueId of) {
      return b.add1("Conv", name, {of, b.constant(std::string(name) + "_w", blob(Shape{16, 16, 3, 3}, 0.1f, 0.01f))}, {{"pads", pads}});
    };
    const ValueId early = conv("early", x), late = conv("late", early);
    const ValueId joined = later_first ? b.add1("Mul", "joined", {late, early}) : b.add1("Mul", "joined", {early, late});
    b.output(b.add1("GlobalAveragePool", "mean", {conv("last", joined)}));
    const auto plan = plan_of(runtime(), b.finish(), {true, 2, false});
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->reorders.empty()) << plan->reorders.front().value;
    size_t channels_last = 0;
    for (const PlanValue& value : plan->values) channels_last += value.layout.rank != 0 ? 1 : 0;
    EXPECT_GE(channels_last, 4u);
  }
}

// A gate, one number for each channel, is the same in both orders: the product with it stays channels-last.
TEST(Layouts, WhatBroadcastsKeepsThatOfItsFullOperand) {
  for (const bool gate_first : {false, true}) {
    NetBuilder b("gated");
    const auto conv = [&](const char* name, ValueId of, int64_t kernel) {
      return b.add1("Conv", name, {of, b.constant(std::string(name) + "_w", blob(Shape{16, 16, kernel, kernel}, 0.1f, 0.01f))});
    };
    const ValueId first = conv("first", b.input("x", DType::f32, Shape{2, 16, 40, 40}), 3);
    const ValueId gate = conv("gate", b.add1("GlobalAveragePool", "squeezed", {first}), 1);
    const ValueId gated = gate_first ? b.add1("Mul", "gated", {gate, first}) : b.add1("Mul", "gated", {first, gate});
    b.output(b.add1("GlobalAveragePool", "mean", {conv("last", gated, 3)}));
    const auto plan = plan_of(runtime(), b.finish(), {true, 2, false});
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->reorders.empty()) << plan->reorders.front().value;
    EXPECT_EQ(std::count_if(plan->values.begin(), plan->values.end(),
                            [](const PlanValue& value) { return value.name == "gated" && value.layout.rank != 0; }),
              1);
  }
}

}  // namespace
}  // namespace heddle

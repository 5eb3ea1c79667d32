// The judge of whole plans accepts the plans of the compiler and rejects each way in which a plan may be wrong.
#include "compile/plan_check/plan_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compile/plan_check_nets.h"
#include "compile/spoiled_plan.h"

namespace heddle {
namespace {

using namespace testing_nets;
using compiling::check;

TEST(PlanCheck, TakesWhatTheCompilerMakes) {
  const Runtime r = runtime();
  for (Net (*make)() : {+[] { return convolution_net(2); }, residual_net, variables_net, fork_join_net, bounded_net, loop_net})
    for (const bool share_memory : {true, false})
      for (const uint32_t threads : {1, 4})
        for (const bool transforms : {true, false}) {
          const auto plan = plan_of(r, make(), {share_memory, threads, transforms});
          ASSERT_NE(plan, nullptr);
          const Status status = check(*plan);
          EXPECT_TRUE(status.ok()) << status.text() << plan->net_name << ", " << threads << " threads, sharing " << share_memory
                                   << ", transforms " << transforms;
        }
}

TEST(PlanCheck, TakesTwoHundredRandomNets) {
  const Runtime r = runtime();
  int in_place = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto plan = plan_of(r, random_operators(seed), {seed % 5 != 0, seed % 2 == 0 ? 1u : 4u, seed % 3 == 0});
    ASSERT_NE(plan, nullptr) << "seed " << seed;
    const Status status = check(*plan);
    ASSERT_TRUE(status.ok()) << status.text() << "seed " << seed;
    for (const PlanStep& step : plan->steps)
      for (const Operand& in : step.inputs)
        if (in.value.valid() && plan->values[in.value.index].place.kind == MemoryPlace::Kind::arena &&
            plan->values[in.value.index].place.offset == plan->values[step.outputs[0].value.index].place.offset)
          ++in_place;
  }
  EXPECT_GT(in_place, 100);
}

// Changes after which a valid plan is still valid; the corruptions below build on them.
TEST(PlanCheck, TakesWhatIsRightThoughThePlannerDidNotMakeIt) {
  const std::shared_ptr<const Plan> right = plan_of(runtime(), example_net(), {false, 4, false});
  ASSERT_NE(right, nullptr);
  const auto expect_taken = [&](const std::function<void(Spoiled&)>& change) {
    Spoiled s{copy_of(*right)};
    change(s);
    EXPECT_TRUE(check(s.plan).ok()) << check(s.plan).text();
  };
  expect_taken([](Spoiled&) {});
  expect_taken([](Spoiled& s) { s.take_over("s", "q"); });
  expect_taken([](Spoiled& s) {
    s.take_over("s", "q");
    s.take_over("t", "q");
    s.take_over("v", "q");
  });
  expect_taken([](Spoiled& s) {
    s.move("t", "p");
    s.move("v", "p");
  });
  expect_taken([](Spoiled& s) {
    s.add_edge("q", "z");
    s.add_edge("r", "z");
    s.move("z", "p");
  });
  expect_taken([](Spoiled& s) { s.scratch("u", 256, s.place("p").offset); });
  expect_taken([](Spoiled& s) { s.plan.graph.tail_begin = s.plan.graph.count; });
}

struct Corruption {
  const char* what;
  const char* named;  // a part of the message
  std::function<void(Spoiled&)> apply;
};

std::vector<Corruption> corruptions() {
  return {
      // Edges of the graph.
      {"an edge from writer to reader removed", "step \"q\" (", [](Spoiled& s) { s.remove_edge("p", "q"); }},
      {"the same, the reader has a view", "reads value \"v\" and does not run after", [](Spoiled& s) { s.remove_edge("t", "u"); }},
      {"an edge turned round", "against plan order",
       [](Spoiled& s) {
         s.remove_edge("p", "q");
         s.add_edge("q", "p");
       }},
      {"a cycle", "against plan order", [](Spoiled& s) { s.add_edge("u", "q"); }},
      {"a step that waits for itself", "against plan order", [](Spoiled& s) { s.add_edge("u", "u"); }},
      {"a predecessor too many", "predecessors", [](Spoiled& s) { ++s.plan.graph.predecessor_count[s.number("t")]; }},
      {"a predecessor too few", "predecessors", [](Spoiled& s) { --s.plan.graph.predecessor_count[s.number("t")]; }},
      {"an edge into nowhere", "successor that is not there", [](Spoiled& s) { s.plan.graph.successors[0] = s.plan.graph.count; }},
      {"arrays of different lengths", "do not fit", [](Spoiled& s) { s.plan.graph.cost_ns.pop_back(); }},
      {"a step more than the graph has", "the graph has", [](Spoiled& s) { s.plan.steps.emplace_back(); }},
      {"a tail behind the end", "the update phase begins", [](Spoiled& s) { s.plan.graph.tail_begin = s.plan.graph.count + 1; }},
      {"an update before the tail", "updates a variable before the tail",
       [](Spoiled& s) { s.plan.graph.tail_begin = s.number("first") + 1; }},
      {"more than updates in the tail", "neither an update nor after one", [](Spoiled& s) { s.plan.graph.tail_begin = s.number("u"); }},
      {"a step on a device that is not there", "step \"q\" (1) is on a device that is not there",
       [](Spoiled& s) { s.step("q").on_device = std::make_unique<DeviceWork>(); }},
      {"a step of the host behind one that is enqueued", "relies on step \"q\" (1), which is only enqueued",
       [](Spoiled& s) {
         s.plan.devices.emplace_back();
         s.step("q").on_device = std::make_unique<DeviceWork>();
       }},
      {"two steps on one stream in no order", "call for one stream in no order",
       [](Spoiled& s) {
         s.plan.devices.emplace_back();
         for (const char* name : {"there", "z"}) s.step(name).on_device = std::make_unique<DeviceWork>();
       }},
      {"a fence that the scheduler would run", "is a fence that is run",
       [](Spoiled& s) {
         s.plan.devices.emplace_back();
         s.step("z").on_device = std::make_unique<DeviceWork>();
         s.step("z").on_device->kind = DeviceWork::Kind::fence;
       }},
      {"a fence behind a step that does not ask for it", "is a fence that nobody completes",
       [](Spoiled& s) {
         s.plan.devices.emplace_back();
         s.step("z").on_device = std::make_unique<DeviceWork>();
         s.step("z").on_device->kind = DeviceWork::Kind::fence;
         s.plan.graph.flags[s.number("z")] = step_awaited;
       }},
      // Writers of values.
      {"an output written by nobody", "value \"p\", which nobody writes", [](Spoiled& s) { s.step("p").outputs.clear(); }},
      {"an output of the net written by nobody", "the caller reads value \"z\", which nobody writes",
       [](Spoiled& s) { s.step("z").outputs.clear(); }},
      {"an output listed twice", "writes value \"q\" twice", [](Spoiled& s) { s.step("q").outputs.push_back(s.step("q").outputs[0]); }},
      {"a value written by two steps", "as does step \"q\"", [](Spoiled& s) { s.step("r").outputs[0].value = s.id("q"); }},
      {"a constant written", "writes value \"w\", a constant", [](Spoiled& s) { s.step("z").outputs[0].value = s.id("w"); }},
      {"an input written", "writes value \"x\", an input", [](Spoiled& s) { s.step("z").outputs[0].value = s.id("x"); }},
      {"an output without memory", "value \"z\", which has no memory", [](Spoiled& s) { s.place("z").kind = MemoryPlace::Kind::none; }},
      {"an operand that is not there", "operand that is not there", [](Spoiled& s) { s.step("u").inputs[0].value = ValueId(9999); }},
      {"an output of the net that is not there", "of the net is not there", [](Spoiled& s) { s.plan.outputs[0] = ValueId(9999); }},
      {"two values with one slot for extents", "slot", [](Spoiled& s) { s.value("there").extent_slot = s.value("where").extent_slot; }},
      // Places of values.
      {"a negative offset", "value \"q\" lies at the negative offset", [](Spoiled& s) { s.place("q").offset = -64; }},
      {"a misaligned offset", "no multiple of 64", [](Spoiled& s) { s.place("q").offset += 4; }},
      {"a value beyond the arena", "value \"q\" ends beyond the arena", [](Spoiled& s) { s.place("q").offset = s.plan.arena_bytes - 64; }},
      {"an offset that wraps", "value \"q\" ends beyond the arena", [](Spoiled& s) { s.place("q").offset = INT64_MAX - 63; }},
      {"an arena too small", "ends beyond the arena", [](Spoiled& s) { s.report(s.plan.arena_bytes - 64); }},
      {"an arena larger than its content", "its content ends at", [](Spoiled& s) { s.report(s.plan.arena_bytes + 64); }},
      {"a wrong peak", "the peak is reported", [](Spoiled& s) { s.plan.memory.peak_bytes -= 64; }},
      {"a wrong report of the arena", "the arena is reported", [](Spoiled& s) { s.plan.memory.arena_bytes -= 64; }},
      {"too little thread scratch", "more thread scratch",
       [](Spoiled& s) { s.step("q").thread_scratch_bytes = s.plan.thread_scratch_bytes + 1; }},
      {"a constant that is not there", "value \"w\" lies in a memory that is not there", [](Spoiled& s) { s.place("w").index = 99; }},
      {"a device that is not there", "value \"q\" lies in a memory that is not there", [](Spoiled& s) { s.place("q").device = 1; }},
      {"a view with other bytes", "has other bytes", [](Spoiled& s) { s.move("v", "p"); }},
      // Overwritten bytes.
      {"two values alive together in one place", "over value \"r\"", [](Spoiled& s) { s.move("r", "q"); }},
      {"the same, in part", "over value \"r\"", [](Spoiled& s) { s.move("r", "q", 64); }},
      {"a write before another branch has read", "may write value \"z\" over value \"p\" before step \"r\"",
       [](Spoiled& s) {
         s.add_edge("q", "z");
         s.move("z", "p");
       }},
      {"two writes in no order", "may write value \"p\" over value \"z\" before step \"z\"",
       [](Spoiled& s) {
         s.step("q").inputs[0].value = s.step("r").inputs[0].value = s.id("x");
         s.move("z", "p");
       }},
      {"a write between write and read, all in order", "may write value \"s\" over value \"p\" before step \"r\"",
       [](Spoiled& s) {
         s.add_edge("s", "r");
         s.move("s", "p");
       }},
      {"an output of the net overwritten before the end", "may write value \"z\" over value \"u\" before the caller",
       [](Spoiled& s) {
         s.add_edge("there", "z");
         s.move("z", "u");
       }},
      {"an output over an input that is not shared", "without sharing its buffer", [](Spoiled& s) { s.move("s", "q"); }},
      {"in place of an input that is read later", "may write value \"s\" over value \"q\" before step \"t\"",
       [](Spoiled& s) {
         s.take_over("s", "q");
         s.step("t").inputs[1].value = s.id("q");
       }},
      {"in place of an input that another operand reads too", "over its input value \"s\", which another operand reads too",
       [](Spoiled& s) {
         s.step("t").inputs[1].value = s.id("s");
         s.take_over("t", "s");
         s.take_over("v", "s");
       }},
      {"in place where the operator does not declare it", "which the operator does not declare", [](Spoiled& s) { s.take_over("u", "v"); }},
      {"scratch over a value of another branch", "the scratch of step \"r\"", [](Spoiled& s) { s.scratch("r", 64, s.place("q").offset); }},
      {"scratch over the step's own input", "the scratch of step \"u\"", [](Spoiled& s) { s.scratch("u", 64, s.place("t").offset + 64); }},
      {"scratch over the step's own output", "the scratch of step \"u\"", [](Spoiled& s) { s.scratch("u", 64, s.place("u").offset); }},
      {"scratch of two branches in one place", "the scratch of step \"r\"",
       [](Spoiled& s) {
         s.scratch("r", 64, s.plan.arena_bytes);
         s.scratch("q", 64, s.plan.arena_bytes);
         s.fit();
       }},
      {"misaligned scratch", "no multiple of 64", [](Spoiled& s) { s.scratch("u", 64, 4); }},
      {"scratch beyond the arena", "ends beyond the arena", [](Spoiled& s) { s.scratch("u", 64, s.plan.arena_bytes); }},
      {"scratch of a negative size", "negative size", [](Spoiled& s) { s.scratch("u", -64, 0); }},
      // Variables.
      {"a variable's update before a reader", "may write value \"first\" over value \"n\" before step \"old\"",
       [](Spoiled& s) { s.remove_edge("old", "first"); }},
      {"the old version read behind the update", "may write value \"first\" over value \"n\" before step \"middle\"",
       [](Spoiled& s) { s.step("middle").inputs[0].value = s.id("n"); }},
      {"two updates in no order", "over value \"n\"",
       [](Spoiled& s) {
         s.step("second").inputs[0].value = s.id("n");
         s.remove_edge("first", "second");
         s.remove_edge("middle", "second");
       }},
      {"a version read when the next may be there", "may write value \"second\" over value \"first\" before step \"middle\"",
       [](Spoiled& s) { s.remove_edge("middle", "second"); }},
      {"an update that is none", "not marked as an update", [](Spoiled& s) { s.step("first").updates_variable = false; }},
      {"a net that says it updates nothing", "whether there are updates", [](Spoiled& s) { s.plan.has_variable_updates = false; }},
      {"a variable that is not there", "lies in a memory that is not there", [](Spoiled& s) { s.place("n").index = 7; }},
  };
}

TEST(PlanCheck, RejectsTwentyCorruptions) {
  const std::shared_ptr<const Plan> right = plan_of(runtime(), example_net(), {false, 4, false});
  ASSERT_NE(right, nullptr);
  const std::vector<Corruption> all = corruptions();
  EXPECT_GE(all.size(), 20u);
  for (const Corruption& corruption : all) {
    Spoiled s{copy_of(*right)};
    corruption.apply(s);
    const Status status = check(s.plan);
    ASSERT_FALSE(status.ok()) << corruption.what;
    EXPECT_EQ(status.code(), Code::internal);
    EXPECT_NE(status.text().find(corruption.named), std::string::npos) << corruption.what << ": " << status.text();
  }
  std::printf("%zu corruptions rejected\n", all.size());
}

TEST(PlanCheck, RejectsWrongSubnets) {
  const std::shared_ptr<const Plan> right = plan_of(runtime(), loop_net(), {});
  ASSERT_NE(right, nullptr);
  Spoiled s{copy_of(*right)};
  ASSERT_TRUE(check(s.plan).ok()) << check(s.plan).text();
  ASSERT_FALSE(s.step("loop").nested->empty());
  Spoiled inner{copy_of(*s.step("loop").nested->at(0).plan)};
  inner.move("cube", "soft");
  s.step("loop").nested.edit()[0].plan = std::make_shared<const Plan>(std::move(inner.plan));
  const std::string text = check(s.plan).text();
  EXPECT_NE(text.find("in a subnet of step \"loop\""), std::string::npos) << text;
  // The subnet's memory counts as its step's scratch.
  Spoiled outer{copy_of(*right)};
  outer.place("negated").offset = outer.step("loop").scratch_offset;
  EXPECT_NE(check(outer.plan).text().find("the scratch of step \"loop\""), std::string::npos) << check(outer.plan).text();
}

// This is the failure that earlier verifiers missed: a plan that is right in plan order and wrong when branches run side by side.
TEST(PlanCheck, RejectsPlansForOneThreadWhenSeveralRunThem) {
  const std::shared_ptr<const Plan> right = plan_of(runtime(), fork_join_net(), {true, 1, false});
  ASSERT_NE(right, nullptr);
  ASSERT_TRUE(check(*right).ok()) << check(*right).text();
  Spoiled s{copy_of(*right)};
  s.plan.max_threads = 4;
  s.report(s.plan.arena_bytes);
  EXPECT_NE(check(s.plan).text().find("may write"), std::string::npos) << check(s.plan).text();
}

// No operator's output takes bytes of an input whose last reader it is, unless its schema allows it.
TEST(PlanCheck, PlansTakeNoInputsBytesUndeclared) {
  const Runtime r = runtime();
  for (const uint32_t threads : {1, 4}) {
    NetBuilder b("products");
    const ValueId x = b.input("x", DType::f32, Shape{8, 8});
    ValueId last = x;
    for (int i = 0; i < 6; ++i) last = b.add1("MatMul", "p" + std::to_string(i), {last, x});
    b.output(b.add1("Sum", "sum", {last, last}));
    const std::shared_ptr<const Plan> plan = plan_of(r, b.finish(), {true, threads, false});
    ASSERT_NE(plan, nullptr);
    EXPECT_TRUE(check(*plan).ok()) << check(*plan).text();
    for (const PlanStep& step : plan->steps)
      for (const Operand& in : step.inputs) {
        const MemoryPlace &from = plan->values[in.value.index].place, &to = plan->values[step.outputs[0].value.index].place;
        EXPECT_TRUE(from.kind != MemoryPlace::Kind::arena || from.offset != to.offset) << step.name;
      }
    // The judge reports an output that does.
    Spoiled s{copy_of(*plan)};
    s.move("p1", "p0");
    EXPECT_FALSE(check(s.plan).ok());
    s.take_over("p1", "p0");
    EXPECT_FALSE(check(s.plan).ok());
  }
}

}  // namespace
}  // namespace heddle

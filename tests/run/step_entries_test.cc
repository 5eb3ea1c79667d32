// The table of how steps are called: each combination of traits is in it or impossible, and nets reach each of its rows.
#include "run/step_entries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

std::vector<StepTraits> all_combinations() {
  std::vector<StepTraits> all;
  for (const StepSite site : {StepSite::host, StepSite::kernel, StepSite::copy, StepSite::fence})
    for (const StepWork work : {StepWork::none, StepWork::some, StepWork::ranges})
      for (unsigned bits = 0; bits < 16; ++bits)
        all.push_back({site, work, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0});
  return all;
}

std::string text(const StepTraits& traits) {
  constexpr const char* sites[] = {"host", "kernel", "copy", "fence"};
  constexpr const char* works[] = {"no tiles", "some", "ranges"};
  std::string made = std::string(sites[static_cast<int>(traits.site)]) + ", " + works[static_cast<int>(traits.work)];
  if (traits.late) made += ", late";
  if (traits.reads_extents) made += ", reads extents";
  if (traits.asynchronous) made += ", asynchronous";
  if (traits.suspends) made += ", suspends";
  return made;
}

TEST(StepEntries, EachCombinationHasOneRowOrAReasonWhyNoStepIsSo) {
  int possible = 0;
  for (const StepTraits& traits : all_combinations()) {
    SCOPED_TRACE(text(traits));
    const auto matches = [&](const auto& one) { return one.of.matches(traits); };
    const auto rows = std::count_if(step_entries().begin(), step_entries().end(), matches);
    const bool excluded = std::any_of(impossible_steps().begin(), impossible_steps().end(), matches);
    EXPECT_EQ(rows, excluded ? 0 : 1);
    EXPECT_EQ(find_entry(traits) != nullptr, !excluded);
    possible += excluded ? 0 : 1;
  }
  std::printf("%zu combinations, %d possible, in %zu rows\n", all_combinations().size(), possible, step_entries().size());
}

TEST(StepEntries, EachRowAndEachReasonIsForSomeCombination) {
  const std::vector<StepTraits> all = all_combinations();
  const auto some = [&](const auto& one) {
    return std::any_of(all.begin(), all.end(), [&](const StepTraits& traits) { return one.of.matches(traits); });
  };
  for (const StepEntry& entry : step_entries()) EXPECT_TRUE(some(entry)) << "row " << &entry - step_entries().data();
  for (const ImpossibleStep& one : impossible_steps()) {
    EXPECT_TRUE(some(one)) << one.why;
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(HEDDLE_SOURCE_DIR) / "runtime" / one.file)) << one.file;
  }
}

// ---------------------------------------------------------------- nets

// The rows that the steps of a plan, and of the nets inside it, are called by.
void note_rows(const Plan& plan, std::set<const StepEntry*>& rows) {
  for (const PlanStep& step : plan.steps) {
    const StepEntry* const entry = find_entry(traits_of(step));
    ASSERT_NE(entry, nullptr) << step.name << ": " << text(traits_of(step));
    rows.insert(entry);
    for (const NestedPlan& nested : *step.nested) note_rows(*nested.plan, rows);
  }
}

ValueId add(NetBuilder& b, const std::string& type, const std::string& name, const std::vector<ValueId>& inputs,
            std::vector<Attribute> attributes = {}) {
  return b.add1(type, name, inputs, std::move(attributes), "steps");
}

// Adds a step whose subnet has an asynchronous step.
ValueId around(NetBuilder& b, const std::string& type, const std::string& name, const std::vector<ValueId>& inputs, const Dim& length) {
  NetBuilder body("body_of_" + name);
  body.output(add(body, "Started", "inside", {body.input("x", DeclaredType{DType::f32, true, {length}})}));
  return add(b, type, name, inputs, {{"body", subnet(body)}});
}

constexpr int64_t length = 6;

// Five outputs are x, seven its positive elements, two are empty; then come -x and the negated positive elements from a device.
constexpr int same = 5, positives = 7;
Net net_of_all() {
  NetBuilder b("all");
  const ValueId x = b.input("x", DType::f32, Shape{length});
  const ValueId bounded = add(b, "Bounded", "bounded", {x}), dynamic = add(b, "Dynamic", "dynamic", {x});
  b.output(add(b, "Whole", "whole", {x}));
  b.output(add(b, "Tiled", "tiled", {x}));
  b.output(add(b, "Started", "started", {x}));
  b.output(around(b, "Around", "around", {x}, Dim::of(length)));
  b.output(around(b, "AroundReads", "around_reads", {bounded, x}, Dim::of(length)));
  b.output(bounded);
  b.output(add(b, "WholeReads", "whole_reads", {bounded}));
  b.output(add(b, "TiledReads", "tiled_reads", {bounded}));
  b.output(add(b, "StartedReads", "started_reads", {bounded}));
  b.output(add(b, "Whole", "late", {bounded}));
  b.output(add(b, "Started", "late_started", {bounded}));
  b.output(around(b, "Around", "late_around", {bounded}, Dim()));
  const ValueId empty = b.input("e", DType::f32, Shape{0});
  b.output(add(b, "Whole", "nothing", {empty}));
  b.output(add(b, "Started", "nothing_started", {empty}));
  for (const ValueId from : {x, dynamic}) {
    const ValueId negated = b.add1("Neg", from == x ? "negated" : "late_negated", {from});
    b.net()[b.net()[negated].producer].device = "sim:0";
    b.output(negated);
  }
  return b.finish();
}

TEST(StepEntries, NetsReachEachRow) {
  std::set<const StepEntry*> rows;
  for (const int threads : {1, 3}) {
    RuntimeOptions options;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so", HEDDLE_BINARY_DIR "/lib/test/steps.so"};
    options.default_plugins = false;
    options.threads = threads;
    const auto runtime = Runtime::create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().text();
    Session session = open(*runtime, net_of_all());
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    note_rows(Internals::execution(*context).plan(), rows);
    for (const float sign : {1.0F, -1.0F}) {
      std::vector<float> x(length), positive;
      for (int64_t i = 0; i < length; ++i) x[static_cast<size_t>(i)] = sign * static_cast<float>(i - 1);
      std::copy_if(x.begin(), x.end(), std::back_inserter(positive), [](float v) { return v > 0; });
      ASSERT_TRUE(context->bind_input(0, x.data()).ok());
      ASSERT_TRUE(context->bind_input(1, x.data()).ok());
      const Status status = context->run();
      ASSERT_TRUE(status.ok()) << status.text();
      const auto output = [&](int i) {
        const TensorView y = context->output(static_cast<size_t>(i));
        const auto* const data = static_cast<const float*>(y.data);
        return std::vector<float>(data, data + y.shape.element_count());
      };
      const auto minus = [](std::vector<float> v) {
        for (float& each : v) each = -each;
        return v;
      };
      int i = 0;
      for (; i < same + positives; ++i) EXPECT_EQ(output(i), i < same ? x : positive) << "output " << i;
      EXPECT_TRUE(output(i++).empty());
      EXPECT_TRUE(output(i++).empty());
      EXPECT_EQ(output(i++), minus(x));
      EXPECT_EQ(output(i++), minus(positive));
    }
  }
  for (const StepEntry& entry : step_entries())
    EXPECT_EQ(rows.count(&entry), 1u) << "no step has the traits of row " << &entry - step_entries().data();
}

}  // namespace
}  // namespace heddle

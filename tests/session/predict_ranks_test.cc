// The time that a run of several ranks is predicted to take, for plans made by hand.
#include <gtest/gtest.h>

#include "heddle/plan_info.h"

namespace heddle {
namespace {

// Two layers of a backward pass, each with the all-reduce of its gradient, and the update of both.
//   0 last.backward (100) -> 1 last.sum, 2 first.backward (300) -> 3 first.sum -> 4 update (10), tail
PlanInfo two_layers(int64_t bytes) {
  PlanInfo plan;
  plan.values.resize(2);
  for (PlanInfo::Value& value : plan.values) value.bytes = bytes;
  const auto add = [&](const char* name, std::vector<size_t> successors) -> PlanInfo::Step& {
    PlanInfo::Step& step = plan.steps.emplace_back();
    step.name = name;
    step.successors = std::move(successors);
    return step;
  };
  add("last.backward", {1, 2});
  add("last.sum", {4}).inputs.push_back({0, ""});
  add("first.backward", {3});
  add("first.sum", {4}).inputs.push_back({1, ""});
  add("update", {}).tail = true;
  for (const char* const name : {"last.sum", "first.sum"}) plan.collectives.emplace_back().name = name;
  return plan;
}
const std::vector<int64_t> times = {100'000, 0, 300'000, 0, 10'000};

TEST(PredictRanks, ShortSumsTakeMessagesAndLongOnesBytes) {
  RankLink link{2, 50'000, 10'000, 0.8};
  EXPECT_EQ(all_reduce_ns(0, link), 0);
  EXPECT_EQ(all_reduce_ns(1000, link), 10'000 + 800 + 50'000);
  EXPECT_EQ(all_reduce_ns(1 << 20, link), 2 * 50'000 + 2 * 10'000 + static_cast<int64_t>(0.8 * (1 << 20)));
  link.ranks = 16;  // along a tree: four steps there and four back
  EXPECT_EQ(all_reduce_ns(1000, link), 8 * (10'000 + 50'000 + 800));
  EXPECT_EQ(all_reduce_ns(1 << 20, link), 2 * 50'000 + 30 * 10'000 + static_cast<int64_t>(0.8 * 2 * 15 / 16 * (1 << 20)));
  link.ranks = 1;
  EXPECT_EQ(all_reduce_ns(1 << 20, link), 0);
}

TEST(PredictRanks, WhatIsUnderWayBesideOtherStepsIsNotExposed) {
  const PlanInfo plan = two_layers(1 << 20);
  const RankLink link{2, 10'000, 0, 0.2};
  const int64_t sum = all_reduce_ns(1 << 20, link), agreement = 10'000 + 1;  // the first sum is hidden by 300 us of the first layer
  const PredictedStep step = predict_step(plan, times, link);
  EXPECT_NEAR(static_cast<double>(step.communication_ns), 2.0 * static_cast<double>(sum), 2);
  EXPECT_NEAR(static_cast<double>(step.ns), static_cast<double>(400'000 + sum + agreement + 10'000), 3);
  EXPECT_NEAR(static_cast<double>(step.exposed_ns), static_cast<double>(sum + agreement), 3);
}

TEST(PredictRanks, CollectivesFollowEachOther) {
  const RankLink link{2, 0, 0, 1};  // each takes 1,048,576 ns, longer than what goes on beside it
  const PredictedStep step = predict_step(two_layers(1 << 20), times, link);
  EXPECT_NEAR(static_cast<double>(step.ns), 100'000 + 2.0 * (1 << 20) + 10'000, 20);
}

TEST(PredictRanks, WhatIsGatheredComesFromAllOthers) {
  PlanInfo plan = two_layers(1 << 20);
  for (const size_t step : {1, 3}) plan.steps[step].type = "AllGather";
  const int64_t each = 3 * (10'000 + 2 * (1 << 20)) + 50'000;
  EXPECT_EQ(predict_step(plan, times, RankLink{4, 50'000, 10'000, 2}).communication_ns, 2 * each);
  EXPECT_EQ(predict_step(plan, times, RankLink{1, 50'000, 10'000, 2}).communication_ns, 0);
}

TEST(PredictRanks, BytesTakeThePredictedTimeFromStepsThatShareAProcessor) {
  const PlanInfo plan = two_layers(1 << 20);
  RankLink link{2, 0, 0, 0.15};
  const PredictedStep apart = predict_step(plan, times, link);
  link.processor_ns_per_byte = 0.1;
  const double each = 0.1 * (1 << 20);
  const PredictedStep shared = predict_step(plan, times, link);
  EXPECT_EQ(shared.communication_ns, apart.communication_ns);
  EXPECT_NEAR(static_cast<double>(shared.ns - apart.ns), each, 2);
  EXPECT_NEAR(static_cast<double>(shared.exposed_ns - apart.exposed_ns), each, 2);
  link.ranks = 4;  // each receives half as much again
  const PredictedStep four = predict_step(plan, times, link);
  link.processor_ns_per_byte = 0;
  EXPECT_NEAR(static_cast<double>(four.ns - predict_step(plan, times, link).ns), 1.5 * each, 2);
  link = {1, 0, 0, 0, 1};
  EXPECT_EQ(predict_step(plan, times, link).ns, 410'000);
}

TEST(PredictRanks, OneRankTakesWhatItsStepsTake) {
  const PredictedStep step = predict_step(two_layers(1 << 20), times, RankLink());
  EXPECT_EQ(step.ns, 410'000);
  EXPECT_EQ(step.communication_ns, 0);
  EXPECT_EQ(step.exposed_ns, 0);
}

}  // namespace
}  // namespace heddle

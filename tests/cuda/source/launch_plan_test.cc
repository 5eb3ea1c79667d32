// The capacity of a plan of launches, and the error if something does not fit.
#include "generate/launch_plan.h"

#include <gtest/gtest.h>

#include <memory>

namespace heddle::cuda {
namespace {

TEST(LaunchPlan, MoreParametersThanAStepHasRoomForAreRefused) {
  const auto plan = std::make_unique<LaunchPlan>();
  Launch& launch = plan->add(0, 32, 1);
  ParameterWriter writer(nullptr, &launch);
  for (size_t i = 0; i < Launch::max_addresses; ++i) writer.address("", "u8", "x", Address::input, static_cast<uint32_t>(i));
  for (size_t i = Launch::max_addresses; i < Launch::max_words; ++i) writer.number("n", static_cast<int64_t>(i));
  EXPECT_TRUE(plan->check().ok());
  EXPECT_EQ(launch.words.back(), static_cast<int64_t>(Launch::max_words) - 1);
  writer.number("n", int64_t{7});
  EXPECT_EQ(plan->check().code, HEDDLE_ERROR_UNSUPPORTED);
  EXPECT_EQ(plan->check().text, "a kernel's parameters are more than the 100 words and 24 addresses that there is room for");
  EXPECT_EQ(launch.word_count, Launch::max_words);

  ParameterWriter again(nullptr, &plan->add(0, 32, 1));
  for (size_t i = 0; i <= Launch::max_addresses; ++i) again.address("", "u8", "x", Address::input, 0);
  EXPECT_EQ(plan->launches[1].check().code, HEDDLE_ERROR_UNSUPPORTED) << "fewer words, and an address too many";
}

TEST(LaunchPlan, MoreStepsThanItHasRoomForAreRefused) {
  const auto plan = std::make_unique<LaunchPlan>();
  for (uint32_t i = 0; i < LaunchPlan::max_launches; ++i) plan->add(i, 32, 1);
  EXPECT_TRUE(plan->check().ok());
  plan->add(99, 32, 1);
  EXPECT_EQ(plan->launch_count, LaunchPlan::max_launches);
  EXPECT_EQ(plan->check().code, HEDDLE_ERROR_UNSUPPORTED);
  EXPECT_EQ(plan->check().text, "it takes more than the 26 launches that there is room for");
}

}  // namespace
}  // namespace heddle::cuda

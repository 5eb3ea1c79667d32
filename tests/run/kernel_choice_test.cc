// The next kernel is used when the first answers "unsupported", but only if it can keep the epilogue (tests/plugins/fallback.cc).
#include <gtest/gtest.h>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// Returns y = fallback::Times(x), through Relu when `fused`.
Result<std::vector<float>> times(int64_t count, bool fused) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/test/fallback.so"};
  options.default_plugins = false;
  options.threads = 1;
  HEDDLE_TRY(const Runtime runtime, Runtime::create(options));
  NetBuilder b("times");
  ValueId y = b.add1("Times", "times", {b.input("x", DType::f32, Shape{count})}, {}, "fallback");
  if (fused) y = b.add1("Relu", "relu", {y});
  b.output(y);
  std::vector<float> x(static_cast<size_t>(count), 2);
  HEDDLE_TRY(Session session, runtime.open(b.finish(), {}));
  HEDDLE_TRY(const std::vector<Tensor> result, session.run({{DType::f32, Shape{count}, x.data()}}));
  const auto* data = static_cast<const float*>(result[0].data());
  return std::vector<float>(data, data + count);
}

TEST(KernelChoice, TheFirstThatDoesTheNodeRuns) {
  const auto even = times(4, false);
  ASSERT_TRUE(even.ok()) << even.status().text();
  EXPECT_EQ((*even)[0], 4.0f);
  const auto odd = times(3, false);
  ASSERT_TRUE(odd.ok()) << odd.status().text();
  EXPECT_EQ((*odd)[0], 5.0f);
}

TEST(KernelChoice, WhatWasFusedIsNotDropped) {
  const auto even = times(4, true);
  ASSERT_TRUE(even.ok()) << even.status().text();
  EXPECT_EQ((*even)[0], 4.0f);
  const auto odd = times(3, true);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.status().code(), Code::unsupported) << odd.status().text();
  EXPECT_NE(odd.status().text().find("an odd number of elements"), std::string::npos);
}

}  // namespace
}  // namespace heddle

// Random operators: the generator against published vectors, independence of the split, dependence on seed and step, moments.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/op/philox.h"
#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

// The known answers of Random123's distribution (kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedNumbers) {
  using Block = plugin::Philox::Block;
  EXPECT_EQ(plugin::Philox::rounds({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(plugin::Philox::rounds({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(plugin::Philox::rounds({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

OperatorCall random_call(const std::string& type, int64_t count, int64_t dtype = 1) {
  return call_of(type, {}, {{"shape", std::vector<int64_t>{count}}, {"dtype", dtype}});
}

TEST(Random, DependsOnSeedAndStepAndNotOnTheSplit) {
  OperatorCall call = random_call("RandomUniform", 1000003);
  call.random_seed = 7;
  const auto first = values<float>(*run(call).at(0));
  call.split_seed = 11;
  EXPECT_EQ(values<float>(*run(call).at(0)), first);
  call.step = 1;
  EXPECT_NE(values<float>(*run(call).at(0)), first);
  call.step = 0;
  call.random_seed = 8;
  EXPECT_NE(values<float>(*run(call).at(0)), first);
}

template <class T>
void expect_moments(const OperatorCall& call, double mean, double variance) {
  const auto v = values<T>(*run(call).at(0));
  double sum = 0, squares = 0;
  for (T x : v) sum += static_cast<double>(x);
  const double n = static_cast<double>(v.size());
  for (T x : v) squares += (static_cast<double>(x) - sum / n) * (static_cast<double>(x) - sum / n);
  EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n, variance, 0.02 * variance);
}

TEST(Random, HasTheMomentsOfItsDistribution) {
  expect_moments<float>(random_call("RandomUniform", 200000), 0.5, 1.0 / 12);
  expect_moments<double>(random_call("RandomUniform", 200000, 11), 0.5, 1.0 / 12);
  expect_moments<float>(random_call("RandomNormal", 200000), 0, 1);
  expect_moments<double>(random_call("RandomNormal", 200000, 11), 0, 1);
  OperatorCall scaled = random_call("RandomNormal", 200000);
  scaled.attributes.push_back({"mean", 3.0});
  scaled.attributes.push_back({"scale", 2.0});
  expect_moments<float>(scaled, 3, 4);
}

TEST(Bernoulli, FollowsItsProbabilities) {
  const std::vector<float> p(100000, 0.25f);
  const auto v = values<uint8_t>(*run1("Bernoulli", {tensor<float>({100000}, p)}, {{"dtype", int64_t{2}}}));
  const auto ones = std::count(v.begin(), v.end(), 1);
  EXPECT_EQ(ones + std::count(v.begin(), v.end(), 0), 100000);
  EXPECT_NEAR(static_cast<double>(ones), 25000, 700);
}

TEST(Multinomial, DrawsClassesInProportion) {
  const Tensor x = tensor<float>({2, 3}, {std::log(0.5f), std::log(0.25f), std::log(0.25f), -1e30f, 5, -1e30f});
  const auto v = values<int32_t>(*run1("Multinomial", {x}, {{"sample_size", int64_t{20000}}}));
  EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.begin() + 20000, 0)), 10000, 400);
  EXPECT_EQ(std::count(v.begin() + 20000, v.end(), 1), 20000);
}

TEST(Dropout, KeepsTheMeanInTrainingAndEverythingOtherwise) {
  std::vector<float> ones(100000, 1.0f);
  const Tensor x = tensor<float>({100000}, ones), ratio = tensor<float>({}, {0.75f});
  const auto still = run(call_of("Dropout", {x, ratio}, {}, 2));
  ASSERT_EQ(still.size(), 2u);
  EXPECT_EQ(values<float>(*still[0]), ones);
  OperatorCall call = call_of("Dropout", {x, ratio, booleans({}, {1})}, {}, 2);
  const auto trained = run(call);
  ASSERT_EQ(trained.size(), 2u);
  const auto y = values<float>(*trained[0]);
  size_t kept = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const bool mask = reinterpret_cast<const uint8_t*>(trained[1]->data)[i] != 0;
    ASSERT_EQ(y[i], mask ? 4.0f : 0.0f);
    kept += mask;
  }
  EXPECT_NEAR(static_cast<double>(kept), 25000, 700);
  call.split_seed = 5;
  EXPECT_EQ(values<float>(*run(call).at(0)), y);
  EXPECT_NE(error_of(call_of("Dropout", {x, tensor<float>({}, {1.0f})})).find("ratio is 1"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing

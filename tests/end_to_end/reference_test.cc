// The recipes' outputs against PyTorch's for the same weights; make_reference.sh made the references.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "models/recipes.h"
#include "small_nets.h"

namespace heddle {
namespace {

// The first 1,000 numbers of PyTorch's output.
std::vector<float> reference(const std::string& name) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/end_to_end/" + name + ".f32", std::ios::binary);
  std::vector<float> values(1000);
  file.read(reinterpret_cast<char*>(values.data()), 4000);
  EXPECT_EQ(file.gcount(), 4000);
  return values;
}

// Largest difference, relative to the largest number of the reference.
void expect_close(const std::string& name, const TensorView& input) {
  auto net = models::build(name, {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  const Runtime r = testing_nets::runtime(2);
  Session session = testing_nets::open(r, std::move(*net));
  auto result = session.run({input});
  ASSERT_TRUE(result.ok()) << result.status().text();
  const auto* ours = static_cast<const float*>((*result)[0].data());
  const std::vector<float> theirs = reference(name);
  float largest = 0, difference = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    largest = std::max(largest, std::abs(theirs[i]));
    difference = std::max(difference, std::abs(theirs[i] - ours[i]));
  }
  EXPECT_GT(largest, 1.0f);
  EXPECT_LT(difference, 1e-4f * largest);
  const MemoryReport& m = Internals::of(session).plans.front()->plan->memory;
  EXPECT_LE(static_cast<double>(m.peak_bytes), 1.05 * static_cast<double>(m.lower_bound_bytes));
}

TEST(Reference, Resnet50AgreesWithPyTorch) {
  std::vector<float> image(3 * 224 * 224);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
  expect_close("resnet50", {DType::f32, Shape{1, 3, 224, 224}, image.data()});
}

TEST(Reference, EncoderAgreesWithPyTorch) {
  std::vector<int64_t> tokens(128);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i) * 7919 % 30522;
  expect_close("encoder", {DType::i64, Shape{1, 128}, tokens.data()});
}

}  // namespace
}  // namespace heddle

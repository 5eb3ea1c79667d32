// Batches of arrays in memory, and the order in which samples come.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "points.h"
#include "train/batch_sequence.h"

namespace heddle::testing_train {
namespace {

std::vector<float> numbers(const TensorView& view) {
  const auto* const data = static_cast<const float*>(view.data);
  return {data, data + view.shape.element_count()};
}

TEST(Dataset, ConsecutiveSamplesAreNotCopied) {
  const Points points(10);
  const auto data = points.dataset();
  EXPECT_EQ(data->samples(), 10);
  EXPECT_EQ(data->names(), (std::vector<std::string>{"x", "y"}));
  Batch batch;
  const std::vector<int64_t> run = {3, 4, 5}, others = {5, 3, 3};
  ASSERT_TRUE(data->read({run.data(), 3}, batch).ok());
  EXPECT_EQ(batch.values()[0].data, points.x.data() + 6);
  EXPECT_EQ(batch.values()[1].shape, (Shape{3, 1}));
  EXPECT_EQ(batch.owned_bytes(), 0);
  ASSERT_TRUE(data->read({others.data(), 3}, batch).ok());
  EXPECT_EQ(numbers(batch.values()[1]), (std::vector<float>{points.y[5], points.y[3], points.y[3]}));
  EXPECT_EQ(batch.owned_bytes(), 3 * 3 * 4);
}

TEST(Dataset, ABatchKeepsItsMemory) {
  Batch batch;
  const auto large = batch.make(0, DType::f32, Shape{100, 3});
  ASSERT_TRUE(large.ok());
  const auto small = batch.make(0, DType::i64, Shape{7});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(*small, *large);
  EXPECT_EQ(batch.owned_bytes(), 1200);
  EXPECT_NE(*batch.make(1, DType::f32, Shape{0}), nullptr);
  EXPECT_EQ(batch.make(2, DType::f64, Shape{INT64_MAX, 2}).status().code(), Code::limit_exceeded);
  const Batch moved(std::move(batch));
  EXPECT_EQ(moved.values()[0].data, *small);
  EXPECT_TRUE(batch.values().empty());  // NOLINT: what is moved from is empty
}

TEST(Dataset, ArraysThatDoNotFitAreRefused) {
  const Points points(4);
  const TensorView x = testing_nets::view(points.x.data(), DType::f32, Shape{4, 2}),
                   y = testing_nets::view(points.y.data(), DType::f32, Shape{3});
  EXPECT_EQ(Dataset::of_arrays({}).status().code(), Code::invalid_argument);
  EXPECT_EQ(Dataset::of_arrays({{"x", x}, {"x", x}}).status().code(), Code::duplicate_name);
  EXPECT_EQ(Dataset::of_arrays({{"x", x}, {"y", y}}).status().code(), Code::shape_mismatch);
  EXPECT_EQ(Dataset::of_arrays({{"x", {DType::f32, Shape{4, 2}, nullptr}}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(Dataset::of_arrays({{"x", {DType::f32, Shape{}, x.data}}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(Dataset::of_arrays({{"x", {DType::none, Shape{4}, x.data}}}).status().code(), Code::invalid_argument);
  const auto data = points.dataset();
  Batch batch;
  for (const int64_t sample : {int64_t{-1}, int64_t{4}})
    EXPECT_EQ(data->read({&sample, 1}, batch).code(), Code::invalid_argument) << sample;
  EXPECT_EQ(data->sample_name(3), "3");
}

std::vector<int64_t> samples_of(const BatchRequest& request) {
  return {request.samples, request.samples + request.count};
}

TEST(BatchSequence, AnEpochHasEachSampleOnceInAnOrderOfItsOwn) {
  BatchSequence::Options options;
  options.samples = 23;
  options.batch = 5;
  options.last_batch = LastBatch::keep;
  options.seed = 9;
  BatchSequence sequence(options);
  ASSERT_EQ(sequence.batches_of_epoch(), 5);
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 5; ++i) {
      const BatchRequest request = sequence.request(5 * epoch + i);
      EXPECT_EQ(request.epoch, epoch);
      EXPECT_EQ(request.count, i == 4 ? 3 : 5);
      for (const int64_t sample : samples_of(request)) order.push_back(sample);
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all(23);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_EQ(orders.size(), 3u);
}

// A training that continues at any batch reads what an undisturbed one would.
TEST(BatchSequence, IsAFunctionOfTheNumberOfTheBatch) {
  BatchSequence::Options options;
  options.samples = 20;
  options.batch = 6;
  options.seed = 3;
  BatchSequence forward(options);
  EXPECT_EQ(forward.batches_of_epoch(), 3);  // two samples are left out
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < 9; ++i) batches.push_back(samples_of(forward.request(i)));
  BatchSequence backward(options);
  for (int64_t i = 8; i >= 0; --i) EXPECT_EQ(samples_of(backward.request(i)), batches[static_cast<size_t>(i)]) << i;
  options.seed = 4;
  EXPECT_NE(samples_of(BatchSequence(options).request(0)), batches[0]);
  options.shuffle = false;
  EXPECT_EQ(samples_of(BatchSequence(options).request(4)), (std::vector<int64_t>{6, 7, 8, 9, 10, 11}));
}

}  // namespace
}  // namespace heddle::testing_train

// Batches that are read ahead: the same ones in the same order for any number of threads, within bounds, from wherever one continues.
#include "train/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "points.h"

namespace heddle::testing_train {
namespace {

BatchSequence sequence_of(int64_t samples, int64_t batch) {
  BatchSequence::Options options;
  options.samples = samples;
  options.batch = batch;
  options.seed = 7;
  return BatchSequence(options);
}

// A dataset that counts, waits while it is told to, and has samples that can not be read.
class CountingDataset final : public Dataset {
 public:
  const std::vector<std::string>& names() const override { return names_; }
  int64_t samples() const override { return 40; }
  Status read(const BatchRequest& request, Batch& batch) const override {
    while (holds) std::this_thread::yield();
    HEDDLE_TRY(void* const made, batch.make(0, DType::i64, Shape{request.count}));
    std::copy_n(request.samples, request.count, static_cast<int64_t*>(made));
    ++reads;
    if (throws) throw std::runtime_error("a mistake");
    const std::lock_guard lock(mutex_);
    threads.insert(std::this_thread::get_id());
    return std::find(request.samples, request.samples + request.count, broken) != request.samples + request.count
               ? Status(Code::file_corrupt, "it is broken")
               : Status();
  }
  mutable std::atomic<int> reads{0};
  std::atomic<bool> holds{false}, throws{false};
  std::atomic<int64_t> broken{-1};
  mutable std::set<std::thread::id> threads;

 private:
  mutable std::mutex mutex_;
  const std::vector<std::string> names_ = {"x"};
};

Status never() {
  return {};
}

std::vector<int64_t> samples_of(const SampleBatch& read) {
  const auto* const data = static_cast<const int64_t*>(read.batch.values()[0].data);
  EXPECT_EQ(std::vector<int64_t>(data, data + read.samples.size()), read.samples);
  return read.samples;
}

TEST(BatchReader, ReadsTheSameWithAnyNumberOfThreads) {
  std::vector<std::vector<int64_t>> expected;
  BatchSequence sequence = sequence_of(40, 6);
  for (int64_t i = 0; i < 50; ++i) {
    const BatchRequest request = sequence.request(i);
    expected.emplace_back(request.samples, request.samples + request.count);
  }
  for (const int threads : {0, 1, 2, 5}) {
    const auto data = std::make_shared<CountingDataset>();
    BatchReader reader(data, sequence_of(40, 6), threads, 2);
    // From the beginning, from each other place, and back.
    for (const int64_t first : {0, 31, 7, 7, 8, 0})
      for (int64_t i = first; i < 50; ++i) {
        const auto read = reader.take(i, never);
        ASSERT_TRUE(read.ok());
        EXPECT_EQ(samples_of(**read), expected[static_cast<size_t>(i)]);
        EXPECT_EQ((*read)->epoch, i / 6);
      }
  }
}

TEST(BatchReader, ReadsAFewAheadAndNoMore) {
  const auto data = std::make_shared<CountingDataset>();
  BatchReader reader(data, sequence_of(40, 6), 2, 3);
  EXPECT_EQ(data->reads, 0) << "nothing was wanted yet";
  ASSERT_TRUE(reader.take(0, never).ok());
  // One is taken, and what threads and cache hold are five.
  while (reader.ready() < 5) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data->reads, 6);
  EXPECT_EQ(reader.ready(), 5);
  ASSERT_TRUE(reader.take(0, never).ok()) << "it is still there";
  EXPECT_EQ(data->reads, 6);
  EXPECT_EQ(data->threads.count(std::this_thread::get_id()), 0u);
  BatchReader ends(data, sequence_of(40, 6), 1, 9, 4);
  for (int64_t i = 0; i < 6; ++i) ASSERT_TRUE(ends.take(i, never).ok()) << "also after the end, where it is read here";
  EXPECT_EQ(data->reads, 12);
  EXPECT_EQ(data->threads.count(std::this_thread::get_id()), 1u);
}

TEST(BatchReader, AFailureIsThatOfItsBatchAlone) {
  for (const int threads : {0, 2}) {
    const auto data = std::make_shared<CountingDataset>();
    BatchSequence sequence = sequence_of(40, 6);
    data->broken = sequence.request(3).samples[2];
    BatchReader reader(data, sequence_of(40, 6), threads, 4);
    for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE(reader.take(i, never).ok()) << i;
    EXPECT_EQ(reader.take(3, never).status().code(), Code::file_corrupt);
    EXPECT_EQ(reader.take(3, never).status().code(), Code::file_corrupt) << "it is read again";
    EXPECT_TRUE(reader.take(4, never).ok());
    data->broken = -1;
    EXPECT_TRUE(reader.take(3, never).ok()) << "it was mended";
    data->throws = true;
    EXPECT_EQ(reader.take(20, never).status().code(), Code::internal);
  }
}

TEST(BatchReader, AWaitEndsWhenItIsTold) {
  const auto data = std::make_shared<CountingDataset>();
  data->holds = true;
  BatchReader reader(data, sequence_of(40, 6), 1, 1);
  int asked = 0;
  const auto stopped = reader.take(0, [&] { return ++asked > 2 ? Status(Code::cancelled, "enough") : Status(); });
  EXPECT_EQ(stopped.status().code(), Code::cancelled);
  data->holds = false;
  EXPECT_TRUE(reader.take(0, never).ok());
}

}  // namespace
}  // namespace heddle::testing_train

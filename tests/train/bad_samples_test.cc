// Samples that can not be read: the first one ends a training, or each is left out and told of once, and what the steps are given depends
// on nothing but the data, the seed and the number of the step.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "picky_dataset.h"
#include "points.h"
#include "train/batch_reader.h"
#include "weighted_net.h"

namespace heddle::testing_train {
namespace {

using testing_line::contents;

Status go_on() {
  return {};
}

BatchSequence::Options order_of(int64_t samples, int64_t batch, LastBatch last) {
  BatchSequence::Options options;
  options.samples = samples;
  options.batch = batch;
  options.last_batch = last;
  options.seed = 3;
  return options;
}

// The content of a batch, found from its request alone.
struct Expected {
  Expected(const BatchRequest& request, const std::set<int64_t>& all_bad) {
    for (int64_t k = 0; k < request.count - request.padding; ++k)
      (all_bad.count(request.samples[k]) != 0 ? bad : samples).push_back(request.samples[k]);
    padding = request.count - static_cast<int64_t>(samples.size());
    while (static_cast<int64_t>(samples.size()) < request.count) samples.push_back(samples.back());
  }
  std::vector<int64_t> samples, bad;
  int64_t padding = 0;
};

std::vector<int64_t> samples_left_out(const SampleBatch& read) {
  std::vector<int64_t> samples;
  for (const BadSample& bad : read.bad) {
    samples.push_back(bad.sample);
    EXPECT_EQ(bad.error.code(), Code::file_corrupt);
    EXPECT_EQ(bad.error.diagnostic().message, "its third byte is wrong");
  }
  return samples;
}

void expect_batch(const SampleBatch& read, const Expected& expected, const Points& points) {
  EXPECT_EQ(read.samples, expected.samples);
  EXPECT_EQ(read.padding, expected.padding);
  EXPECT_EQ(samples_left_out(read), expected.bad);
  ASSERT_EQ(read.batch.values()[1].shape, (Shape{static_cast<int64_t>(expected.samples.size()), 1}));
  const auto* const y = static_cast<const float*>(read.batch.values()[1].data);
  for (size_t k = 0; k < expected.samples.size(); ++k) EXPECT_EQ(y[k], points.y[static_cast<size_t>(expected.samples[k])]) << k;
}

TEST(BadSamples, AreLeftOutOfTheSameBatchesWithAnyNumberOfThreads) {
  const Points points(42);
  const std::set<int64_t> bad = {0, 3, 4, 5, 17, 30, 41};
  for (const LastBatch last : {LastBatch::drop, LastBatch::keep, LastBatch::pad}) {
    BatchSequence sequence(order_of(42, 8, last));
    std::vector<Expected> expected;
    for (int64_t i = 0; i < 40; ++i) expected.emplace_back(sequence.request(i), bad);
    for (const int threads : {0, 1, 4}) {
      const auto data = std::make_shared<PickyDataset>(points, bad);
      BatchReader reader(data, BatchSequence(order_of(42, 8, last)), threads, 2, -1, 7);
      // From the beginning, from other places, as after a resume, and back.
      for (const int64_t first : {0, 23, 11, 11, 12, 0})
        for (int64_t i = first; i < 40; ++i) {
          SCOPED_TRACE(std::to_string(threads) + " threads, batch " + std::to_string(i) + " from " + std::to_string(first));
          const auto read = reader.take(i, go_on);
          ASSERT_TRUE(read.ok()) << read.status().text();
          expect_batch(**read, expected[static_cast<size_t>(i)], points);
        }
    }
  }
}

TEST(BadSamples, AreNotReadAgainInLaterEpochs) {
  const Points points(24);
  const std::set<int64_t> bad = {2, 9, 10};
  const auto data = std::make_shared<PickyDataset>(points, bad);
  BatchReader reader(data, BatchSequence(order_of(24, 8, LastBatch::drop)), 0, 0, -1, 3);
  const auto read_epochs = [&](int64_t first, int64_t last) {
    for (int64_t i = 3 * first; i < 3 * last; ++i) ASSERT_TRUE(reader.take(i, go_on).ok());
  };
  read_epochs(0, 1);
  std::map<int64_t, int> tries;
  for (const int64_t sample : bad) {
    tries[sample] = data->tries(sample);
    EXPECT_GE(tries[sample], 1);
    EXPECT_LE(tries[sample], 2) << "with its batch, and by itself";
  }
  const int before = data->all_tries();
  read_epochs(1, 5);
  for (const int64_t sample : bad) EXPECT_EQ(data->tries(sample), tries[sample]) << sample;
  EXPECT_EQ(data->all_tries(), before + 4 * 24) << "each batch is read once";
}

TEST(BadSamples, AnErrorThatIsNoFaultOfASampleIsNoBadSample) {
  const Points points(16);
  for (const Code code : {Code::out_of_memory, Code::cancelled, Code::internal, Code::not_implemented}) {
    const auto data = std::make_shared<PickyDataset>(points, std::set<int64_t>{1}, code);
    BatchReader reader(data, BatchSequence(order_of(16, 16, LastBatch::drop)), 0, 0, -1, 9);
    EXPECT_EQ(reader.take(0, go_on).status().code(), code);
  }
  for (const Code code : {Code::file_not_found, Code::file_truncated, Code::shape_mismatch, Code::limit_exceeded}) {
    const auto data = std::make_shared<PickyDataset>(points, std::set<int64_t>{1}, code);
    BatchReader reader(data, BatchSequence(order_of(16, 16, LastBatch::drop)), 0, 0, -1, 9);
    const auto read = reader.take(0, go_on);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ((*read)->bad.at(0).error.code(), code);
  }
  // Samples that only fail together are not bad, each by itself.
  const auto data = std::make_shared<PickyDataset>(points, std::set<int64_t>{1});
  data->refuse_together(16);
  BatchReader reader(data, BatchSequence(order_of(16, 16, LastBatch::drop)), 1, 1, -1, 9);
  const Status refused = reader.take(0, go_on).status();
  EXPECT_EQ(refused.code(), Code::shape_mismatch);
  EXPECT_NE(refused.text().find("while samples point "), std::string::npos) << refused.text();
}

// A training of "line" with options, and what it has told.
struct Training {
  Training(const std::shared_ptr<const Dataset>& data, TrainerOptions options) : trainer(session.trainer(data, with_callbacks(options))) {}
  TrainerOptions with_callbacks(TrainerOptions& options) {
    options.on_step = [this](const TrainingStep& step) {
      told.push_back("step " + std::to_string(step.step) + " of " + std::to_string(step.samples));
      return Status();
    };
    options.on_bad_sample = [this](const std::string& sample, const Status& error) {
      EXPECT_EQ(error.code(), Code::file_corrupt);
      errors.push_back(error.text());
      told.push_back(sample);
      return Status();
    };
    return options;
  }
  LineSession session;
  std::vector<std::string> told, errors;
  Trainer trainer;
};

TrainerOptions options_of(int64_t steps, int64_t batch, int64_t max_bad) {
  TrainerOptions options;
  options.steps = steps;
  options.batch = batch;
  options.max_bad_samples = max_bad;
  options.seed = 3;
  return options;
}

TEST(BadSamples, TheFirstEndsATrainingThatLeavesNoneOut) {
  const Points points(12);
  for (const int threads : {0, 2}) {
    TrainerOptions options = options_of(6, 4, 0);
    options.shuffle = false;
    options.reader_threads = threads;
    const auto data = std::make_shared<PickyDataset>(points, std::set<int64_t>{6, 7, 9});
    Training training(data, options);
    const Status status = training.trainer.run();
    EXPECT_EQ(status.code(), Code::file_corrupt);
    const std::string text = status.text();
    for (const char* const part : {"its third byte is wrong", "while sample point 6 was read", "while the samples of step 2 were read",
                                   "TrainerOptions::max_bad_samples"})
      EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
    EXPECT_EQ(text.find("point 7"), std::string::npos) << text;
    EXPECT_EQ(training.told, std::vector<std::string>{"step 1 of 4"});
    EXPECT_EQ(training.trainer.bad_samples(), 0);
    data->is_mended = true;
    EXPECT_TRUE(training.trainer.run().ok()) << "it was mended";
  }
}

TEST(BadSamples, TheHintOfTheFirstSaysHowToGoOn) {
  const Points points(4);
  const auto hint_of = [&](const Hint& hint) {
    const auto data = std::make_shared<PickyDataset>(points, std::set<int64_t>{2});
    data->hint = hint;
    BatchReader reader(data, BatchSequence(order_of(4, 4, LastBatch::drop)), 0, 0);
    const Diagnostic said = reader.take(0, go_on).status().diagnostic();
    return said.hint + "|" + said.option;
  };
  const std::string option = "TrainerOptions::max_bad_samples";
  EXPECT_EQ(hint_of({}), "mend it, or let it be left out with " + option + "|" + option);
  EXPECT_EQ(hint_of("take it again"), "take it again, or let it be left out with " + option + "|" + option);
  Hint other("raise SessionOptions::limits.x");
  other.option = "SessionOptions::limits.x";
  EXPECT_EQ(hint_of(other), other.text + "|" + other.option);
}

// In the order of the data, four at a time, of which 1, 4 and 7 are bad.
TEST(BadSamples, AreToldOfOnceInTheOrderOfTheSteps) {
  const Points points(12);
  for (const int threads : {0, 1, 4}) {
    TrainerOptions options = options_of(6, 4, 3);
    options.shuffle = false;
    options.reader_threads = threads;
    Training training(std::make_shared<PickyDataset>(points, std::set<int64_t>{1, 4, 7}), options);
    ASSERT_TRUE(training.trainer.prepare().ok());
    EXPECT_EQ(training.told, std::vector<std::string>{"point 1"}) << "the first batch is read to be compiled for";
    const Status status = training.trainer.run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(training.told, (std::vector<std::string>{"point 1", "step 1 of 3", "point 4", "point 7", "step 2 of 2", "step 3 of 4",
                                                       "step 4 of 3", "step 5 of 2", "step 6 of 4"}));
    EXPECT_NE(training.errors[1].find("while the samples of step 2 were read"), std::string::npos) << training.errors[1];
    EXPECT_EQ(training.trainer.bad_samples(), 3);
    // A net without weights counts the repeats.
    const LineSession looped;
    Session net = looped.train;
    const std::vector<std::vector<size_t>> batches = {{0, 2, 3, 3}, {5, 6, 6, 6}, {8, 9, 10, 11}};
    for (size_t i = 0; i < 6; ++i) {
      std::vector<float> x, y;
      for (const size_t sample : batches[i % 3]) {
        x.insert(x.end(), {points.x[2 * sample], points.x[2 * sample + 1]});
        y.push_back(points.y[sample]);
      }
      ASSERT_TRUE(
          net.run({testing_nets::view(x.data(), DType::f32, Shape{4, 2}), testing_nets::view(y.data(), DType::f32, Shape{4, 1})}).ok());
    }
    EXPECT_EQ(contents(training.session.all), contents(looped.all));
  }
}

TEST(BadSamples, ATrainingResumesFromEachStepToTheSameBits) {
  const Points points(22);
  const std::set<int64_t> bad = {0, 3, 8, 9, 21};
  const testing::TemporaryFolder folder;
  TrainerOptions options = checkpoints_in(folder, 12, 1);
  options.max_bad_samples = 5;
  options.last_batch = LastBatch::keep;
  options.batch = 5;
  Training whole(std::make_shared<PickyDataset>(points, bad), options);
  const Status status = whole.trainer.run();
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(whole.trainer.bad_samples(), 5);
  for (int64_t step = 0; step < 12; ++step)
    for (const int threads : {0, 1, 4}) {
      TrainerOptions rest = options;
      rest.reader_threads = threads;
      rest.checkpoints = {};
      Training resumed(std::make_shared<PickyDataset>(points, bad), rest);
      if (step > 0) {
        char name[40];
        std::snprintf(name, sizeof name, "step-%09d.safetensors", static_cast<int>(step));
        ASSERT_TRUE(resumed.trainer.resume((folder / name).string()).ok());
      }
      ASSERT_TRUE(resumed.trainer.run().ok());
      EXPECT_EQ(contents(resumed.session.all), contents(whole.session.all)) << "from step " << step << " on " << threads << " threads";
    }
}

TEST(BadSamples, OneMoreThanMayBeLeftOutEndsTheTraining) {
  const Points points(16);
  const std::set<int64_t> bad = {1, 2, 6, 11};
  for (const int threads : {0, 1, 4}) {
    TrainerOptions options = options_of(8, 4, 3);
    options.shuffle = false;
    options.reader_threads = threads;
    Training training(std::make_shared<PickyDataset>(points, bad), options);
    for (int call = 0; call < 2; ++call) {  // another call ends there too
      const Status status = training.trainer.run();
      EXPECT_EQ(status.code(), Code::file_corrupt);
      const std::string text = status.text();
      for (const char* const part : {"4 samples can't be read, and 3 may be left out", "sample point 11: its third byte is wrong",
                                     "while the samples of step 3 were read", "TrainerOptions::max_bad_samples"})
        EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
      EXPECT_EQ(training.trainer.bad_samples(), 3);
      EXPECT_EQ(training.trainer.steps(), 2);
    }
    EXPECT_EQ(training.told, (std::vector<std::string>{"point 1", "point 2", "step 1 of 2", "point 6", "step 2 of 3"}));
    options.max_bad_samples = 4;
    Training enough(std::make_shared<PickyDataset>(points, bad), options);
    EXPECT_TRUE(enough.trainer.run().ok());
    EXPECT_EQ(enough.trainer.bad_samples(), 4);
    // More in one batch than may be left out.
    options.max_bad_samples = 1;
    Training few(std::make_shared<PickyDataset>(points, bad), options);
    const Status status = few.trainer.run();
    EXPECT_NE(status.text().find("2 samples can't be read, and 1 may be left out, the last one of them is sample point 2"),
              std::string::npos)
        << status.text();
    EXPECT_EQ(few.told, std::vector<std::string>{"point 1"});
  }
  TrainerOptions wrong = options_of(8, 4, -1);
  EXPECT_EQ(Trainer::create(LineSession().train, points.dataset(), wrong).status().code(), Code::invalid_argument);
}

TEST(BadSamples, ABatchWithoutAnyOtherIsAnError) {
  const Points points(12);
  TrainerOptions options = options_of(3, 4, 10);
  options.shuffle = false;
  Training training(std::make_shared<PickyDataset>(points, std::set<int64_t>{4, 5, 6, 7}), options);
  const std::vector<std::string> told = {"step 1 of 4", "point 4", "point 5", "point 6", "point 7"};
  for (int call = 0; call < 2; ++call) {
    const Status status = training.trainer.run();
    EXPECT_EQ(status.code(), Code::file_corrupt);
    EXPECT_NE(status.text().find("none of the 4 samples of the batch can be read, the last one of them is sample point 7: its third byte"),
              std::string::npos)
        << status.text();
    EXPECT_NE(status.text().find("while the samples of step 2 were read"), std::string::npos) << status.text();
    EXPECT_EQ(training.told, told);
  }
}

TEST(BadSamples, AnErrorOfTheCallbackEndsTheTraining) {
  const Points points(12);
  TrainerOptions options = options_of(3, 4, 10);
  options.shuffle = false;
  int calls = 0;
  options.on_bad_sample = [&](const std::string&, const Status&) { return ++calls == 2 ? Status(Code::interrupted, "enough") : Status(); };
  const LineSession session;
  Trainer trainer = session.trainer(std::make_shared<PickyDataset>(points, std::set<int64_t>{1, 2, 3, 6}), options);
  EXPECT_EQ(trainer.run().code(), Code::interrupted);
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(trainer.bad_samples(), 2);
  EXPECT_TRUE(trainer.run().ok()) << "it goes on where it was";
  EXPECT_EQ(trainer.steps(), 3);
  EXPECT_EQ(calls, 4) << "each is told of once";
}

// The squares of 0.5 x0 + 0.5 x1 - y, the mean of some samples.
double mean_square(const Points& points, const std::vector<size_t>& samples) {
  double sum = 0;
  for (const size_t i : samples) {
    const double difference =
        0.5 * static_cast<double>(points.x[2 * i]) + 0.5 * static_cast<double>(points.x[2 * i + 1]) - static_cast<double>(points.y[i]);
    sum += difference * difference;
  }
  return sum / static_cast<double>(samples.size());
}

TEST(BadSamples, CountForNothingInANetWithWeights) {
  const Points points(8), unseen(10, 0.5F);
  for (const LastBatch last : {LastBatch::keep, LastBatch::pad}) {
    TrainerOptions options = options_of(1, 4, 9);
    options.weights = "weights";
    options.last_batch = last;
    options.shuffle = false;
    const Weighted weighted;
    auto trainer = Trainer::create(*weighted.all.net("train"), std::make_shared<PickyDataset>(points, std::set<int64_t>{1, 3}), options);
    ASSERT_TRUE(trainer.ok()) << trainer.status().text();
    // Eight is in the last batch, which is padded or smaller.
    const auto tests = std::make_shared<PickyDataset>(unseen, std::set<int64_t>{0, 1, 2, 8});
    ASSERT_TRUE(trainer->test_with(*weighted.all.net("weighted"), tests).ok());
    for (int time = 0; time < 2; ++time) {
      const auto evaluation = trainer->evaluate();
      ASSERT_TRUE(evaluation.ok()) << evaluation.status().text();
      EXPECT_EQ(evaluation->samples, 6);
      EXPECT_NEAR(evaluation->means[0].second, mean_square(unseen, {3, 4, 5, 6, 7, 9}), 1e-5);
      EXPECT_EQ(trainer->bad_samples(), 4);
    }
    const auto step = trainer->step();
    ASSERT_TRUE(step.ok()) << step.status().text();
    EXPECT_EQ(step->samples, 2);
    EXPECT_NEAR(step->loss, mean_square(points, {0, 2}), 1e-5);
    EXPECT_EQ(trainer->bad_samples(), 6) << "those of both datasets";
    // Other samples to test with have numbers of their own, and may use up what is left.
    ASSERT_TRUE(
        trainer->test_with(*weighted.all.net("weighted"), std::make_shared<PickyDataset>(unseen, std::set<int64_t>{0, 1, 2, 4})).ok());
    const Status many = trainer->evaluate().status();
    EXPECT_NE(many.text().find("10 samples can't be read, and 9 may be left out, the last one of them is sample point 4"),
              std::string::npos)
        << many.text();
    EXPECT_NE(many.text().find("while the samples of a test were read"), std::string::npos) << many.text();
  }
}

TEST(BadSamples, AreRepeatsInATestNetWithoutWeights) {
  const Points points(8), unseen(7, 0.5F);
  TrainerOptions options = options_of(1, 4, 9);
  Training training(points.dataset(), options);
  ASSERT_TRUE(training.trainer.test_with(training.session.line, std::make_shared<PickyDataset>(unseen, std::set<int64_t>{1, 6})).ok());
  const auto evaluation = training.trainer.evaluate();
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().text();
  EXPECT_EQ(evaluation->samples, 5);
  std::vector<float> x, y;
  for (const size_t sample : {0, 2, 3, 3, 4, 5, 5}) {
    x.insert(x.end(), {unseen.x[2 * sample], unseen.x[2 * sample + 1]});
    y.push_back(unseen.y[sample]);
  }
  Session net = training.session.line;
  const auto whole =
      net.run({testing_nets::view(x.data(), DType::f32, Shape{7, 2}), testing_nets::view(y.data(), DType::f32, Shape{7, 1})});
  ASSERT_TRUE(whole.ok());
  EXPECT_NEAR(evaluation->means[0].second, testing_line::number((*whole)[1]), 1e-6);
  EXPECT_EQ(training.told, (std::vector<std::string>{"point 1", "point 6"}));
}

}  // namespace
}  // namespace heddle::testing_train

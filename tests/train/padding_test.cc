// The last batch of an epoch, filled up with samples of weight 0: the net is compiled once, and what pads counts for nothing.
#include <gtest/gtest.h>

#include <vector>

#include "points.h"
#include "weighted_net.h"

namespace heddle::testing_train {
namespace {

struct Trained {
  std::vector<double> losses;
  std::vector<int64_t> samples;
  double tested = 0;
  int64_t plans = 0, plans_of_test = 0;
  float w[2] = {0, 0};
};

Trained train(LastBatch last_batch) {
  const Points points(10), unseen(7, 0.5F);
  const Weighted weighted;
  Trained trained;
  TrainerOptions options;
  options.batch = 4;
  options.epochs = 4;
  options.last_batch = last_batch;
  options.weights = "weights";
  options.on_step = [&](const TrainingStep& step) {
    trained.losses.push_back(step.loss);
    trained.samples.push_back(step.samples);
    return Status();
  };
  options.on_evaluation = [&](const Evaluation& of) { return trained.tested = of.means[0].second, Status(); };
  const Session net = *weighted.all.net("train"), test = *weighted.all.net("weighted");
  auto trainer = Trainer::create(net, points.dataset(), options);
  EXPECT_TRUE(trainer.ok()) << trainer.status().text();
  EXPECT_TRUE(trainer->test_with(test, unseen.dataset()).ok());
  const Status status = trainer->run();
  EXPECT_TRUE(status.ok()) << status.text();
  trained.plans = net.plan_counts().made;
  trained.plans_of_test = test.plan_counts().made;
  for (size_t i = 0; i < 2; ++i) trained.w[i] = weighted.w(i);
  return trained;
}

TEST(Padding, CountsForNothing) {
  const Trained kept = train(LastBatch::keep), padded = train(LastBatch::pad), dropped = train(LastBatch::drop);
  ASSERT_EQ(padded.losses.size(), 12u);
  ASSERT_EQ(kept.losses.size(), 12u);
  EXPECT_EQ(dropped.losses.size(), 8u);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(padded.losses[i], kept.losses[i], 1e-6) << i;
  EXPECT_EQ(padded.samples, kept.samples) << "samples that pad are not counted";
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(padded.w[i], kept.w[i], 1e-6);
  EXPECT_NEAR(padded.tested, kept.tested, 1e-6);
  EXPECT_EQ(kept.plans, 2);
  EXPECT_EQ(padded.plans, 1);
  EXPECT_EQ(padded.plans_of_test, 1);
}

TEST(Padding, NeedsAnInputThatTakesWeights) {
  const Points points(10);
  const LineSession session;
  TrainerOptions options;
  options.batch = 4;
  options.last_batch = LastBatch::pad;
  const auto refused = [&](const Session& net) { return Trainer::create(net, points.dataset(), options).status(); };
  EXPECT_EQ(refused(session.train).code(), Code::invalid_argument);
  options.weights = "weights";
  EXPECT_EQ(refused(session.train).code(), Code::invalid_argument);
  options.last_batch = LastBatch::keep;
  EXPECT_EQ(refused(session.train).code(), Code::unknown_name);
  const Weighted weighted;
  options.weights = "x";
  EXPECT_EQ(refused(*weighted.all.net("train")).code(), Code::shape_mismatch);
}

}  // namespace
}  // namespace heddle::testing_train

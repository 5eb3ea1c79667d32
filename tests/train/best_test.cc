// The best evaluation of a training: which one it is, what is kept of it, when it ends the training, and all of this after a resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "load/temporary_folder.h"
#include "points.h"

namespace heddle::testing_train {
namespace {

using testing::TemporaryFolder;
using testing_line::contents;

// A trainer of "line" whose test data are of another line: the test loss falls at first, and then rises.
struct Turning {
  explicit Turning(const TrainerOptions& options) {
    for (size_t i = 0; i < unseen.y.size(); ++i) unseen.y[i] = 1 + 0.9F * unseen.x[2 * i];
    TrainerOptions all = options;
    all.on_evaluation = [this](const Evaluation& of) {
      losses[of.step] = of.means[0].second;
      at[of.step] = contents(session.all);
      return Status();
    };
    trainer.emplace(session.trainer(points.dataset(), all));
    const Status tests = trainer->test_with(session.line, unseen.dataset());
    EXPECT_TRUE(tests.ok()) << tests.text();
  }
  // The step of the smallest loss.
  int64_t smallest() const {
    return std::min_element(losses.begin(), losses.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  }
  const Points points{12};
  Points unseen{9};
  const LineSession session;
  std::map<int64_t, double> losses;                          // of evaluations, by step
  std::map<int64_t, std::map<std::string, std::string>> at;  // variables then
  std::optional<Trainer> trainer;
};

TrainerOptions options_of(int64_t steps, const std::string& folder = "") {
  TrainerOptions options;
  options.steps = steps;
  options.batch = 4;
  options.evaluate_every = 2;
  options.best.mean = "loss";
  options.checkpoints.folder = folder;
  options.checkpoints.keep = 2;
  return options;
}

TEST(Best, IsRestoredFromMemoryAndFromACheckpoint) {
  const TemporaryFolder folder;
  for (const std::string& where : {std::string(), folder.path().string()}) {
    Turning turning(options_of(60, where));
    EXPECT_FALSE(turning.trainer->best());
    EXPECT_EQ(turning.trainer->restore_best().code(), Code::invalid_argument);
    const Status status = turning.trainer->run();
    ASSERT_TRUE(status.ok()) << status.text();
    const int64_t best = turning.smallest();
    ASSERT_GT(best, 2);
    ASSERT_LT(best, 50) << "the test loss rises again";
    ASSERT_TRUE(turning.trainer->best());
    EXPECT_EQ(turning.trainer->best()->first, best);
    EXPECT_EQ(turning.trainer->best()->second, turning.losses[best]);
    EXPECT_FALSE(turning.trainer->is_stopped_early());
    EXPECT_NE(contents(turning.session.all), turning.at[best]);
    const Status restored = turning.trainer->restore_best();
    ASSERT_TRUE(restored.ok()) << restored.text();
    EXPECT_EQ(contents(turning.session.all), turning.at[best]);
    EXPECT_EQ(turning.trainer->steps(), best);
    if (where.empty()) continue;
    const auto list = list_checkpoints(where);
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->complete.size(), 3u) << "the two newest, and the best";
    EXPECT_EQ(list->complete[2].step, best);
    EXPECT_EQ(list->complete[0].best_step, best);
  }
}

TEST(Best, EvaluationsThatAreNoBetterEndTheTraining) {
  TrainerOptions options = options_of(60);
  options.best.patience = 4;
  Turning turning(options);
  ASSERT_TRUE(turning.trainer->run().ok());
  EXPECT_TRUE(turning.trainer->is_stopped_early());
  EXPECT_EQ(turning.trainer->steps(), turning.smallest() + 4 * 2);
  ASSERT_TRUE(turning.trainer->run().ok()) << "it is over";
  EXPECT_EQ(turning.trainer->steps(), turning.smallest() + 4 * 2);
  ASSERT_TRUE(turning.trainer->evaluate().ok()) << "of the same step: it is not counted again";
  options.best.largest = true;
  Turning other(options);
  ASSERT_TRUE(other.trainer->run().ok());
  EXPECT_EQ(other.trainer->best()->first, 2) << "the largest loss is that of the first evaluation";
  EXPECT_EQ(other.trainer->steps(), 10);
}

// The count of evaluations and the best so far are in the checkpoint.
TEST(Best, ContinuesAfterAResume) {
  const TemporaryFolder folder;
  TrainerOptions options = options_of(60);
  options.best.patience = 4;
  Turning whole(options);
  ASSERT_TRUE(whole.trainer->run().ok());
  options.checkpoints.folder = folder.path().string();
  options.checkpoints.keep = 1;
  const int64_t over = whole.trainer->steps();
  for (int64_t until = 4; until < over + 4; until += 4) {  // in parts of four steps
    options.steps = until;
    Turning part(options);
    const auto list = list_checkpoints(options.checkpoints.folder);
    ASSERT_TRUE(list.ok());
    if (!list->complete.empty()) {
      ASSERT_TRUE(part.trainer->resume(list->complete[0].path).ok());
    }
    ASSERT_TRUE(part.trainer->run().ok());
    EXPECT_EQ(part.trainer->steps(), std::min(until, over));
    if (until < over) continue;
    EXPECT_TRUE(part.trainer->is_stopped_early());
    ASSERT_TRUE(part.trainer->restore_best().ok());
    EXPECT_EQ(contents(part.session.all), whole.at[whole.smallest()]);
  }
}

TEST(Best, AMeanThatIsNoNumberIsNotTheBest) {
  TrainerOptions options = options_of(8);
  options.best.patience = 3;
  Turning turning(options);
  turning.unseen.y[3] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(turning.trainer->run().ok());
  EXPECT_FALSE(turning.trainer->best());
  EXPECT_TRUE(turning.trainer->is_stopped_early());
  EXPECT_EQ(turning.trainer->steps(), 6);
  options.best.mean = "accuracy";
  Trainer unknown = turning.session.trainer(turning.points.dataset(), options);
  const Status status = unknown.test_with(turning.session.line, turning.points.dataset());
  EXPECT_EQ(status.code(), Code::unknown_name);
  EXPECT_NE(status.text().find("\"accuracy\""), std::string::npos) << status.text();
}

// A program with a loop of its own, whose callback fails where the best is.
TEST(Best, IsKeptByALoopOfItsOwn) {
  const TemporaryFolder folder;
  Turning turning(options_of(60, folder.path().string()));
  for (int64_t step = 1; step <= 60; ++step) {
    ASSERT_TRUE(turning.trainer->step().ok());
    if (step % 2 == 0) {
      ASSERT_TRUE(turning.trainer->evaluate().ok());
    }
  }
  ASSERT_TRUE(turning.trainer->restore_best().ok());
  EXPECT_EQ(contents(turning.session.all), turning.at[turning.smallest()]);
  EXPECT_EQ(turning.trainer->best()->first, turning.smallest());
}

// Without a folder the best of an earlier training is gone: nothing is restored in its place.
TEST(Best, OfAnotherTrainingIsNotRestored) {
  const TemporaryFolder folder;
  TrainerOptions options = options_of(40, folder.path().string());
  Turning first(options);
  ASSERT_TRUE(first.trainer->run().ok());
  options.checkpoints.folder.clear();
  Turning second(options);
  ASSERT_TRUE(second.trainer->resume(list_checkpoints(folder.path().string())->complete[0].path).ok());
  EXPECT_EQ(second.trainer->restore_best().code(), Code::invalid_argument);
  // Nor is one that was judged by another rule.
  options.checkpoints.folder = folder.path().string();
  options.best.largest = true;
  Turning third(options);
  ASSERT_TRUE(third.trainer->resume(list_checkpoints(folder.path().string())->complete[0].path).ok());
  EXPECT_FALSE(third.trainer->best());
}

// A net without that mean is refused, and evaluations stay what they were.
TEST(Best, ATestNetWithoutTheMeanChangesNothing) {
  const Points points(12);
  const LineSession line;
  Nets nets = line.nets;
  PredictorOptions guess;
  guess.outputs = {"guess"};
  ASSERT_TRUE(nets.add_predictor("line", guess).ok());
  const Session all = testing_line::open(line.runtime, nets);
  Trainer trainer = LineSession::value_of(Trainer::create(*all.net("train"), points.dataset(), options_of(8)));
  ASSERT_TRUE(trainer.test_with(*all.net("line"), points.dataset()).ok());
  const auto before = trainer.evaluate();
  ASSERT_TRUE(before.ok());
  const auto inputs = Dataset::of_arrays({{"x", testing_nets::view(points.x.data(), DType::f32, Shape{12, 2})}});
  EXPECT_EQ(trainer.test_with(*all.net("predict"), *inputs).code(), Code::unknown_name);
  const auto after = trainer.evaluate();
  ASSERT_TRUE(after.ok()) << after.status().text();
  EXPECT_EQ(after->means, before->means);
}

}  // namespace
}  // namespace heddle::testing_train

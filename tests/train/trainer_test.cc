// The trainer of the library: what it runs, what it tells, and what it leaves when something fails.
#include "heddle/trainer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "points.h"

namespace heddle::testing_train {
namespace {

using testing_line::contents;

TrainerOptions options_of(int64_t steps, int64_t batch) {
  TrainerOptions options;
  options.steps = steps;
  options.batch = batch;
  return options;
}

TEST(Trainer, MakesTheStepsThatALoopOfRunsMakes) {
  const Points points(12);
  const LineSession trained, looped;
  TrainerOptions options = options_of(6, 4);
  options.shuffle = false;
  Trainer trainer = trained.trainer(points.dataset(), options);
  EXPECT_EQ(trainer.plan(), nullptr);
  ASSERT_TRUE(trainer.prepare().ok());
  ASSERT_NE(trainer.plan(), nullptr);
  EXPECT_EQ(trainer.steps(), 0);
  const Status status = trainer.run();
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(trainer.steps(), 6);
  Session net = looped.train;
  for (size_t i = 0; i < 6; ++i)
    ASSERT_TRUE(net.run({testing_nets::view(points.x.data() + i % 3 * 8, DType::f32, Shape{4, 2}),
                         testing_nets::view(points.y.data() + i % 3 * 4, DType::f32, Shape{4, 1})})
                    .ok());
  EXPECT_EQ(contents(trained.all), contents(looped.all));
  EXPECT_TRUE(trainer.run().ok()) << "it is over";
  EXPECT_EQ(trainer.steps(), 6);
}

TEST(Trainer, TellsOfEachStep) {
  const Points points(10);
  const LineSession session;
  TrainerOptions options = options_of(0, 4);
  options.epochs = 3;
  options.last_batch = LastBatch::keep;
  std::vector<TrainingStep> steps;
  options.on_step = [&](const TrainingStep& step) { return steps.push_back(step), Status(); };
  Trainer trainer = session.trainer(points.dataset(), options);
  EXPECT_EQ(trainer.total_steps(), 9);
  ASSERT_TRUE(trainer.run().ok());
  ASSERT_EQ(steps.size(), 9u);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(steps[i].step, static_cast<int64_t>(i + 1));
    EXPECT_EQ(steps[i].epoch, static_cast<int64_t>(i / 3 + 1));
    EXPECT_EQ(steps[i].samples, i % 3 == 2 ? 2 : 4);
    EXPECT_FLOAT_EQ(static_cast<float>(steps[i].learning_rate.value_or(0)), static_cast<float>(0.1 * std::pow(0.99, i)));
    EXPECT_FALSE(steps[i].gradient_norm);
    EXPECT_GT(steps[i].run_ns, 0);
  }
  EXPECT_LT(steps[8].loss, steps[0].loss);
  // More than the options ask for.
  const auto more = trainer.step();
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->step, 10);
  EXPECT_EQ(steps.size(), 10u);
}

TEST(Trainer, EndsAfterTheStepsOrTheEpochsThatComeFirst) {
  const Points points(10);
  const LineSession session;
  TrainerOptions options = options_of(7, 5);
  const auto total = [&] { return session.trainer(points.dataset(), options).total_steps(); };
  EXPECT_EQ(total(), 7);
  options.epochs = 3;
  EXPECT_EQ(total(), 6);
  options.epochs = 4;
  EXPECT_EQ(total(), 7);
  options.steps = 0;
  EXPECT_EQ(total(), 8);
  options.epochs = INT64_MAX;
  EXPECT_EQ(total(), INT64_MAX);
  options.epochs = 0;
  EXPECT_EQ(total(), -1);
}

// Samples of a last, smaller batch count as much as the others.
TEST(Trainer, AnEvaluationIsTheMeanOverAllSamples) {
  const Points points(8), unseen(11, 0.5F);
  const LineSession session;
  TrainerOptions options = options_of(10, 4);
  options.evaluate_every = 4;
  std::vector<Evaluation> told;
  options.on_evaluation = [&](const Evaluation& of) { return told.push_back(of), Status(); };
  Trainer trainer = session.trainer(points.dataset(), options);
  EXPECT_EQ(trainer.evaluate().status().code(), Code::invalid_argument) << "there is no test net yet";
  ASSERT_TRUE(trainer.test_with(session.line, unseen.dataset()).ok());
  ASSERT_TRUE(trainer.run().ok());
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].step, 4);
  EXPECT_EQ(told[1].step, 8);
  EXPECT_EQ(told[2].step, 10);
  EXPECT_EQ(told[2].samples, 11);
  ASSERT_EQ(told[2].means.size(), 1u) << "\"guess\" has axes";
  EXPECT_EQ(told[2].means[0].first, "loss");
  Session net = session.line;
  const auto whole = net.run(
      {testing_nets::view(unseen.x.data(), DType::f32, Shape{11, 2}), testing_nets::view(unseen.y.data(), DType::f32, Shape{11, 1})});
  ASSERT_TRUE(whole.ok());
  EXPECT_NEAR(told[2].means[0].second, testing_line::number((*whole)[1]), 1e-6);
  EXPECT_EQ(trainer.evaluate()->means, told[2].means) << "nothing was trained since";
}

TEST(Trainer, TheSeedAndNothingElseDecides) {
  const Points points(30);
  const auto learned = [&](uint64_t seed, int threads) {
    const LineSession session({}, threads);
    TrainerOptions options = options_of(20, 7);
    options.seed = seed;
    EXPECT_TRUE(session.trainer(points.dataset(), options).run().ok());
    return contents(session.all);
  };
  const auto first = learned(1, 1);
  EXPECT_EQ(learned(1, 1), first);
  EXPECT_EQ(learned(1, 3), first);
  EXPECT_NE(learned(2, 1), first);
}

TEST(Trainer, AnErrorOfACallbackEndsItAndItCanContinue) {
  const Points points(12);
  const LineSession stopped, undisturbed;
  TrainerOptions options = options_of(8, 3);
  EXPECT_TRUE(undisturbed.trainer(points.dataset(), options).run().ok());
  options.evaluate_every = 5;
  int evaluations = 0;
  bool refuses = true;
  options.on_step = [&](const TrainingStep& step) {
    return step.step == 3 && refuses ? Status(Code::file_unwritable, "the log is full") : Status();
  };
  options.on_evaluation = [&](const Evaluation&) {
    return ++evaluations == 1 ? Status(Code::file_unwritable, "the log is full again") : Status();
  };
  Trainer trainer = stopped.trainer(points.dataset(), options);
  ASSERT_TRUE(trainer.test_with(stopped.line, points.dataset()).ok());
  EXPECT_EQ(trainer.run().diagnostic().message, "the log is full");
  EXPECT_EQ(trainer.steps(), 3);
  EXPECT_EQ(trainer.run().diagnostic().message, "the log is full again");
  EXPECT_EQ(trainer.steps(), 5);
  EXPECT_TRUE(trainer.run().ok());
  EXPECT_EQ(trainer.steps(), 8);
  EXPECT_EQ(contents(stopped.all), contents(undisturbed.all));
}

TEST(Trainer, ACancelledOneHasMadeWholeStepsAndContinues) {
  for (const bool late : {true, false}) {
    const Points points(12);
    SessionOptions how;
    how.commit_late = late;
    const LineSession session(how, 2), undisturbed(how, 2);
    TrainerOptions options = options_of(0, 3);
    std::atomic<int64_t> made{0};
    options.on_step = [&](const TrainingStep& step) { return made = step.step, Status(); };
    Trainer trainer = session.trainer(points.dataset(), options);
    std::thread other([&] {
      while (made < 20) std::this_thread::yield();
      trainer.cancel();
    });
    const Status status = trainer.run();
    other.join();
    EXPECT_EQ(status.code(), Code::cancelled) << status.text();
    const int64_t steps = trainer.steps();
    EXPECT_GE(steps, 20);
    EXPECT_EQ(steps, made);
    ASSERT_TRUE(trainer.step().ok()) << "a cancelled call does not end the next one";
    options.on_step = nullptr;
    options.steps = steps + 1;
    ASSERT_TRUE(undisturbed.trainer(points.dataset(), options).run().ok());
    EXPECT_EQ(contents(session.all), contents(undisturbed.all)) << late;
    trainer.cancel();
    EXPECT_EQ(trainer.step().status().code(), Code::cancelled) << "with no call in progress it is the next one";
    EXPECT_EQ(trainer.steps(), steps + 1);
    EXPECT_TRUE(trainer.step().ok());
  }
}

TEST(Trainer, ALossThatIsNoNumberNamesTheSampleAndUpdatesNothing) {
  for (const bool late : {true, false}) {
    Points points(6);
    points.x[9] = std::numeric_limits<float>::quiet_NaN();  // of sample 4
    SessionOptions how;
    how.commit_late = late;
    const LineSession session(how);
    TrainerOptions options = options_of(9, 3);
    options.shuffle = false;
    std::map<std::string, std::string> after_first;
    options.on_step = [&](const TrainingStep& step) {
      if (step.step == 1) after_first = contents(session.all);
      return Status();
    };
    Trainer trainer = session.trainer(points.dataset(), options);
    const Status status = trainer.run();
    EXPECT_EQ(status.code(), Code::numerics);
    EXPECT_EQ(status.diagnostic().message, R"(the loss of step 2 is nan: input "x" has nan in sample 4)");
    EXPECT_EQ(contents(session.all) == after_first, late) << "an update that is made early is made before the loss is looked at";
    EXPECT_EQ(trainer.steps(), late ? 1 : 2);
  }
}

TEST(Trainer, ALossThatIsNoNumberNamesTheOperatorOrTheVariable) {
  Points points(6);
  points.y[4] = 1e30F;  // its square is infinite
  const LineSession session;
  TrainerOptions options = options_of(9, 3);
  options.shuffle = false;
  Trainer trainer = session.trainer(points.dataset(), options);
  const Status status = trainer.run();
  EXPECT_EQ(status.code(), Code::numerics);
  const std::string& message = status.diagnostic().message;
  EXPECT_EQ(message.rfind("the loss of step 2 is inf: \"", 0), 0u) << message;
  EXPECT_NE(message.find("is the first operator that makes such a number, element 1 of its output is inf"), std::string::npos) << message;
  EXPECT_EQ(trainer.steps(), 1);
  EXPECT_EQ(trainer.run().diagnostic().message, message) << "nothing has changed";
  const float infinite[2] = {1, std::numeric_limits<float>::infinity()};
  Session all = session.all;
  ASSERT_TRUE(all.write_variable("w", {DType::f32, Shape{2, 1}, const_cast<float*>(infinite)}).ok());
  points.y[4] = 1;
  const Status poisoned = trainer.run();
  EXPECT_EQ(poisoned.code(), Code::numerics);
  EXPECT_NE(poisoned.text().find("variable \"w\" is not finite"), std::string::npos) << poisoned.text();
}

TEST(Trainer, MismatchesOfNetAndDataAreNamed) {
  const Points points(4);
  const LineSession session;
  const auto refused = [&](const std::shared_ptr<const Dataset>& data, const TrainerOptions& options) {
    return Trainer::create(session.train, data, options).status();
  };
  EXPECT_EQ(refused(nullptr, options_of(1, 2)).code(), Code::invalid_argument);
  EXPECT_EQ(refused(points.dataset(), options_of(1, 5)).diagnostic().message, "there are 4 samples, fewer than a batch of 5");
  EXPECT_EQ(refused(points.dataset(), options_of(1, 0)).code(), Code::invalid_argument);
  EXPECT_EQ(refused(points.dataset(), options_of(-1, 2)).code(), Code::invalid_argument);
  TrainerOptions huge = options_of(1, INT64_MAX);
  huge.last_batch = LastBatch::keep;
  EXPECT_EQ(refused(points.dataset(), huge).code(), Code::invalid_argument);
  huge.batch = 2;
  huge.read_ahead = INT32_MAX;
  EXPECT_EQ(refused(points.dataset(), huge).code(), Code::invalid_argument);
  TrainerOptions options = options_of(1, 2);
  options.loss = "guess";
  EXPECT_EQ(session.trainer(points.dataset(), options).run().code(), Code::unknown_name) << "a batch has many of it";
  options.loss = "lost";
  EXPECT_NE(refused(points.dataset(), options).diagnostic().message.find("\"lost\""), std::string::npos);
  const TensorView x = testing_nets::view(points.x.data(), DType::f32, Shape{4, 2}),
                   y = testing_nets::view(points.y.data(), DType::f32, Shape{4, 1});
  const Status missing = refused(*Dataset::of_arrays({{"x", x}}), options_of(1, 2));
  EXPECT_EQ(missing.code(), Code::missing_input);
  EXPECT_NE(missing.diagnostic().message.find("\"y\""), std::string::npos);
  EXPECT_EQ(refused(*Dataset::of_arrays({{"x", x}, {"y", y}, {"z", y}}), options_of(1, 2)).code(), Code::unknown_name);
  // The order of the arrays does not matter; a shape that does not fit is found when a batch is prepared.
  Trainer trainer = session.trainer(*Dataset::of_arrays({{"y", y}, {"x", x}}), options_of(1, 2));
  EXPECT_TRUE(trainer.run().ok());
  const auto wide = Dataset::of_arrays({{"x", testing_nets::view(points.x.data(), DType::f32, Shape{2, 4})},
                                        {"y", testing_nets::view(points.y.data(), DType::f32, Shape{2, 2})}});
  const Status shapes = session.trainer(*wide, options_of(1, 2)).run();
  EXPECT_EQ(shapes.code(), Code::shape_mismatch) << shapes.text();
  EXPECT_EQ(trainer.test_with(session.line, nullptr).code(), Code::invalid_argument);
  const auto none = Dataset::of_arrays({{"x", {DType::f32, Shape{0, 2}, nullptr}}, {"y", {DType::f32, Shape{0, 1}, nullptr}}});
  EXPECT_EQ(trainer.test_with(session.line, *none).code(), Code::invalid_argument);
}

// Samples with lengths of their own, some of which can not be read.
class OwnDataset final : public Dataset {
 public:
  explicit OwnDataset(std::set<int64_t> broken) : broken_(std::move(broken)) {}
  const std::vector<std::string>& names() const override { return names_; }
  int64_t samples() const override { return 6; }
  std::string sample_name(int64_t sample) const override { return "point" + std::to_string(sample) + ".txt"; }
  // Sample i is i + 1 rows.
  Status read(const BatchRequest& request, Batch& batch) const override {
    int64_t rows = 0;
    for (int64_t k = 0; k < request.count; ++k) {
      if (broken_.count(request.samples[k]) != 0) return {Code::file_corrupt, sample_name(request.samples[k]) + " is broken"};
      rows += request.samples[k] + 1;
    }
    HEDDLE_TRY(void* const x, batch.make(0, DType::f32, Shape{rows, 2}));
    std::fill_n(static_cast<float*>(x), 2 * rows, 1.0F);
    if (forgets) return {};
    HEDDLE_TRY(void* const y, batch.make(1, DType::f32, Shape{rows, 1}));
    std::fill_n(static_cast<float*>(y), rows, 2.0F);
    ++reads;
    return {};
  }
  mutable std::atomic<int> reads{0};
  bool forgets = false;

 private:
  const std::vector<std::string> names_ = {"x", "y"};
  const std::set<int64_t> broken_;
};

TEST(Trainer, BatchesMayHaveShapesOfTheirOwn) {
  const LineSession session;
  const auto data = std::make_shared<OwnDataset>(std::set<int64_t>{});
  Trainer trainer = session.trainer(data, options_of(60, 1));
  const Status status = trainer.run();
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(data->reads, 60) << "nothing after the end is read";
  EXPECT_EQ(session.train.plan_counts().made, 6);
}

TEST(Trainer, ASampleThatCannotBeReadIsNamedWithItsStep) {
  const LineSession session;
  TrainerOptions options = options_of(6, 1);
  options.shuffle = false;
  Trainer trainer = session.trainer(std::make_shared<OwnDataset>(std::set<int64_t>{2}), options);
  const Status status = trainer.run();
  EXPECT_EQ(status.code(), Code::file_corrupt);
  EXPECT_NE(status.text().find("point2.txt is broken"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("step 3"), std::string::npos) << status.text();
  EXPECT_EQ(trainer.steps(), 2);
  const auto forgetful = std::make_shared<OwnDataset>(std::set<int64_t>{});
  forgetful->forgets = true;
  EXPECT_EQ(session.trainer(forgetful, options).run().code(), Code::internal);
}

}  // namespace
}  // namespace heddle::testing_train

// Trainers of several ranks learn what one learns from the same batches, and are alike, whichever of them sees the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "heddle/checkpoint.h"
#include "state/checkpoint_file.h"
#include "trained_ranks.h"
#include "weighted_net.h"

namespace heddle::testing_train {
namespace {

using testing::TemporaryFolder;

Training training_of(const Points& points, const Points& tests, int64_t steps, int64_t batch = 6) {
  Training training;
  training.options.steps = steps;
  training.options.batch = batch;
  training.options.seed = 11;
  training.options.evaluate_every = 4;
  training.data = points.dataset();
  training.tests = tests.dataset();
  return training;
}

std::string unused_name() {
  static std::atomic<int> count{0};
  return "local:trainer" + std::to_string(++count);
}

// Seeds of first contents differ by rank, so that what is alike comes from rank 0.
TEST(TrainerRanks, LearnWhatOneLearns) {
  const Points points(50, 0.1F), tests(13);
  for (const char* const optimizer : {"sgd", "adam"}) {
    Training training = training_of(points, tests, 20);
    training.how = testing_line::learning(optimizer);
    training.how.gradient_norm = true;
    const Learned alone = learn_alone(training);
    for (const int ranks : {2, 3, 5}) {
      const TemporaryFolder folder;
      for (const std::string& rendezvous : {unused_name(), "file:" + (folder / "job").string()}) {
        const std::vector<Learned> learned = learn_together(ranks, rendezvous, training);
        expect_alike(learned);
        expect_near(learned[0], alone, 1e-6);
      }
    }
  }
}

// 50 samples in batches of 6: the last has 2, or is filled up. Nothing is weighed wrongly where ranks have unequal parts.
TEST(TrainerRanks, TakeTheLastBatchAsOneDoes) {
  const Points points(50, 0.1F), tests(13);
  Training training = training_of(points, tests, 30);
  training.options.last_batch = LastBatch::keep;
  const Learned alone = learn_alone(training);
  EXPECT_EQ(alone.samples[8], 2);
  const std::vector<Learned> two = learn_together(2, unused_name(), training);
  expect_alike(two);
  expect_near(two[0], alone, 1e-6);
  const std::vector<Learned> three = learn_together(3, unused_name(), training);
  for (const Learned& rank : three) {
    EXPECT_EQ(rank.status.code(), Code::invalid_argument);
    EXPECT_NE(rank.status.text().find("the last batch has 2 samples, and there are 3 ranks"), std::string::npos) << rank.status.text();
    EXPECT_EQ(rank.losses.size(), 0u) << "before the first step";
  }
}

TEST(TrainerRanks, ReadOnlyTheirOwnSamples) {
  class Watched final : public Dataset {
   public:
    Watched(std::shared_ptr<const Dataset> of, std::set<int64_t>* read) : of_(std::move(of)), read_(read) {}
    const std::vector<std::string>& names() const override { return of_->names(); }
    int64_t samples() const override { return of_->samples(); }
    bool is_in_memory() const override { return true; }
    Status read(const BatchRequest& request, Batch& batch) const override {
      if (request.count > 1) read_->insert(request.samples, request.samples + request.count);  // one: a checksum
      return of_->read(request, batch);
    }

   private:
    std::shared_ptr<const Dataset> of_;
    std::set<int64_t>* read_;
  };
  const Points points(24);
  std::set<int64_t> read[2];
  Training training = training_of(points, points, 0, 12);
  training.tests = nullptr;
  training.options.epochs = 1;
  training.prepare = [&](int rank, Training& own) { own.data = std::make_shared<Watched>(own.data, &read[rank]); };
  expect_alike(learn_together(2, unused_name(), training));
  EXPECT_EQ(read[0].size(), 12u);
  EXPECT_EQ(read[1].size(), 12u);
  for (const int64_t sample : read[0]) EXPECT_EQ(read[1].count(sample), 0u) << sample;
}

TEST(TrainerRanks, ComputeMetricsOfAllSamples) {
  const Points points(50), tests(13);
  Training training = training_of(points, tests, 8);
  training.options.metrics = {"perplexity:loss"};
  const std::vector<Learned> learned = learn_together(3, unused_name(), training);
  expect_alike(learned);
  expect_near(learned[0], learn_alone(training), 1e-6);
  ASSERT_EQ(learned[0].evaluations.size(), 2u);
  EXPECT_EQ(learned[0].evaluations[0].means.back().first, "perplexity");
}

TEST(TrainerRanks, AgreeOnTheBestAndWhenToStop) {
  const Points points(50, 0.5F), tests(13);
  for (const bool in_folder : {false, true}) {
    const TemporaryFolder folder;
    Training training = training_of(points, tests, 400);
    training.how.learning_rate = *LearningRate::parse(0.3, "constant");
    training.options.best.mean = "loss";
    training.options.best.patience = 2;
    training.prepare = [&](int rank, Training& own) {
      if (in_folder && rank == 0) own.options.checkpoints.folder = folder.path().string();
    };
    training.run = [](int, Trainer& trainer, RankSession&) -> Status {
      HEDDLE_CHECK(trainer.run());
      EXPECT_TRUE(trainer.is_stopped_early());
      HEDDLE_CHECK(trainer.restore_best());
      EXPECT_EQ(trainer.steps(), trainer.best()->first);
      return {};
    };
    const std::vector<Learned> learned = learn_together(2, unused_name(), training);
    expect_alike(learned);
    ASSERT_TRUE(learned[1].best);
    EXPECT_LT(learned[1].best->first, static_cast<int64_t>(learned[1].losses.size()));
  }
}

// Rank 1 is not told of the folder. All go on after the checkpoint, bit for bit, and each communicator is made once for all of that (C12).
TEST(TrainerRanks, ContinueFromTheCheckpointOfRank0) {
  const Points points(50, 0.1F), tests(13);
  const TemporaryFolder folder, meeting;
  Training training = training_of(points, tests, 16);
  training.prepare = [&](int rank, Training& own) {
    if (rank == 0) own.options.checkpoints = checkpoints_in(folder, 16, 4).checkpoints;
    if (rank == 1) own.options.checkpoints.folder = "/a folder that is not there";
  };
  const std::vector<Learned> undisturbed = learn_together(2, unused_name(), training);
  expect_alike(undisturbed);
  training.first_step = 8;
  training.run = [&](int rank, Trainer& trainer, RankSession&) -> Status {
    for (const int64_t step : {12, 4, 8}) {
      const auto info = trainer.resume(rank == 0 ? (folder / checkpoint_name(step)).string() : "");
      HEDDLE_CHECK(info.status());
      EXPECT_EQ(info->step, step) << rank;
      HEDDLE_CHECK(trainer.prepare());
      EXPECT_EQ(trainer.steps(), step) << rank;
    }
    HEDDLE_CHECK(trainer.save_checkpoint());
    return trainer.run();
  };
  const std::vector<Learned> learned = learn_together(2, "file:" + (meeting / "job").string(), training);
  expect_alike(learned);
  EXPECT_EQ(learned[0].variables, undisturbed[0].variables);
  const std::vector<double> last(undisturbed[0].losses.begin() + 8, undisturbed[0].losses.end());
  EXPECT_EQ(learned[1].losses, last);
  size_t leaders = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(meeting.path()))
    leaders += entry.path().filename().string().find("leader") != std::string::npos ? 1 : 0;
  EXPECT_EQ(leaders, 2u) << "one of the net, one of the trainer";
}

void expect_refusal(const std::string& said, const std::function<void(Training& own)>& change) {
  const Points points(50), tests(13);
  Training training = training_of(points, tests, 4);
  training.prepare = [&](int rank, Training& own) {
    if (rank == 1) change(own);
  };
  const std::vector<Learned> learned = learn_together(3, unused_name(), training);
  for (const Learned& rank : learned) {
    EXPECT_EQ(rank.status.code(), Code::invalid_argument);
    EXPECT_NE(rank.status.text().find(said), std::string::npos) << rank.status.text();
    EXPECT_TRUE(rank.losses.empty());
  }
}

TEST(TrainerRanks, ThatAreUnlikeAreRefusedAndNamed) {
  const Points others(50, 3), fewer(40);
  expect_refusal("rank 1 has another checksum of samples than rank 0: ", [&](Training& own) { own.data = others.dataset(); });
  expect_refusal("rank 1 has another number of samples than rank 0: \"40\" and \"50\"", [&](Training& own) { own.data = fewer.dataset(); });
  expect_refusal("rank 1 has another seed than rank 0: \"12\" and \"11\"", [](Training& own) { own.options.seed = 12; });
  expect_refusal("rank 1 has another batch than rank 0: \"7\" and \"6\"", [](Training& own) { own.options.batch = 7; });
  expect_refusal("rank 1 has another net than rank 0: ",
                 [](Training& own) { own.how.learning_rate = *LearningRate::parse(0.2, "constant"); });
  expect_refusal(": rank 1 has \"", [](Training& own) { own.how.learning_rate = *LearningRate::parse(0.2, "constant"); });
  expect_refusal("rank 1 has another number of steps than rank 0: \"5\" and \"4\"", [](Training& own) { own.options.steps = 5; });
  expect_refusal("rank 1 has another test than rank 0: \"none\" and \"yes\"", [](Training& own) { own.tests = nullptr; });
  expect_refusal("rank 1 has another number of test samples than rank 0: ", [&](Training& own) { own.tests = fewer.dataset(); });
}

// The ranks have not met in the communicator of the net then.
TEST(TrainerRanks, AreToldThatSamplesOfOneCanNotBeRead) {
  class Unreadable final : public Dataset {
   public:
    explicit Unreadable(std::shared_ptr<const Dataset> data) : data_(std::move(data)) {}
    int64_t samples() const override { return data_->samples(); }
    const std::vector<std::string>& names() const override { return data_->names(); }
    Status read(const BatchRequest&, Batch&) const override { return {Code::file_unreadable, "the disk hums"}; }

   private:
    const std::shared_ptr<const Dataset> data_;
  };
  const Points points(50), tests(13);
  for (const bool prepares : {false, true}) {
    Training training = training_of(points, tests, 4);
    training.prepare = [](int rank, Training& own) {
      if (rank == 1) own.data = std::make_shared<Unreadable>(own.data);
    };
    if (prepares)
      training.run = [](int, Trainer& trainer, RankSession&) -> Status {
        HEDDLE_CHECK(trainer.prepare());
        return trainer.run();
      };
    for (const Learned& rank : learn_together(3, unused_name(), training)) {
      EXPECT_NE(rank.status.text().find("the disk hums"), std::string::npos) << rank.status.text();
      EXPECT_TRUE(rank.losses.empty());
    }
  }
}

TEST(TrainerRanks, NeedASampleEach) {
  const Points points(50), few(2);
  for (const bool of_tests : {false, true}) {
    const Training training = of_tests ? training_of(points, few, 4) : training_of(points, points, 4, 2);
    for (const Learned& rank : learn_together(3, unused_name(), training)) {
      EXPECT_EQ(rank.status.code(), Code::invalid_argument);
      const char* const said = of_tests ? "there are 2 samples to test with, and 3 ranks" : "a batch has 2 samples, and there are 3 ranks";
      EXPECT_NE(rank.status.text().find(said), std::string::npos) << rank.status.text();
    }
  }
}

TEST(TrainerRanks, OfAnotherNumberThanTheNetsAreRefused) {
  const Points points(50);
  const RankSession session(0, 2, unused_name(), testing_line::learning());
  auto other = session.runtime.open(session.nets, RankSession::options(0, 3, unused_name(), 0));
  ASSERT_TRUE(other.ok()) << other.status().text();
  const auto made = Trainer::create(*other->net("train"), points.dataset(), {});
  EXPECT_EQ(made.status().code(), Code::invalid_argument);
  EXPECT_NE(made.status().text().find("net \"train\" was made for 2 ranks, and communicator \"data_parallel\" of the session has 3"),
            std::string::npos)
      << made.status().text();
}

// A loss that is no number on one rank is none on all: no rank updates its variables, and all say so.
TEST(TrainerRanks, StopAtALossThatIsNoNumber) {
  Points points(12);
  points.y[5] = std::numeric_limits<float>::quiet_NaN();
  Training training = training_of(points, points, 10, 6);
  training.tests = nullptr;
  training.options.shuffle = false;
  int told = 0;
  for (const Learned& rank : learn_together(2, unused_name(), training)) {
    EXPECT_EQ(rank.status.code(), Code::numerics) << rank.status.text();
    EXPECT_NE(rank.status.text().find("the loss of step 1 is nan"), std::string::npos) << rank.status.text();
    told += rank.status.text().find("\"y\"") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 1) << "the rank that has the sample names it";
}

// Rank 0 does something after the training, which the others wait for, or are told of.
TEST(TrainerRanks, WaitForEachOther) {
  const Points points(50);
  for (const bool fails : {false, true}) {
    Training training = training_of(points, points, 3);
    training.tests = nullptr;
    std::atomic<bool> saved{false}, seen{true};
    training.run = [&](int rank, Trainer& trainer, RankSession&) -> Status {
      HEDDLE_CHECK(trainer.run());
      if (rank == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (fails) return {Code::file_unwritable, "the disk is full"};  // its session closes
        saved = true;
      }
      Status status = trainer.wait_for_ranks();
      if (!saved) seen = false;
      return status;
    };
    const std::vector<Learned> ranks = learn_together(3, unused_name(), training);
    EXPECT_EQ(seen, !fails);
    for (size_t rank = 0; rank < 3; ++rank) {
      const Code code = !fails ? Code::ok : rank == 0 ? Code::file_unwritable : Code::device_failed;
      EXPECT_EQ(ranks[rank].status.code(), code) << ranks[rank].status.text();
    }
  }
}

// A rank that is cancelled ends the step of the others. What they have is that of their last whole step, the same on all, and with it they
// go on when all do.
TEST(TrainerRanks, GoOnTogetherAfterOneWasCancelled) {
  const Points points(50), tests(13);
  Training training = training_of(points, tests, 2000);
  training.options.evaluate_every = 0;
  const std::vector<Learned> undisturbed = learn_together(2, unused_name(), training);
  std::atomic<int64_t> made{0};
  training.on_step = [&](int rank, const TrainingStep& step) {
    if (rank == 1) made = step.step;
  };
  training.run = [&](int rank, Trainer& trainer, RankSession&) -> Status {
    std::thread canceller([&, rank] {
      while (rank == 1 && made < 20) std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (rank == 1) trainer.cancel();
    });
    const Status ran = trainer.run();
    canceller.join();
    EXPECT_EQ(ran.code(), rank == 1 ? Code::cancelled : Code::device_failed) << ran.text();
    EXPECT_GE(trainer.steps(), 20);
    EXPECT_LT(trainer.steps(), 2000);
    return trainer.run();
  };
  const std::vector<Learned> learned = learn_together(2, unused_name(), training);
  expect_alike(learned);
  EXPECT_EQ(learned[0].losses, undisturbed[0].losses);
  EXPECT_EQ(learned[0].variables, undisturbed[0].variables);
}

}  // namespace
}  // namespace heddle::testing_train

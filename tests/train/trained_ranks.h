// Trainings by several ranks, each a session with a thread and a runtime of its own, and what they have afterwards.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "points.h"

namespace heddle::testing_train {

inline Runtime runtime_of_ranks() {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/gloo.so"};
  options.default_plugins = false;
  options.threads = 1;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

// "line" and "train", which trains it on so many ranks; each rank has `seed` for its first contents.
struct RankSession {
  RankSession(int rank, int ranks, const std::string& rendezvous, const TrainingOptions& how, uint64_t seed = 0)
      : runtime(runtime_of_ranks()),
        nets(nets_of(runtime, ranks, how)),
        all(LineSession::value_of(runtime.open(nets, options(rank, ranks, rendezvous, seed)))),
        train(LineSession::value_of(all.net("train"))),
        line(LineSession::value_of(all.net("line"))) {}
  static Nets nets_of(const Runtime& runtime, int ranks, TrainingOptions how) {
    how.parallel.ranks = ranks;
    Nets nets = testing_line::line();
    const Status added = nets.add_training(runtime, "line", how, "train");
    EXPECT_TRUE(added.ok()) << added.text();
    return nets;
  }
  static SessionOptions options(int rank, int ranks, const std::string& rendezvous, uint64_t seed) {
    SessionOptions made;
    made.seed = seed;
    CommunicatorOptions& all = made.communicators.emplace_back();
    all.rank = rank;
    all.size = ranks;
    all.rendezvous = rendezvous;
    all.timeout_ns = 2'000'000'000;
    return made;
  }
  Runtime runtime;
  Nets nets;
  Session all, train, line;
};

// The state of a rank after its training.
struct Learned {
  Status status;
  std::vector<double> losses;
  std::vector<int64_t> samples;  // of steps
  std::vector<Evaluation> evaluations;
  std::map<std::string, std::string> variables;
  std::optional<std::pair<int64_t, double>> best;
  bool stopped_early = false;
};

// A training by ranks: what a test wants it to be.
struct Training {
  TrainerOptions options;
  TrainingOptions how = testing_line::learning();
  std::shared_ptr<const Dataset> data, tests;
  // Called by each rank, if they are there: they may change the options, and do something with the trainer in the place of run().
  std::function<void(int rank, Training& own)> prepare = {};
  std::function<Status(int rank, Trainer& trainer, RankSession& session)> run = {};
  std::function<void(int rank, const TrainingStep& step)> on_step = {};
  int64_t first_step = 0;  // that it continues after
};

inline Learned learn(int rank, int ranks, const std::string& rendezvous, Training training) {
  Learned learned;
  if (training.prepare) training.prepare(rank, training);
  training.options.on_step = [&](const TrainingStep& step) {
    learned.losses.resize(static_cast<size_t>(step.step - training.first_step));  // steps that were lost are made again
    learned.losses.back() = step.loss;
    if (training.on_step) training.on_step(rank, step);
    learned.samples.resize(learned.losses.size());
    learned.samples.back() = step.samples;
    return Status();
  };
  training.options.on_evaluation = [&](const Evaluation& of) { return learned.evaluations.push_back(of), Status(); };
  RankSession session(rank, ranks, rendezvous, training.how, static_cast<uint64_t>(rank));
  const auto work = [&]() -> Status {
    HEDDLE_TRY(Trainer trainer, Trainer::create(session.train, training.data, training.options));
    if (training.tests) HEDDLE_CHECK(trainer.test_with(session.line, training.tests));
    const Status ran = training.run ? training.run(rank, trainer, session) : trainer.run();
    learned.best = trainer.best();
    learned.stopped_early = trainer.is_stopped_early();
    return ran;
  };
  learned.status = work();
  learned.variables = testing_line::contents(session.all);
  return learned;
}

// Returns what the ranks have learned, by rank.
inline std::vector<Learned> learn_together(int ranks, const std::string& rendezvous, const Training& training) {
  std::vector<Learned> learned(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { learned[static_cast<size_t>(rank)] = learn(rank, ranks, rendezvous, training); });
  for (std::thread& thread : threads) thread.join();
  return learned;
}
inline Learned learn_alone(const Training& training) {
  return learn(0, 1, "", training);
}

inline void expect_alike(const std::vector<Learned>& ranks) {
  for (const Learned& rank : ranks) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.text();
    EXPECT_EQ(rank.losses, ranks[0].losses);
    EXPECT_EQ(rank.samples, ranks[0].samples);
    EXPECT_EQ(rank.variables, ranks[0].variables);
    EXPECT_EQ(rank.best, ranks[0].best);
    EXPECT_EQ(rank.stopped_early, ranks[0].stopped_early);
    ASSERT_EQ(rank.evaluations.size(), ranks[0].evaluations.size());
    for (size_t i = 0; i < rank.evaluations.size(); ++i) {
      EXPECT_EQ(rank.evaluations[i].step, ranks[0].evaluations[i].step);
      EXPECT_EQ(rank.evaluations[i].samples, ranks[0].evaluations[i].samples);
      EXPECT_EQ(rank.evaluations[i].means, ranks[0].evaluations[i].means);
    }
  }
}

// Returns a variable's numbers.
inline std::vector<float> floats_of(const Learned& learned, const std::string& name) {
  const std::string& bytes = learned.variables.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline void expect_near(const Learned& found, const Learned& expected, double tolerance) {
  ASSERT_TRUE(expected.status.ok()) << expected.status.text();
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (size_t i = 0; i < found.losses.size(); ++i) EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance) << "step " << i + 1;
  EXPECT_EQ(found.samples, expected.samples);
  ASSERT_EQ(found.evaluations.size(), expected.evaluations.size());
  for (size_t i = 0; i < found.evaluations.size(); ++i) {
    ASSERT_EQ(found.evaluations[i].means.size(), expected.evaluations[i].means.size());
    EXPECT_EQ(found.evaluations[i].samples, expected.evaluations[i].samples);
    for (size_t m = 0; m < found.evaluations[i].means.size(); ++m) {
      EXPECT_EQ(found.evaluations[i].means[m].first, expected.evaluations[i].means[m].first);
      EXPECT_NEAR(found.evaluations[i].means[m].second, expected.evaluations[i].means[m].second, tolerance);
    }
  }
  for (const char* const name : {"w", "b"}) {
    const std::vector<float> a = floats_of(found, name), b = floats_of(expected, name);
    for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << name;
  }
}

}  // namespace heddle::testing_train

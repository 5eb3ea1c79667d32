// Checkpoints: a training that continues from one is the training that was never interrupted; files that are not whole change nothing.
#include "heddle/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "derive/training_net.h"
#include "heddle/trainer.h"
#include "load/temporary_folder.h"
#include "points.h"
#include "session/session_impl.h"
#include "state/checkpoint_file.h"
#include "weights/safetensors.h"

namespace heddle::testing_train {
namespace {

using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;
using testing_line::contents;

TrainerOptions options_in(const TemporaryFolder& folder, int64_t steps, int64_t every) {
  TrainerOptions options = checkpoints_in(folder, steps, every);
  options.last_batch = LastBatch::keep;
  options.seed = 11;
  return options;
}

std::string file_of(const TemporaryFolder& folder, int64_t step) {
  return (folder / checkpoint_name(step)).string();
}

std::vector<int64_t> steps_in(const TemporaryFolder& folder) {
  const auto list = list_checkpoints(folder.path().string());
  EXPECT_TRUE(list.ok()) << list.status().text();
  EXPECT_TRUE(list->damaged.empty());
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : list->complete) steps.push_back(info.step);
  return steps;
}

TEST(Checkpoint, TrainingContinuesFromEachBitForBit) {
  const Points points(10);
  for (const Optimizer& optimizer : optimizers()) {
    const TemporaryFolder folder;
    TrainerOptions options = options_in(folder, 8, 1);
    std::vector<double> losses;
    options.on_step = [&](const TrainingStep& step) { return losses.push_back(step.loss), Status(); };
    const LineSession whole({}, 1, optimizer.name);
    ASSERT_TRUE(whole.trainer(points.dataset(), options).run().ok());
    const std::vector<double> undisturbed = losses;
    ASSERT_EQ(steps_in(folder), (std::vector<int64_t>{8, 7, 6, 5, 4, 3, 2, 1}));
    for (int64_t at = 1; at <= 8; ++at) {
      losses.assign(undisturbed.begin(), undisturbed.begin() + at);
      const LineSession other({}, at % 2 == 0 ? 1 : 3, optimizer.name);
      Trainer trainer = other.trainer(points.dataset(), options);
      const auto info = trainer.resume(file_of(folder, at));
      ASSERT_TRUE(info.ok()) << info.status().text();
      EXPECT_EQ(info->step, at);
      EXPECT_EQ(info->loss, undisturbed[static_cast<size_t>(at - 1)]);
      EXPECT_EQ(trainer.steps(), at);
      ASSERT_TRUE(trainer.run().ok());
      EXPECT_EQ(losses, undisturbed) << optimizer.name << " from " << at;
      EXPECT_EQ(contents(other.all), contents(whole.all)) << optimizer.name << " from " << at;
    }
  }
}

// The file has the variables as they were after that step, whatever the training did while it was written.
TEST(Checkpoint, IsOfOneStepThoughTheTrainingGoesOn) {
  const Points points(10);
  const TemporaryFolder folder;
  TrainerOptions options = options_in(folder, 40, 1);
  std::map<int64_t, std::map<std::string, std::string>> at;
  const LineSession session;
  options.on_step = [&](const TrainingStep& step) { return at[step.step] = contents(session.all), Status(); };
  ASSERT_TRUE(session.trainer(points.dataset(), options).run().ok());
  const LineSession other;
  Session all = other.all;
  for (int64_t step = 1; step <= 40; ++step) {
    ASSERT_TRUE(all.load_variables(file_of(folder, step)).ok()) << "a checkpoint is a file of variables too";
    EXPECT_EQ(contents(all), at[step]) << step;
  }
}

TEST(Checkpoint, SaysWhatItIsOf) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  TrainerOptions options = options_in(folder, 6, 0);
  options.evaluate_every = 4;
  std::vector<Evaluation> evaluations;
  options.on_evaluation = [&](const Evaluation& of) { return evaluations.push_back(of), Status(); };
  Trainer trainer = session.trainer(points.dataset(), options);
  ASSERT_TRUE(trainer.test_with(session.line, points.dataset()).ok());
  ASSERT_TRUE(trainer.run().ok());
  EXPECT_EQ(steps_in(folder), (std::vector<int64_t>{6, 4})) << "when evaluations are due, and after the last step";
  const auto info = read_checkpoint_info(file_of(folder, 4));
  ASSERT_TRUE(info.ok()) << info.status().text();
  EXPECT_EQ(info->step, 4);
  EXPECT_EQ(info->means, evaluations[0].means);
  EXPECT_EQ(info->seed, 11u);
  EXPECT_EQ(info->samples, 10);
  EXPECT_EQ(info->batch, 4);
  EXPECT_EQ(info->last_batch, LastBatch::keep);
  EXPECT_TRUE(info->shuffles);
  EXPECT_EQ(info->net.size(), 16u);
  EXPECT_FALSE(info->version.empty());
}

// Exactly the variables of the session, with the optimizer's state and the counter of steps (C11).
TEST(Checkpoint, HasEachVariableAndNothingElse) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  ASSERT_TRUE(session.trainer(points.dataset(), options_in(folder, 3, 3)).run().ok());
  const auto file = Safetensors::open(folder.path(), std::filesystem::path(file_of(folder, 3)).filename().string(), Limits());
  ASSERT_TRUE(file.ok());
  std::set<std::string> names;
  for (const TensorEntry& entry : file->tensors()) names.insert(entry.name);
  EXPECT_EQ(names, (std::set<std::string>{"w", "b", "w.mean", "b.mean", "w.squares", "b.squares", "step"}));
  EXPECT_EQ(*reinterpret_cast<const int64_t*>((*file->blob(*file->find("step")))->data), 3);
}

TEST(Checkpoint, OldOnesAreRemovedWhenANewerOneIsComplete) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  TrainerOptions options = options_in(folder, 11, 2);
  options.checkpoints.keep = 3;
  Trainer trainer = session.trainer(points.dataset(), options);
  ASSERT_TRUE(trainer.run().ok());
  EXPECT_EQ(steps_in(folder), (std::vector<int64_t>{11, 10, 8}));
  ASSERT_TRUE(trainer.save_checkpoint().ok());
  EXPECT_EQ(steps_in(folder), (std::vector<int64_t>{11, 10, 8})) << "there is one of this step";
  ASSERT_TRUE(trainer.step().ok());
  ASSERT_TRUE(trainer.save_checkpoint().ok());
  EXPECT_EQ(steps_in(folder), (std::vector<int64_t>{12, 11, 10}));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 3u) << "no temporary file is left";
}

// A checkpoint of three steps, and a training of one step that tries to resume from damaged copies of it.
struct Damage {
  Damage() {
    EXPECT_TRUE(session.trainer(points.dataset(), options).run().ok());
    EXPECT_TRUE(trainer.step().ok());
    before = contents(other.all);
    good = read_text(file_of(folder, 3));
  }
  // Returns the error, which names the file and has changed nothing.
  Status refused(const std::string& bytes) {
    write_text(bad, bytes);
    const Status status = trainer.resume(bad).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(trainer.steps(), 1);
    EXPECT_EQ(contents(other.all), before);
    EXPECT_NE(status.text().find("step-000000004"), std::string::npos) << status.text();
    return status;
  }
  const TemporaryFolder folder;
  const Points points{10};
  const TrainerOptions options = options_in(folder, 3, 3);
  const LineSession session, other;
  Trainer trainer = other.trainer(points.dataset(), options);
  std::map<std::string, std::string> before;
  std::string good;
  const std::string bad = file_of(folder, 4);
};

TEST(Checkpoint, NoPartOfOneIsLoaded) {
  Damage damage;
  for (size_t size = 0; size < damage.good.size(); ++size) {
    const Status status = damage.refused(damage.good.substr(0, size));
    EXPECT_TRUE(status.code() == Code::file_truncated || status.code() == Code::file_corrupt) << size << ": " << status.text();
  }
  EXPECT_TRUE(damage.trainer.resume(file_of(damage.folder, 3)).ok());
  EXPECT_EQ(contents(damage.other.all), contents(damage.session.all));
}

// Each byte of a tensor is changed, which the tensor's own checksum finds, and each of the header, which the file's finds.
TEST(Checkpoint, NoByteOfOneMayChange) {
  Damage damage;
  const auto file = Safetensors::open(damage.folder.path(), std::filesystem::path(file_of(damage.folder, 3)).filename().string(), Limits());
  ASSERT_TRUE(file.ok());
  size_t data_begin = damage.good.size();
  for (const TensorEntry& tensor : file->tensors()) {
    data_begin = std::min(data_begin, static_cast<size_t>(tensor.offset));
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.bytes; ++i) {
      std::string bytes = damage.good;
      bytes[static_cast<size_t>(i)] = static_cast<char>(bytes[static_cast<size_t>(i)] ^ 1);
      const Status status = damage.refused(bytes);
      EXPECT_EQ(status.code(), Code::file_corrupt);
      EXPECT_NE(status.text().find("tensor \"" + tensor.name + "\""), std::string::npos) << status.text();
    }
  }
  size_t padding_ends = 0;  // what the format pads with has another name or dtype without harm
  for (size_t i = 0; i < data_begin; ++i) {
    if (damage.good.compare(i, 12, "\"__padding__") == 0) padding_ends = damage.good.find('}', i);
    if (i < padding_ends) continue;
    SCOPED_TRACE("byte " + std::to_string(i));
    std::string bytes = damage.good;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    EXPECT_NE(damage.refused(bytes).code(), Code::ok);
  }
}

TEST(Checkpoint, DamagedOnesAreListedApart) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  ASSERT_TRUE(session.trainer(points.dataset(), options_in(folder, 4, 2)).run().ok());
  const std::string newest = file_of(folder, 4);
  write_text(newest, read_text(newest).substr(0, 700));
  write_text(folder / "step-4.safetensors", "of another program");
  const auto list = list_checkpoints(folder.path().string());
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->complete.size(), 1u);
  EXPECT_EQ(list->complete[0].step, 2);
  ASSERT_EQ(list->damaged.size(), 1u);
  EXPECT_NE(list->damaged[0].text().find("step-000000004"), std::string::npos);
  EXPECT_EQ(list_checkpoints((folder / "none").string()).status().code(), Code::file_unreadable);
  ASSERT_TRUE(session.all.save_variables((folder / "variables").string()).ok());
  EXPECT_EQ(read_checkpoint_info((folder / "variables").string()).status().code(), Code::invalid_argument) << "it is no checkpoint";
  EXPECT_EQ(read_checkpoint_info(file_of(folder, 9)).status().code(), Code::file_not_found);
}

TEST(Checkpoint, AnotherOrderOfSamplesIsRefused) {
  const Points points(10), more(11);
  const TemporaryFolder folder;
  const LineSession session;
  ASSERT_TRUE(session.trainer(points.dataset(), options_in(folder, 2, 2)).run().ok());
  const auto says = [&](const Points& of, const std::function<void(TrainerOptions&)>& change) {
    TrainerOptions options = options_in(folder, 2, 2);
    change(options);
    const Status status = session.trainer(of.dataset(), options).resume(file_of(folder, 2)).status();
    return status.code() == Code::invalid_argument ? status.diagnostic().message.substr(status.diagnostic().message.find("has "))
                                                   : status.text();
  };
  EXPECT_EQ(says(points, [](TrainerOptions& o) { o.seed = 12; }), "has seed 11, this one 12");
  EXPECT_EQ(says(points, [](TrainerOptions& o) { o.batch = 5; }), "has batch 4, this one 5");
  EXPECT_EQ(says(points, [](TrainerOptions& o) { o.last_batch = LastBatch::drop; }), "has last_batch keep, this one drop");
  EXPECT_EQ(says(points, [](TrainerOptions& o) { o.shuffle = false; }), "has shuffle true, this one false");
  EXPECT_EQ(says(more, [](TrainerOptions&) {}), "has samples: 10, this one 11");
  const LineSession sgd({}, 1, "sgd");
  const Status other = sgd.trainer(points.dataset(), options_in(folder, 2, 2)).resume(file_of(folder, 2)).status();
  EXPECT_EQ(other.code(), Code::unknown_name) << other.text();
}

// A folder that is not there, and a disk that takes no more: the training is what it was, and continues.
TEST(Checkpoint, OneThatCannotBeWrittenLeavesTheTrainingIntact) {
  const Points points(10);
  const LineSession undisturbed;
  {
    const TemporaryFolder folder;
    ASSERT_TRUE(undisturbed.trainer(points.dataset(), options_in(folder, 6, 6)).run().ok());
  }
  for (const bool full : {false, true}) {
    const TemporaryFolder folder;
    const LineSession session;
    TrainerOptions options = options_in(folder, 6, 2);
    Trainer trainer = session.trainer(points.dataset(), options);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    if (full) {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit small = {300, before.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &small);
    } else {
      std::filesystem::remove(folder.path());
    }
    int errors = 0;
    Status status;
    while (trainer.steps() < 6 && errors < 9) {
      status = trainer.run();
      if (!status.ok()) ++errors;
    }
    EXPECT_EQ(trainer.run().code(), Code::file_unwritable) << "the last one is still due";
    EXPECT_EQ(status.code(), Code::file_unwritable) << status.text();
    EXPECT_NE(status.text().find("checkpoint of step"), std::string::npos) << status.text();
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::filesystem::create_directory(folder.path());
    EXPECT_EQ(contents(session.all), contents(undisturbed.all));
    const Status at_last = trainer.run();
    EXPECT_TRUE(at_last.ok()) << at_last.text();
    EXPECT_EQ(steps_in(folder), std::vector<int64_t>{6});
  }
}

TEST(Checkpoint, NetsTakeWhatItHas) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  ASSERT_TRUE(session.trainer(points.dataset(), options_in(folder, 4, 2)).run().ok());
  Nets nets = session.nets;
  const Status taken = nets.take_checkpoint(file_of(folder, 4));
  ASSERT_TRUE(taken.ok()) << taken.text();
  EXPECT_EQ(contents(testing_line::open(session.runtime, nets)), contents(session.all));
  ASSERT_TRUE(nets.take_checkpoint(file_of(folder, 2)).ok());
  EXPECT_NE(contents(testing_line::open(session.runtime, nets)), contents(session.all));
  EXPECT_EQ(nets.take_checkpoint(file_of(folder, 3)).code(), Code::file_not_found);
  Nets sgd = testing_line::learning_line(session.runtime, "momentum");
  const Status other = sgd.take_checkpoint(file_of(folder, 4));
  EXPECT_EQ(other.code(), Code::unknown_name);
  EXPECT_NE(other.text().find("\"w.velocity\""), std::string::npos) << other.text();
}

// The checksums of a file can be made to match: its numbers are looked at all the same.
TEST(Checkpoint, NumbersOutOfRangeAreRefused) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  const TrainerOptions options = options_in(folder, 3, 3);
  Trainer trainer = session.trainer(points.dataset(), options);
  ASSERT_TRUE(trainer.run().ok());
  const VariableStore& store = *Internals::of(session.all).variables;
  const auto contents_now = store.snapshot();
  ASSERT_TRUE(contents_now.ok());
  const auto good = read_checkpoint_info(file_of(folder, 3));
  ASSERT_TRUE(good.ok());
  const auto refused = [&](const std::function<void(CheckpointInfo&)>& change) {
    CheckpointInfo info = *good;
    change(info);
    const std::string file = (folder / "forged.safetensors").string();
    EXPECT_TRUE(write_checkpoint(store, *contents_now, info, file).ok());
    return trainer.resume(file).status().code() == Code::file_corrupt;
  };
  EXPECT_FALSE(refused([](CheckpointInfo&) {}));
  EXPECT_TRUE(refused([](CheckpointInfo& info) { info.step = -1; }));
  EXPECT_TRUE(refused([](CheckpointInfo& info) { info.step = INT64_MAX; }));
  EXPECT_TRUE(refused([](CheckpointInfo& info) { info.best_step = 4; }));
  EXPECT_TRUE(refused([](CheckpointInfo& info) { info.evaluations_since_best = INT64_MAX; }));
  EXPECT_TRUE(refused([](CheckpointInfo& info) { info.batch = 0; }));
}

// A loss that is finite, with gradients that are not: there is no checkpoint from which one could only fail again.
TEST(Checkpoint, VariablesWithoutNumbersAreNotWritten) {
  const Points points(10);
  const TemporaryFolder folder;
  const LineSession session;
  TrainerOptions options = options_in(folder, 3, 1);
  Session all = session.all;
  options.on_step = [&](const TrainingStep& step) {
    const float none[2] = {1, std::numeric_limits<float>::quiet_NaN()};
    return step.step == 2 ? all.write_variable("w", {DType::f32, Shape{2, 1}, const_cast<float*>(none)}) : Status();
  };
  const Status status = session.trainer(points.dataset(), options).run();
  EXPECT_EQ(status.code(), Code::numerics);
  EXPECT_EQ(steps_in(folder), std::vector<int64_t>{1});
}

}  // namespace
}  // namespace heddle::testing_train

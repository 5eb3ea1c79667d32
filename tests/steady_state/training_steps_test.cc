// Steps of training after the first ones: nothing of ours allocates, and the process's memory, threads and descriptors stay the same.
//
// HEDDLE_LONG_TESTS=1 makes the long training 10,000 steps long (tools/soak.sh --training).
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <thread>

#include "collectives/training_jobs.h"
#include "derive/training_net.h"
#include "heddle/trainer.h"
#include "heddle/training.h"
#include "load/temporary_folder.h"
#include "models/training_form.h"
#include "small_nets.h"
#include "steady_calls.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_steady;

// Opens "train", which trains with `optimizer`, and "test".
Session open_training(const Runtime& r, const std::string& recipe, const char* optimizer, const std::vector<std::string>& devices = {}) {
  auto form = models::training_form(recipe, {});
  EXPECT_TRUE(form.ok()) << form.status().text();
  std::vector<Net> both;
  both.push_back(std::move(form->train));
  both.push_back(std::move(form->test));
  auto nets = Nets::of(std::move(both));
  EXPECT_TRUE(nets.ok()) << nets.status().text();
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = optimizer;
  options.learning_rate = *LearningRate::parse(0.001, "cosine(100000)", 10);
  if (recipe != "dlrm") options.clip_norm = 10;  // its tables are updated by rows, whose gradients clipping would write out as whole tables
  options.parallel.devices = devices;
  const Status added = nets->add_training(r, "train", options, "train");
  EXPECT_TRUE(added.ok()) << added.text();
  SessionOptions of_session;
  of_session.copies = Copies::automatic;
  of_session.communicators.emplace_back();
  auto session = r.open(*nets, of_session);
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

// A batch of numbers and labels, with memory for the outputs.
Call batch_for(Session& session, int64_t samples) {
  Call call;
  for (const PortInfo& port : session.inputs()) {
    Shape shape = port.shape;
    shape[0] = samples;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < shape.element_count(); ++i) labels.push_back(i % 10);
    call.add_input(port.dtype == DType::i64 ? Blob::copy_of(DType::i64, shape, labels.data()) : blob(shape, -1.0F, 0.02F));
  }
  const Status status = call.allocate_outputs(session);
  EXPECT_TRUE(status.ok()) << status.text();
  return call;
}

TEST(SteadyState, TrainingSteps) {
  for (const char* recipe : {"lenet", "mlp", "dlrm"})
    for (const Optimizer& optimizer : optimizers())
      for (const int threads : {1, 2}) {
        const Runtime r = runtime(threads);
        Session train = *open_training(r, recipe, optimizer.name).net("train");
        std::vector<Call> calls;
        for (const int64_t samples : {1, 3}) calls.push_back(batch_for(train, samples));
        const Effort effort = long_tests ? Effort{} : Effort{.warm_up = 30, .runs = 100, .at_least = 100};
        expect_only_onednn(train, calls, effort,
                           std::string(recipe) + " by " + optimizer.name + ", " + std::to_string(threads) + " threads");
      }
}

// Samples of a recipe whose first input is a picture and whose second one has labels, which are all 0.
struct LabelledSamples {
  LabelledSamples(const Session& net, int64_t samples) {
    std::vector<std::pair<std::string, TensorView>> arrays;
    for (const PortInfo& port : net.inputs()) {
      Shape shape = port.shape;
      shape[0] = samples;
      std::byte* bytes = nullptr;
      owners.push_back(Blob::allocate(port.dtype, shape, &bytes));
      std::fill_n(bytes, TensorView{port.dtype, shape, bytes}.byte_size(), std::byte(0));
      arrays.emplace_back(port.name, TensorView{port.dtype, shape, bytes});
    }
    auto made = Dataset::of_arrays(arrays);
    EXPECT_TRUE(made.ok()) << made.status().text();
    data = *made;
  }
  std::vector<std::shared_ptr<const Blob>> owners;
  std::shared_ptr<const Dataset> data;
};

// An evaluation makes its list of means; with ten times as many batches it allocates no more.
TEST(SteadyState, MetricsOfAnEvaluation) {
  const Runtime r = runtime(1);
  const Session train = *open_training(r, "mlp", "sgd").net("train"), test = *train.net("test");
  std::vector<std::map<std::string, int64_t>> counts;
  for (const int64_t batches : {4, 40}) {
    const LabelledSamples samples(test, batches * 4);
    TrainerOptions options;
    options.batch = 4;
    options.metrics = {"top2:logits,labels", "top5:logits,labels", "perplexity:loss"};
    auto trainer = Trainer::create(train, samples.data, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status().text();
    const Status tested = trainer->test_with(test, samples.data);
    ASSERT_TRUE(tested.ok()) << tested.text();
    ASSERT_TRUE(trainer->evaluate().ok());
    AllocationCount::start();
    const auto evaluation = trainer->evaluate();
    counts.push_back(AllocationCount::stop());
    ASSERT_TRUE(evaluation.ok()) << evaluation.status().text();
    ASSERT_EQ(evaluation->means.size(), 5u);
    EXPECT_EQ(evaluation->samples, batches * 4);
    EXPECT_EQ(evaluation->means[3].first, "top5");
    std::erase_if(counts.back(), [](const auto& by) { return is_onednn(by.first); });
  }
  EXPECT_EQ(counts[1], counts[0]);
}

const std::vector<std::string> two_devices = {"sim:0", "sim:1"};

TEST(SteadyState, TrainingStepsOnTwoDevices) {
  for (const char* recipe : {"lenet", "mlp"})
    for (const char* const optimizer : {"momentum", "adam"}) {
      const Runtime r = runtime_with_devices(2);
      Session train = *open_training(r, recipe, optimizer, two_devices).net("train");
      std::vector<Call> calls = {batch_for(train, 4)};
      const Effort effort = long_tests ? Effort{} : Effort{.warm_up = 30, .runs = 100, .at_least = 100};
      expect_only_onednn(train, calls, effort, std::string(recipe) + " by " + optimizer + " on two devices");
    }
}

int64_t entries_of(const char* folder) {
  const auto entries = std::filesystem::directory_iterator(folder);
  return std::distance(begin(entries), end(entries));
}

// Resources of the process.
struct Holdings {
  int64_t bytes = live_heap_bytes(), threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

// After every 100 steps the net is tested and its variables are saved, as programs do, and the resources of the process must be the same as
// before. As above, one of oneTBB's threads may start late and get its memory then: resources may change once where there are several.
void train_for_long(int threads, const std::vector<std::string>& devices = {}) {
  const int stretches = long_tests ? 100 : 10;
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "variables").string();
  const Runtime r = devices.empty() ? runtime(threads) : runtime_with_devices(threads);
  Session train = *open_training(r, "lenet", "adam", devices).net("train"), test = *train.net("test");
  Call step = batch_for(train, 4), evaluation = batch_for(test, 10);
  std::vector<Holdings> held;
  held.reserve(static_cast<size_t>(stretches) + 1);
  for (int stretch = 0; stretch <= stretches; ++stretch) {
    bool ok = true;
    for (int i = 0; i < 100; ++i) ok = step.run(train) && ok;
    ASSERT_TRUE(ok && evaluation.run(test)) << "in stretch " << stretch;
    const Status saved = train.save_variables(file);
    ASSERT_TRUE(saved.ok()) << saved.text();
    held.emplace_back();
  }
  EXPECT_TRUE(std::isfinite(*static_cast<const float*>(step.outputs[0].data))) << "the loss";
  int changes = 0;
  std::string all;
  for (size_t i = 0; i < held.size(); ++i) {
    if (i > 0 && held[i] == held[i - 1]) continue;
    if (i > 0) ++changes;
    all += "after " + std::to_string(100 * (i + 1)) + " steps " + std::to_string(held[i].bytes) + " bytes, " +
           std::to_string(held[i].threads) + " threads, " + std::to_string(held[i].descriptors) + " descriptors\n";
  }
  EXPECT_LE(changes, threads - 1) << all;
  std::printf("%zu steps on %d threads: %s", 100 * held.size(), threads, all.c_str());
}

TEST(SteadyState, ALongTrainingHoldsWhatItHeldAtItsBeginning) {
  train_for_long(1);
}

TEST(SteadyState, ALongTrainingOnTwoThreadsHoldsWhatItHeldAtItsBeginning) {
  train_for_long(2);
}

TEST(SteadyState, ALongTrainingOnTwoDevicesHoldsWhatItHeldAtItsBeginning) {
  train_for_long(2, two_devices);
}

// Two ranks that are connected as processes are, each with a session and a thread of this process. Sockets are descriptors.
TEST(SteadyState, ALongTrainingOfTwoRanksHoldsWhatItHeldAtItsBeginning) {
  using namespace testing_collectives;
  constexpr int size = 2, steps = 500;
  const int stretches = long_tests ? 20 : 4;
  const Crew crew{size, false, "gloo"};
  const Job job = sigmoid_job(DType::f32, 12, 4);
  std::barrier<> together(size);
  std::vector<Holdings> held;
  held.reserve(static_cast<size_t>(stretches));
  const auto train_rank = [&](int rank) {
    const Runtime r = testing_collectives::runtime_with_devices(1, crew.kind);
    auto nets = training_nets(r, crew, job);
    auto session = r.open(*nets, options_of(crew, "steady", rank));
    std::vector<std::vector<TensorView>> inputs;
    for (const Arrays& step : job.steps) {
      inputs.emplace_back();
      for (const Array& input : step) inputs.back().push_back(rows_of_rank(input, rank, size));
    }
    for (int stretch = -1; stretch < stretches; ++stretch) {
      for (int i = 0; i < steps; ++i) {
        const auto outputs = session->run(inputs[static_cast<size_t>(i) % inputs.size()]);
        ASSERT_TRUE(outputs.ok()) << outputs.status().text();
      }
      together.arrive_and_wait();
      if (rank == 0 && stretch >= 0) held.emplace_back();
      together.arrive_and_wait();
    }
  };
  std::thread other([&] { train_rank(1); });
  train_rank(0);
  other.join();
  // Gloo's queues grow to the longest that they ever were. A block that is lost in every tenth step would be as many bytes.
  for (const Holdings& now : held) {
    EXPECT_EQ(now.threads, held[0].threads);
    EXPECT_EQ(now.descriptors, held[0].descriptors);
    EXPECT_LE(now.bytes, held[0].bytes + 1024);
  }
  std::printf("%d steps of two ranks: %lld bytes, %lld threads, %lld descriptors\n", steps * (stretches + 1),
              static_cast<long long>(held[0].bytes), static_cast<long long>(held[0].threads), static_cast<long long>(held[0].descriptors));
}

TEST(SteadyState, TheCounterSeesBytesThatStay) {
  const Holdings before;
  void* volatile p = std::malloc(1000);
  EXPECT_GE(live_heap_bytes(), before.bytes + 1000);
  p = std::realloc(p, 5000);
  EXPECT_GE(live_heap_bytes(), before.bytes + 5000);
  std::free(p);
  EXPECT_EQ(live_heap_bytes(), before.bytes);
}

}  // namespace
}  // namespace heddle

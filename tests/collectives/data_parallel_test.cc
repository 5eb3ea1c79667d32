// Data-parallel training: the same parameters for any number of devices or ranks, and for all replicas the same bits.
#include <cmath>

#include "collectives/training_jobs.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE_OF(DataParallel, crews_with_nccl);

constexpr int64_t batch_rows = 48;  // the same number for 1, 2, 3, 4, 8 and 16 replicas

// The loss is the mean of -x w, and decays: gradients are divided by the number of replicas, and the rate is not.
TEST_P(DataParallel, DividesTheLossAndNotTheRate) {
  NetBuilder b("decaying");
  const ValueId x = b.input("x", batch_of(DType::f64, {2}));
  const ValueId w = b.variable("w", blob(Array::of(DType::f64, {2, 1}, std::vector<double>{0.5, -0.25})), true);
  b.add1("ReduceMean", "loss", {b.add1("Neg", "negative", {b.add1("MatMul", "y", {x, w})})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.settings = {{"weight_decay", 0.01}};
  job.how.learning_rate = *LearningRate::parse(0.1, "constant");
  std::vector<double> values;
  for (int64_t i = 0; i < batch_rows; ++i) values.insert(values.end(), {i % 2 == 0 ? 1.0 : 0.65, i % 2 == 0 ? 1.5 : 0.5});
  job.steps = {{Array::of(DType::f64, {batch_rows, 2}, values)}};
  const std::vector<Trained> trained = train(GetParam(), job);
  expect_alike(trained);
  const std::vector<double> found = trained[0].variables.at("w").as<double>();
  // The rate is an f32.
  EXPECT_NEAR(found[0], 0.582, 1e-8);     // 0.58225 if the rate were divided, 0.6645 if nothing were
  EXPECT_NEAR(found[1], -0.14975, 1e-8);  // -0.149875, -0.04975
}

TEST_P(DataParallel, LearnsTheSameOnAnyNumberOfDevices) {
  const Job wide = sigmoid_job(DType::f64, batch_rows), narrow = sigmoid_job(DType::f32, batch_rows);
  for (const Job* const job : {&wide, &narrow}) {
    Job clipped = *job;
    clipped.how.clip_value = 5;
    expect_same_as_alone(GetParam(), clipped, job == &wide ? 1e-12 : 1e-6);
  }
}

TEST_P(DataParallel, LearnsTheSameWithEveryOptimizer) {
  for (const char* const optimizer : {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw"}) {
    SCOPED_TRACE(optimizer);
    Job job = sigmoid_job(DType::f64, batch_rows, 4);
    job.how.optimizer = optimizer;
    job.how.clip_norm = 0.05;
    job.how.average = 0.9;
    job.how.learning_rate = *LearningRate::parse(0.1, "step(2, 0.5)", 2);
    expect_same_as_alone(GetParam(), job, 1e-11);
  }
}

// The outputs are those of the whole batch: rows in their order, and the mean of the losses, which falls.
TEST_P(DataParallel, GivesTheOutputsOfTheWholeBatch) {
  const Crew crew = GetParam();
  Job job = sigmoid_job(DType::f64, batch_rows);
  for (Arrays& step : job.steps) step = job.steps[0];
  const std::vector<Trained> found = train(crew, job), alone = train({1, crew.devices}, job);
  expect_alike(found);
  for (size_t step = 0; step < job.steps.size(); ++step) {
    const Arrays& expected = alone[0].outputs[step];
    double loss = 0;
    for (size_t rank = 0; rank < found.size(); ++rank) {
      const Array& y = found[rank].outputs[step][0];
      const std::vector<double> all = expected[0].as<double>();
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * all.size() / found.size());
      expect_near(y, Array::of(DType::f64, y.shape, std::vector<double>(first, first + y.shape[0])), 1e-12, "y");
      loss += found[rank].outputs[step][1].as<double>()[0] / static_cast<double>(found.size());
    }
    EXPECT_NEAR(loss, expected[1].as<double>()[0], 1e-12);
    if (step == 0) continue;
    EXPECT_LT(expected[1].as<double>()[0], alone[0].outputs[step - 1][1].as<double>()[0]);
  }
}

// A batch that does not divide: the mean weighs each device, or rank, by its rows.
TEST_P(DataParallel, WeighsUnevenParts) {
  expect_same_as_alone(GetParam(), sigmoid_job(DType::f64, 64 + 5), 1e-12);
}

TEST_P(DataParallel, GathersRowsOfTables) {
  for (const char* const optimizer : {"sgd", "adagrad", "adam"}) {
    SCOPED_TRACE(optimizer);
    Job job = lookup_job(batch_rows);
    job.how.optimizer = optimizer;
    expect_same_as_alone(GetParam(), job, 1e-11);
  }
}

// Each row of the batch has the same random numbers on any number of devices, whose parts begin at any element; what is not by rows has the
// same numbers on all.
TEST_P(DataParallel, DrawsTheNumbersOfTheWholeBatch) {
  for (const int64_t columns : {8, 5}) {
    NetBuilder b("dropout");
    const ValueId x = b.input("x", batch_of(DType::f64, {columns})), label = b.input("label", batch_of(DType::f64, {1}));
    const ValueId w = b.variable("w", blob(doubles({columns, 1}, 7)), true);
    const ValueId half = b.constant_float("half", 0.5F), yes = b.constant("yes", Blob::copy_of(DType::boolean, Shape{}, "\1"));
    const ValueId noise = b.add1("RandomNormal", "noise", {}, {{"shape", std::vector<int64_t>{columns}}, {"dtype", int64_t{11}}});
    const ValueId more = b.add1("Add", "more", {x, b.add1("RandomUniformLike", "by_row", {x}, {{"dtype", int64_t{11}}})});
    const ValueId kept = b.add1("Dropout", "kept", {b.add1("Add", "noisy", {more, noise}), half, yes});
    const ValueId d = b.add1("Sub", "d", {b.add1("MatMul", "y", {kept, w}), label});
    b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
    b.output(kept);
    Job job{b.finish(), {}, {}};
    job.how.losses = {"loss"};
    job.how.learning_rate = *LearningRate::parse(0.1, "constant");
    for (int step = 0; step < 3; ++step) job.steps.push_back({doubles({batch_rows, columns}, step), doubles({batch_rows, 1}, 50 + step)});
    expect_same_as_alone(GetParam(), job, 1e-12);
  }
}

// Variables of which there is one, on the host, beside replicas on devices, and such variables alone.
TEST_P(DataParallel, KeepsSingleVariablesOnTheHost) {
  for (const std::vector<std::string>& single :
       {std::vector<std::string>{"table", "other"}, std::vector<std::string>{"table", "other", "w"}}) {
    Job job = lookup_job(batch_rows);
    job.how.parallel.single = single;
    expect_same_as_alone(GetParam(), job, 1e-11);
  }
}

// A gradient that an operator on the host makes is summed like all others.
TEST_P(DataParallel, SumsGradientsThatAreMadeOnTheHost) {
  NetBuilder b("beside");
  const ValueId x = b.input("x", batch_of(DType::f64, {4})), w = b.variable("w", blob(doubles({4, 4}, 3)), true);
  b.output(b.add1("MatMul", "on_device", {x, w}));
  const ValueId d = b.add1("Sub", "d", {b.add1("MatMul", "on_host", {x, w}), x});
  b.net()[b.net()[*b.net().find_value("on_host")].producer].device = "cpu";
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.1, "constant");
  for (int step = 0; step < 3; ++step) job.steps.push_back({doubles({batch_rows, 4}, step)});
  expect_same_as_alone(GetParam(), job, 1e-12);
}

// The collectives of such ranks are alike: they would learn other variables without a word.
TEST(DataParallelRanks, OfUnlikeNetsAreRefusedBeforeTheFirstStep) {
  for (const Crew& crew : kinds_of_ranks()) {
    Job jobs[] = {sigmoid_job(DType::f32, batch_rows), sigmoid_job(DType::f32, batch_rows)};
    jobs[1].how.learning_rate = *LearningRate::parse(0.2, "constant");
    Trained ranks[2];
    std::thread other([&] { ranks[1] = train_rank({2, false, crew.kind}, jobs[1], 1, "unlike"); });
    ranks[0] = train_rank({2, false, crew.kind}, jobs[0], 0, "unlike");
    other.join();
    int named = 0;
    for (int rank = 0; rank < 2; ++rank) {
      const std::string text = ranks[rank].status.text();
      EXPECT_FALSE(ranks[rank].status.ok()) << crew.kind;
      named += text.find("runs another net than this one, which is rank " + std::to_string(rank) + ": it has \"") != std::string::npos;
      for (const char* const rate : {"0.1", "0.2"})
        EXPECT_TRUE(text.find("another net") == std::string::npos || text.find(rate) != std::string::npos) << text;
    }
    EXPECT_GE(named, 1) << ranks[0].status.text() << '\n' << ranks[1].status.text();
  }
}

}  // namespace
}  // namespace heddle

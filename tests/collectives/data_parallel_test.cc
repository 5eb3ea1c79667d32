// Data-parallel training: the same parameters for any number of devices or ranks, and for all replicas the same bits.
#include <cmath>

#include "collectives/trained_replicas.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE(DataParallel);

constexpr int64_t batch_rows = 48;  // the same number for 1, 2, 3, 4, 8 and 16 replicas

std::vector<double> waves(int64_t count, double seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(seed + 0.7 * static_cast<double>(i)));
  return values;
}
Array doubles(const Shape& shape, double seed) {
  return Array::of(DType::f64, shape, waves(shape.element_count(), seed));
}
// A type with the rows of a batch.
DeclaredType batch_of(DType dtype, std::vector<int64_t> others) {
  DeclaredType type{dtype, true, {Dim::named("N")}};
  for (const int64_t extent : others) type.dims.push_back(Dim::of(extent));
  return type;
}
std::shared_ptr<const Blob> blob(const Array& array) {
  return Blob::copy_of(array.dtype, array.shape, array.bytes.data());
}

void expect_near(const Array& found, const Array& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.shape, expected.shape) << what;
  const auto near = [&](const auto& a, const auto& b) {
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(static_cast<double>(a[i]), static_cast<double>(b[i]), tolerance) << what << ' ' << i;
  };
  if (found.dtype == DType::f64)
    near(found.as<double>(), expected.as<double>());
  else if (found.dtype == DType::f32)
    near(found.as<float>(), expected.as<float>());
  else
    EXPECT_EQ(found, expected) << what;
}

// Trains on the crew, and compares what was learned with one device.
void expect_same_as_alone(const Crew& crew, const Job& job, double tolerance) {
  const std::vector<Trained> found = train(crew, job), alone = train({1, crew.devices}, job);
  expect_alike(found);
  ASSERT_TRUE(alone[0].status.ok()) << alone[0].status.text();
  ASSERT_EQ(found[0].variables.size(), alone[0].variables.size());
  for (const auto& [name, value] : alone[0].variables) expect_near(found[0].variables.at(name), value, tolerance, name);
}

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

// 16 features, one output, squared distance of its sigmoid from a label.
Net sigmoid_net(DType dtype) {
  NetBuilder b("sigmoid");
  const auto zeros = [&](const Shape& shape) {
    std::byte* data = nullptr;
    return std::shared_ptr<const Blob>(Blob::allocate(dtype, shape, &data));
  };
  const ValueId x = b.input("x", batch_of(dtype, {16})), label = b.input("label", batch_of(dtype, {1}));
  const ValueId w = b.variable("w", zeros({16, 1}), true), bias = b.variable("b", zeros({1}), true);
  const ValueId y = b.add1("Sigmoid", "y", {b.add1("Add", "biased", {b.add1("MatMul", "product", {x, w}), bias})});
  const ValueId d = b.add1("Sub", "d", {y, label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  b.output(y);
  return b.finish();
}

Array in_dtype(DType dtype, const Array& array) {
  if (dtype == DType::f64) return array;
  const std::vector<double> values = array.as<double>();
  return Array::of(dtype, array.shape, std::vector<float>(values.begin(), values.end()));
}

Job sigmoid_job(DType dtype, int64_t batch, int steps = 10) {
  Job job{sigmoid_net(dtype), {}, {}};
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.1, "constant");
  for (int step = 0; step < steps; ++step)
    job.steps.push_back({in_dtype(dtype, doubles({batch, 16}, step)), in_dtype(dtype, doubles({batch, 1}, 100 + step))});
  return job;
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

// A batch that does not divide: the mean weighs each device by its rows.
TEST_P(DataParallel, WeighsUnevenParts) {
  const Crew crew = GetParam();
  if (!crew.devices) GTEST_SKIP() << "ranks have batches of their own";
  expect_same_as_alone(crew, sigmoid_job(DType::f64, 64 + 5), 1e-12);
}

// A table of which each step looks up some rows, by indices that two tables share.
Job lookup_job() {
  NetBuilder b("lookup");
  const ValueId indices = b.input("indices", batch_of(DType::i64, {4})), label = b.input("label", batch_of(DType::f64, {1}));
  const ValueId table = b.variable("table", blob(doubles({1000, 8}, 3)), true),
                other = b.variable("other", blob(doubles({1000, 8}, 5)), true);
  const ValueId w = b.variable("w", blob(doubles({8, 1}, 7)), true);
  const ValueId both =
      b.add1("Add", "both", {b.add1("Gather", "looked_up", {table, indices}), b.add1("Gather", "beside", {other, indices})});
  const ValueId axes = b.constant_ints("axes", {1});
  const ValueId y = b.add1("MatMul", "y", {b.add1("ReduceSum", "sum", {both, axes}, {{"keepdims", int64_t{0}}}), w});
  const ValueId d = b.add1("Sub", "d", {y, label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.01, "constant");
  for (int step = 0; step < 5; ++step) {
    std::vector<int64_t> drawn;
    for (int64_t i = 0; i < batch_rows * 4; ++i) drawn.push_back((i * 7919 + step * 104729) % 97);  // some rows are drawn twice
    job.steps.push_back({Array::of(DType::i64, {batch_rows, 4}, drawn), doubles({batch_rows, 1}, step)});
  }
  return job;
}

TEST_P(DataParallel, GathersRowsOfTables) {
  for (const char* const optimizer : {"sgd", "adagrad", "adam"}) {
    SCOPED_TRACE(optimizer);
    Job job = lookup_job();
    job.how.optimizer = optimizer;
    expect_same_as_alone(GetParam(), job, 1e-11);
  }
}

// Variables of which there is one, on the host, beside replicas on devices, and such variables alone.
TEST_P(DataParallel, KeepsSingleVariablesOnTheHost) {
  for (const std::vector<std::string>& single :
       {std::vector<std::string>{"table", "other"}, std::vector<std::string>{"table", "other", "w"}}) {
    Job job = lookup_job();
    job.how.parallel.single = single;
    expect_same_as_alone(GetParam(), job, 1e-11);
  }
}

}  // namespace
}  // namespace heddle

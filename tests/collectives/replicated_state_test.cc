// The state of replicas: running statistics, what files have, nets that only test, and what is refused.
#include <algorithm>
#include <cmath>

#include "collectives/training_jobs.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE(ReplicatedState);

constexpr int64_t samples = 96;  // an even number for each of 1, 2, 3, 4, 8 and 16 replicas

TEST_P(ReplicatedState, RunningStatisticsAreTheSameOnAll) {
  const Job job = normalised_job(samples);
  for (size_t steps = 1; steps <= 3; ++steps) {
    Job first = job;
    first.steps.resize(steps);
    const std::vector<Trained> trained = train(GetParam(), first);
    expect_alike(trained);
    const double means[] = {0.2, 0.58, 1.122}, variances[] = {0.1, 0.39, 0.851};
    EXPECT_NEAR(trained[0].variables.at("mean").as<float>()[0], means[steps - 1], 1e-6);
    EXPECT_NEAR(trained[0].variables.at("variance").as<float>()[0], variances[steps - 1], 1e-6);
  }
}

// Replicas whose samples differ have the statistics of the first one's.
TEST_P(ReplicatedState, RunningStatisticsAreThoseOfTheFirst) {
  const Crew crew = GetParam();
  Job job = normalised_job(samples);
  job.steps.resize(1);
  std::vector<float> x;
  for (int64_t i = 0; i < samples; ++i) x.push_back(static_cast<float>(i));
  job.steps[0][0] = Array::of(DType::f32, {samples, 1}, x);
  const std::vector<Trained> trained = train(crew, job);
  expect_alike(trained);
  const double of_first = static_cast<double>(samples / crew.size - 1) / 2;
  EXPECT_NEAR(trained[0].variables.at("mean").as<float>()[0], 0.1 * of_first, 1e-5);
}

// The net of normalised_net() on one device, which normalises each of so many parts of its batch by itself.
Net normalised_by_parts(int64_t parts) {
  NetBuilder b("normalised");
  const ValueId x = b.input("x", batch_of(DType::f32, {1})), label = b.input("label", batch_of(DType::f32, {1}));
  const ValueId scale = b.variable("scale", floats({1}, 1), true), bias = b.variable("bias", floats({1}, 0), true);
  const ValueId mean = b.variable("mean", floats({1}, 0)), variance = b.variable("variance", floats({1}, 0));
  const std::vector<ValueId> shards =
      b.add("Split", "shards", {x}, static_cast<size_t>(parts), {{"axis", int64_t{0}}, {"num_outputs", parts}});
  std::vector<ValueId> all;
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto y = b.add("BatchNormalization", "bn" + std::to_string(i), {shards[i], scale, bias, mean, variance}, 3,
                         {{"training_mode", int64_t{1}}, {"momentum", 0.9}});
    all.push_back(y[0]);
    if (i > 0) continue;
    b.updates(b.add1("Assign", "new_mean", {mean, y[1]}, {}, "heddle"), mean);
    b.updates(b.add1("Assign", "new_variance", {variance, y[2]}, {}, "heddle"), variance);
  }
  const ValueId d = b.add1("Sub", "d", {b.add1("Concat", "y", all, {{"axis", int64_t{0}}}), label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  return b.finish();
}

// Without that, a net with normalisation learns what one device does that normalises each shard by itself.
TEST_P(ReplicatedState, ShardsAreNormalisedByThemselves) {
  const Crew crew = GetParam();
  Job job = normalised_job(samples, 10);
  job.how.optimizer = "sgd";
  for (size_t t = 0; t < job.steps.size(); ++t) {
    std::vector<float> x;
    for (int64_t i = 0; i < samples; ++i) x.push_back(static_cast<float>(std::sin(static_cast<double>(i * i) + static_cast<double>(t))));
    job.steps[t][0] = Array::of(DType::f32, {samples, 1}, x);
  }
  Job reference = job;
  reference.net = normalised_by_parts(crew.size);
  reference.how.symbols = {{"N", samples}};
  const std::vector<Trained> found = train(crew, job), alone = train({1, false}, reference);
  expect_alike(found);
  ASSERT_TRUE(alone[0].status.ok()) << alone[0].status.text();
  for (const char* const name : {"scale", "bias", "mean", "variance"})
    expect_near(found[0].variables.at(name), alone[0].variables.at(name), 1e-6, name);
}

// With the statistics of the whole batch nets with normalisation learn the same on any number of devices.
TEST_P(ReplicatedState, CombinedStatisticsAreThoseOfTheWholeBatch) {
  const Crew crew = GetParam();
  Job job = normalised_job(samples);
  job.how.parallel.combine_statistics = true;
  for (Arrays& step : job.steps) {
    std::vector<float> x;
    for (int64_t i = 0; i < samples; ++i) x.push_back(static_cast<float>(std::sin(static_cast<double>(i))) * 3 + 1);
    step[0] = Array::of(DType::f32, {samples, 1}, x);
  }
  const std::vector<Trained> found = train(crew, job), alone = train({1, crew.devices}, job);
  expect_alike(found);
  ASSERT_TRUE(alone[0].status.ok()) << alone[0].status.text();
  for (const auto& [name, value] : alone[0].variables) {
    const std::vector<float> a = value.as<float>(), b = found[0].variables.at(name).as<float>();
    for (size_t i = 0; i < a.size() && value.dtype == DType::f32; ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << name;
  }
}

// Devices 1, 2 and 3: files have the names of the first replica, its optimizer's state, statistics and the number of steps.
TEST(ReplicatedFiles, HaveTheFirstReplicaAlone) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "variables.safetensors").string();
  const Runtime runtime = runtime_with_devices(2);
  Job job = normalised_job(samples);
  job.how.parallel.devices = {sim(1), sim(2), sim(3)};
  std::vector<Net> all;
  all.push_back(job.net);
  auto nets = Nets::of(std::move(all));
  ASSERT_TRUE(nets.ok());
  const Status added = nets->add_training(runtime, "normalised", job.how, "normalised");
  ASSERT_TRUE(added.ok()) << added.text();
  SessionOptions options;
  options.copies = Copies::automatic;
  options.communicators.emplace_back().devices = job.how.parallel.devices;
  const auto open = [&] {
    auto session = runtime.open(*nets, options);
    EXPECT_TRUE(session.ok()) << session.status().text();
    return std::move(*session);
  };
  const auto step = [&](Session& session, size_t i) {
    const auto ran =
        session.run({{DType::f32, {samples, 1}, job.steps[i][0].bytes.data()}, {DType::f32, {samples, 1}, job.steps[i][1].bytes.data()}});
    ASSERT_TRUE(ran.ok()) << ran.status().text();
  };
  Session session = open();
  step(session, 0);
  ASSERT_TRUE(session.save_variables(file).ok());
  std::vector<std::string> names = session.variables();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"bias", "bias.velocity", "mean", "scale", "scale.velocity", "step", "variance"}));
  step(session, 1);
  // Another session goes on from the file, on all devices.
  Session other = open();
  ASSERT_TRUE(other.load_variables(file).ok());
  step(other, 1);
  for (const std::string& name : names) {
    const auto one = session.read_variable(name), two = other.read_variable(name);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(copy_of(*one), copy_of(*two)) << name;
  }
}

// Nets that test: the same variables, on all devices, and no update.
TEST(ReplicatedFiles, OfNetsThatTestStayAsTheyAre) {
  const Runtime runtime = runtime_with_devices(2);
  NetBuilder b("test");
  const ValueId x = b.input("x", batch_of(DType::f32, {2})), w = b.variable("w", DType::f32, Shape{2, 1}, "normal(0, 1)", true);
  b.output(b.add1("MatMul", "y", {x, w}));
  const ValueId mean = b.add1("ReduceMean", "mean", {b.net().outputs[0]}, {{"keepdims", int64_t{0}}});
  b.output(mean);
  std::vector<Net> all;
  all.push_back(b.finish());
  auto nets = Nets::of(std::move(all));
  DataParallelOptions parallel;
  parallel.devices = {sim(0), sim(1), sim(2)};
  const Status added = nets->add_replicas(runtime, "test", parallel, "test_on_all");
  ASSERT_TRUE(added.ok()) << added.text();
  SessionOptions options;
  options.copies = Copies::automatic;
  options.communicators.emplace_back().devices = parallel.devices;
  auto session = runtime.open(*nets, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto before = session->read_variable("w");
  const std::vector<TensorView> inputs = {{DType::f32, Shape{4, 2}, values.data()}};
  auto on_all = session->net("test_on_all");
  ASSERT_TRUE(on_all.ok());
  const auto alone = session->run(inputs), together = on_all->run(inputs);
  ASSERT_TRUE(alone.ok() && together.ok()) << together.status().text();
  for (size_t i = 0; i < 2; ++i)
    for (size_t k = 0; k < copy_of((*alone)[i]).as<float>().size(); ++k)
      EXPECT_NEAR(copy_of((*alone)[i]).as<float>()[k], copy_of((*together)[i]).as<float>()[k], 1e-6) << i << ' ' << k;
  EXPECT_EQ(copy_of(*session->read_variable("w")), copy_of(*before));
  ASSERT_TRUE(session->write_variable("w", {DType::f32, Shape{2, 1}, values.data()}).ok());
  EXPECT_EQ(session->initialize(3).code(), Code::hazard);
}

std::string refusal(const std::function<void(Net&, DataParallelOptions&)>& change) {
  Job job = normalised_job(samples);
  job.how.parallel.devices = {sim(0), sim(1)};
  change(job.net, job.how.parallel);
  std::vector<Net> all;
  all.push_back(std::move(job.net));
  auto nets = Nets::of(std::move(all));
  if (!nets.ok()) return nets.status().text();
  return nets->add_training(runtime_with_devices(), "normalised", job.how, "normalised").text();
}

void expect_refusal(const std::string& text, const std::function<void(Net&, DataParallelOptions&)>& change) {
  const std::string refused = refusal(change);
  EXPECT_NE(refused.find(text), std::string::npos) << text << "\n" << refused;
}

using Options = DataParallelOptions;

TEST(Replication, NamesWhatIsWrong) {
  expect_refusal("device \"sim:0\" is to have two replicas", [](Net&, Options& o) { o.devices = {sim(0), sim(0)}; });
  expect_refusal("device \"sim:0\" is to have two replicas", [](Net&, Options& o) { o.devices = {"sim", sim(0)}; });
  expect_refusal("a device of a replica has no name", [](Net&, Options& o) { o.devices = {sim(0), ""}; });
  expect_refusal("a replica is on \"sim:1|cpu\"", [](Net&, Options& o) { o.devices = {sim(0), "sim:1|cpu"}; });
  expect_refusal("replicas are on \"sim:0\" and \"cpu:0\"", [](Net&, Options& o) { o.devices = {sim(0), "cpu:0"}; });
  expect_refusal("several replicas are on the host", [](Net&, Options& o) { o.devices = {"cpu:0", "cpu:1"}; });
  expect_refusal("there are 0 ranks", [](Net&, Options& o) { o.ranks = 0; });
  expect_refusal("the net has no variable \"scales\"", [](Net&, Options& o) { o.single = {"scales"}; });
  expect_refusal("variable \"scale\" is named twice", [](Net&, Options& o) { o.single = {"scale", "scale"}; });
  expect_refusal("the net has no input \"y\"", [](Net&, Options& o) { o.whole = {"y"}; });
  expect_refusal("operator \"bn\" is on \"sim:3\", and the replicas are on sim:0, sim:1",
                 [](Net& net, Options&) { net.nodes[0].device = sim(3); });
  expect_refusal("variable \"mean\" is updated by operator \"new_mean\", and there is one for all replicas",
                 [](Net&, Options& o) { o.single = {"mean"}; });
  expect_refusal("variable \"scale\" is a replica already", [](Net& net, Options&) {
    net.variables[0].replica_of = "bias";
    net.variables[0].initial = {};
  });
  expect_refusal("is computed from rows of the batch, and has neither rows itself nor a mean", [](Net& net, Options&) {
    NetBuilder b("");
    b.net() = std::move(net);
    b.output(b.add1("ArgMax", "best", {*b.net().find_value("d")}, {{"axis", int64_t{0}}}));
    net = b.finish();
  });
}

// A product of rows with rows has parts that do not make up the whole; and normalisation of a vector has no channels.
TEST(Replication, RefusesWhatHasNoWhole) {
  NetBuilder b("normalised");
  const ValueId x = b.input("x", batch_of(DType::f32, {4})), w = b.variable("w", floats({4, 4}, 1), true);
  const ValueId h = b.add1("MatMul", "h", {x, w});
  b.output(b.add1("MatMul", "products", {h, b.add1("Transpose", "turned", {h})}));
  b.add1("ReduceMean", "loss", {h}, {{"keepdims", int64_t{0}}});
  const Net net = b.finish();
  expect_refusal("output \"products\" has rows of the batch along several axes", [&](Net& to, Options&) { to = net; });
  NetBuilder v("normalised");
  const ValueId one = v.input("x", batch_of(DType::f32, {})), scale = v.variable("scale", floats({1}, 1), true);
  const auto y =
      v.add("BatchNormalization", "bn", {one, scale, scale, v.variable("mean", floats({1}, 0)), v.variable("variance", floats({1}, 0))}, 3,
            {{"training_mode", int64_t{1}}});
  v.add1("ReduceMean", "loss", {y[0]}, {{"keepdims", int64_t{0}}});
  const Net vector = v.finish();
  expect_refusal("operator \"bn\" normalises a value of rank 1, which has no channels", [&](Net& to, Options& o) {
    to = vector;
    o.combine_statistics = true;
  });
}

// A batch with fewer rows than devices.
TEST(Replication, NeedsARowForEach) {
  const Crew crew{4, true};
  Job job = normalised_job(samples);
  job.steps = {{Array::of(DType::f32, {3, 1}, std::vector<float>(3)), Array::of(DType::f32, {3, 1}, std::vector<float>(3))}};
  const std::vector<Trained> trained = train(crew, job);
  EXPECT_NE(trained[0].status.text().find("3 rows are not enough for 4 parts"), std::string::npos) << trained[0].status.text();
}

// Values that the net itself broadcasts are the first replica's on all, and a barrier may be used twice.
TEST_P(ReplicatedState, NetsMayBroadcastAndWait) {
  const Crew crew = GetParam();
  NetBuilder b("synchronised");
  const ValueId x = b.input("x", batch_of(DType::f32, {1})), w = b.variable("w", floats({1, 1}, 1), true);
  const ValueId first = b.add1("ReduceMin", "first", {x}, {{"keepdims", int64_t{0}}});
  const ValueId shared = b.add1("Broadcast", "shared", {first}, {{"communicator", world}, {"root", int64_t{0}}}, "heddle");
  ValueId y = b.add1("MatMul", "y", {x, w});
  for (const char* const barrier : {"wait", "wait_again"}) y = b.add1("Barrier", barrier, {y}, {{"communicator", world}}, "heddle");
  b.add1("ReduceMean", "loss", {b.add1("Mul", "scaled", {y, shared})}, {{"keepdims", int64_t{0}}});
  b.output(shared);
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  for (int i = 0; i < 2; ++i) {
    std::vector<float> values;
    for (int64_t k = 0; k < samples; ++k) values.push_back(static_cast<float>(2 * i + k));  // the first replica's least number is 2 i
    job.steps.push_back({Array::of(DType::f32, {samples, 1}, values)});
  }
  const std::vector<Trained> trained = train(crew, job);
  expect_alike(trained);
  for (const Trained& rank : trained)
    for (int i = 0; i < 2; ++i) EXPECT_EQ(rank.outputs[static_cast<size_t>(i)][0].as<float>()[0], static_cast<float>(2 * i));
}

}  // namespace
}  // namespace heddle

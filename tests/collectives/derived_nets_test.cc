// Nets of replicas: their collectives and the names of these, which values are gathered and copied, communicators.
#include <algorithm>
#include <set>

#include "collectives/training_jobs.h"
#include "device/simulated.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_collectives;

Net net_of(const Crew& crew, const Job& job) {
  const auto nets = training_nets(runtime_with_devices(2, crew.kind), crew, job);
  EXPECT_TRUE(nets.ok()) << nets.status().text();
  return nets.ok() ? Internals::of(*nets).nets[0] : Net();
}

std::vector<std::string> named(const Net& net, const std::string& type) {
  std::vector<std::string> names;
  for (const Node& node : net.nodes)
    if (node.type == type) names.push_back(node.name);
  return names;
}

// `layers` layers, each of whose two gradients has a collective of its own.
Job layers_job(int layers) {
  NetBuilder b("layers");
  ValueId x = b.input("x", batch_of(DType::f32, {4}));
  for (int layer = 0; layer < layers; ++layer) {
    const std::string n = std::to_string(layer);
    const ValueId w = b.variable("w" + n, floats({4, 4}, 0.1F), true), bias = b.variable("b" + n, floats({4}, 0.1F), true);
    x = b.add1("Tanh", "tanh" + n, {b.add1("Add", "add" + n, {b.add1("MatMul", "product" + n, {x, w}), bias})});
  }
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {x, x})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.parallel.bucket_bytes = 1;
  job.steps = {{in_dtype(DType::f32, doubles({8, 4}, 1))}};
  return job;
}

TEST(ReplicatedNets, OfOneDeviceOrRankHaveNoCollectives) {
  for (const bool devices : {true, false})
    for (const char* const type : {"AllReduce", "Broadcast", "AllGather", "Barrier"})
      EXPECT_EQ(named(net_of({1, devices}, normalised_job(8)), type), std::vector<std::string>()) << devices;
}

// A collective is named by the gradient that it sums; the gradients of the last layer come first.
TEST(ReplicatedNets, NameCollectivesByTheirGradients) {
  const std::vector<std::string> names = named(net_of({2, true}, layers_job(2)), "AllReduce");
  std::vector<std::string> of_first;
  for (const std::string& name : names)
    if (name.find('@') == std::string::npos) of_first.push_back(name);
  ASSERT_EQ(of_first.size(), 4u);
  for (const char layer : {'1', '0'})
    for (int i = 0; i < 2; ++i) {
      const std::string& name = of_first[static_cast<size_t>(layer == '1' ? i : 2 + i)];
      EXPECT_EQ(name[1], layer) << name;
      EXPECT_EQ(name.substr(2), ".gradient.AllReduce");
    }
}

// On the host a thread takes ready steps in the order of the plan: a collective comes as soon as its gradients are there, so that it goes
// on beside the rest of the backward pass.
TEST(ReplicatedNets, OfRanksSumGradientsBesideTheBackwardPass) {
  const Crew crew{2, false};
  const Job job = layers_job(4);
  const Runtime runtime = runtime_with_devices();
  auto nets = training_nets(runtime, crew, job);
  ASSERT_TRUE(nets.ok()) << nets.status().text();
  auto session = runtime.open(*nets, options_of(crew, "plan"));
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto plan = session->plan({rows_of_rank(job.steps[0][0], 0, 2)});
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  std::vector<size_t> sums, products;
  for (size_t i = 0; i < (*plan)->steps.size(); ++i) {
    const PlanInfo::Step& step = (*plan)->steps[i];
    if (step.type == "AllReduce" && step.name.find(".gradient.") != std::string::npos) sums.push_back(i);
    if (step.name.rfind("product", 0) == 0 && step.name.find("gradient") != std::string::npos) products.push_back(i);
  }
  ASSERT_EQ(sums.size(), 8u);
  ASSERT_GE(products.size(), 4u);
  EXPECT_LT(sums[1], products.back()) << "gradients of the last layer are summed before those of the first are made";
}

// Indices that two tables share are gathered once on each device.
TEST(ReplicatedNets, GatherSharedIndicesOnce) {
  const Net net = net_of({3, true}, lookup_job(12));
  std::multiset<std::string> gathered;
  for (const std::string& name : named(net, "Concat"))
    if (name.find(".all") != std::string::npos) gathered.insert(name.substr(0, name.find(".all")));
  std::vector<std::string> indices;
  for (const std::string& name : gathered)
    if (name.find(".indices") != std::string::npos) indices.push_back(name);
  EXPECT_EQ(indices.size(), 3u);
}

// The table has 10,000 rows and the batch 64 times 16 indices, as in Caffe2's test.
TEST(ReplicatedNets, LearnLargeTables) {
  NetBuilder b("large");
  const ValueId indices = b.input("indices", batch_of(DType::i64, {16})), label = b.input("label", batch_of(DType::f64, {1}));
  const ValueId table = b.variable("table", blob(doubles({10'000, 4}, 3)), true), w = b.variable("w", blob(doubles({4, 1}, 7)), true);
  const ValueId rows =
      b.add1("ReduceSum", "sum", {b.add1("Gather", "rows", {table, indices}), b.constant_ints("axes", {1})}, {{"keepdims", int64_t{0}}});
  const ValueId d = b.add1("Sub", "d", {b.add1("MatMul", "y", {rows, w}), label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.01, "constant");
  for (int step = 0; step < 3; ++step) {
    std::vector<int64_t> drawn;
    for (int64_t i = 0; i < 64 * 16; ++i) drawn.push_back((i * 7919 + step * 104'729) % 10'000 % (step == 2 ? 11 : 10'000));
    job.steps.push_back({Array::of(DType::i64, {64, 16}, drawn), doubles({64, 1}, step)});
  }
  for (const std::vector<std::string>& single : {std::vector<std::string>(), std::vector<std::string>{"table"}}) {
    job.how.parallel.single = single;
    for (const int size : {2, 3, 8}) expect_same_as_alone({size, true}, job, 1e-12);
  }
}

// A hundred gradients, each in a collective of its own: one communicator, with one object for all devices.
TEST(ReplicatedNets, ShareACommunicator) {
  const Job job = layers_job(50);
  const Crew crew{2, true};
  const Runtime runtime = runtime_with_devices(2);
  const auto nets = training_nets(runtime, crew, job);
  ASSERT_TRUE(nets.ok()) << nets.status().text();
  auto session = runtime.open(*nets, options_of(crew, ""));
  ASSERT_TRUE(session.ok()) << session.status().text();
  const Array& x = job.steps[0][0];
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(session->run({{x.dtype, x.shape, const_cast<char*>(x.bytes.data())}}).ok());
  const std::shared_ptr<const Plan> plan = last_plan(*session);
  const auto sums = std::count_if(plan->steps.begin(), plan->steps.end(), [](const PlanStep& step) { return step.type == "AllReduce"; });
  EXPECT_EQ(sums, 200);
  EXPECT_EQ(plan->communicators.size(), 1u);
  EXPECT_EQ(plan->communicator_needs.size(), 1u);
  // No gradient is copied by way of the host: in each direction what the net takes and gives.
  for (const ValueCopy& copy : plan->copies) {
    EXPECT_EQ(copy.value.find(".gradient"), std::string::npos) << copy.value << " from " << copy.from << " to " << copy.to;
    EXPECT_LE(copy.bytes, 64) << copy.value;
  }
}

// ---------------------------------------------------------------- recurrent nets

ValueId gate(NetBuilder& b, const char* type, const std::string& name, ValueId all, int64_t number) {
  constexpr int64_t hidden = 31;
  return b.add1(type, name,
                {b.add1("Slice", name + "_slice",
                        {all, b.constant_ints(name + "_begin", {number * hidden}), b.constant_ints(name + "_end", {(number + 1) * hidden}),
                         b.constant_ints(name + "_axis", {1})})});
}

// Eight steps of an LSTM with 31 states over 8 features, by the operator or by a Scan whose body reads the weights from outside.
Job lstm_job(bool scans) {
  constexpr int64_t steps = 8, width = 8, hidden = 31, batch = 64;
  NetBuilder b(scans ? "scan" : "lstm");
  const ValueId x = b.input("x", batch_of(DType::f64, {steps, width})), label = b.input("label", batch_of(DType::f64, {1}));
  const ValueId by_step = b.add1("Transpose", "by_step", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  ValueId last;
  Job job{{}, {}, {}};
  for (int step = 0; step < 2; ++step) job.steps.push_back({doubles({batch, steps, width}, step), doubles({batch, 1}, 9 + step)});
  if (scans) {
    const ValueId h = b.input("h", batch_of(DType::f64, {hidden})), c = b.input("c", batch_of(DType::f64, {hidden}));
    for (Arrays& step : job.steps) step.insert(step.end(), {doubles({batch, hidden}, 1), doubles({batch, hidden}, 2)});
    const ValueId w = b.variable("w", blob(doubles({width, 4 * hidden}, 3)), true),
                  r = b.variable("r", blob(doubles({hidden, 4 * hidden}, 4)), true);
    NetBuilder body("body");
    std::vector<ValueId> in;
    for (const char* const name : {"h", "c", "x", "w", "r"}) in.push_back(body.input(name, DeclaredType()));
    const ValueId all = body.add1("Add", "gates", {body.add1("MatMul", "xw", {in[2], in[3]}), body.add1("MatMul", "hr", {in[0], in[4]})});
    const ValueId kept = body.add1("Mul", "kept", {gate(body, "Sigmoid", "forget", all, 0), in[1]});
    const ValueId taken = body.add1("Mul", "taken", {gate(body, "Sigmoid", "take", all, 1), gate(body, "Tanh", "new", all, 2)});
    const ValueId next = body.add1("Add", "next_c", {kept, taken});
    body.output(body.add1("Mul", "next_h", {gate(body, "Sigmoid", "give", all, 3), body.add1("Tanh", "tanh", {next})}));
    body.output(next);
    last = b.add("Scan", "scan", {h, c, by_step, w, r}, 2,
                 {{"body", testing_nets::subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"captured", int64_t{2}}})[0];
  } else {
    const ValueId w = b.variable("w", blob(doubles({1, 4 * hidden, width}, 3)), true),
                  r = b.variable("r", blob(doubles({1, 4 * hidden, hidden}, 4)), true);
    const ValueId y = b.add("LSTM", "lstm", {by_step, w, r}, 2, {{"hidden_size", hidden}})[1];
    last = b.add1("Squeeze", "last", {y, b.constant_ints("first", {0})});
  }
  const ValueId d = b.add1("Sub", "d", {b.add1("MatMul", "y", {last, b.variable("v", blob(doubles({hidden, 1}, 5)), true)}), label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  job.net = b.finish();
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.01, "constant");
  return job;
}

TEST(ReplicatedNets, LearnThroughRecurrentOperatorsAndBodies) {
  for (const bool scans : {false, true})
    for (const int size : {2, 3}) {
      SCOPED_TRACE(scans);
      expect_same_as_alone({size, true}, lstm_job(scans), 1e-12);
      expect_same_as_alone({size, false}, lstm_job(scans), 1e-12);
    }
}

}  // namespace
}  // namespace heddle

// The hunt for what goes wrong with replicas: first what is planted, by changes of a training net, then many schedules of eight devices
// beside a storm of allocations.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>

#include "base/device_name.h"
#include "collectives/training_jobs.h"
#include "compile/plan_check/plan_check.h"
#include "device/simulated.h"
#include "plugin/injection.h"
#include "session_plan.h"

namespace heddle {
namespace {

using namespace testing_collectives;

// Trains a net for one step on two devices, after `plant` has changed it. Returns how it was found; empty: it was not.
std::string found(const Job& job, const std::function<void(Net&)>& plant) {
  const Runtime runtime = runtime_with_devices(2);
  auto made = training_nets(runtime, {2, true}, job);
  EXPECT_TRUE(made.ok()) << made.status().text();
  Net net = Internals::of(*made).nets[0];
  plant(net);
  auto session = runtime.open(Net(net), options_of({2, true}, ""));
  if (!session.ok()) return session.status().text();
  std::vector<TensorView> inputs;
  for (const Array& input : job.steps[0]) inputs.push_back({input.dtype, input.shape, const_cast<char*>(input.bytes.data())});
  const auto ran = session->run(inputs);
  if (!ran.ok()) return ran.status().text();
  Trained trained;
  EXPECT_TRUE(testing_collectives::detail::read_variables(*session, net, &trained).ok());
  for (const auto& [name, replicas] : trained.replicas)
    for (const Array& replica : replicas)
      if (!(replica == trained.variables.at(name))) return "replicas of " + name + " differ";
  const std::vector<Trained> alone = train({1, true}, job);
  for (const auto& [name, value] : alone[0].variables) {
    const std::vector<float> expected = value.as<float>(), got = trained.variables.at(name).as<float>();
    for (size_t i = 0; i < expected.size() && value.dtype == DType::f32; ++i)
      if (std::abs(expected[i] - got[i]) > 1e-6F) return name + " is not what one device learns";
  }
  return "";
}

NodeId node_named(const Net& net, const std::string& name) {
  for (uint32_t n = 0; n < net.nodes.size(); ++n)
    if (net.nodes[n].name == name) return NodeId(n);
  ADD_FAILURE() << "no operator " << name;
  return {};
}

Job two_buckets() {
  Job job = sigmoid_job(DType::f32, 12, 1);
  job.how.parallel.bucket_bytes = 1;
  return job;
}

TEST(PlantedInReplicas, NothingIsFoundWithoutIt) {
  EXPECT_EQ(found(two_buckets(), [](Net&) {}), "");
}

TEST(PlantedInReplicas, AGradientThatIsScaledTwice) {
  const auto plant = [](Net& net) {
    for (const char* const weight : {"weight@sim:0.Pointwise", "weight@sim:1.Pointwise"})
      net[node_named(net, weight)].attributes = {{"program", std::string("x0 / x1 / 2")}};
  };
  EXPECT_EQ(found(two_buckets(), plant), "b is not what one device learns");
}

TEST(PlantedInReplicas, AGradientThatIsNotSummed) {
  const auto plant = [](Net& net) {
    Node& update = net[node_named(net, "w@sim:1.update.SgdUpdate")];
    update.inputs[1] = net[net[update.inputs[1]].producer].inputs[0];
  };
  EXPECT_EQ(found(two_buckets(), plant), "replicas of w differ");
}

TEST(PlantedInReplicas, StatisticsThatAReplicaKeeps) {
  const auto plant = [](Net& net) {
    Node& assign = net[node_named(net, "new_mean@sim:1")];
    const Node& broadcast = net[net[assign.inputs[1]].producer];
    assign.inputs[1] = broadcast.inputs[net[assign.inputs[1]].output];
  };
  Job job = normalised_job(12, 1);
  std::vector<float> x;
  for (int i = 0; i < 12; ++i) x.push_back(static_cast<float>(i));
  job.steps[0][0] = Array::of(DType::f32, {12, 1}, x);
  EXPECT_EQ(found(job, plant), "replicas of mean differ");
}

TEST(PlantedInReplicas, AnotherOrderOnOneDevice) {
  const auto plant = [](Net& net) {
    std::vector<uint32_t> sums;
    for (uint32_t n = 0; n < net.nodes.size(); ++n)
      if (net.nodes[n].type == "AllReduce" && full_device_name(net.nodes[n].device, "") == sim(1)) sums.push_back(n);
    ASSERT_EQ(sums.size(), 2u);
    std::swap(net.nodes[sums[0]], net.nodes[sums[1]]);
    for (const uint32_t n : sums)
      for (const ValueId output : net.nodes[n].outputs) net[output].producer = NodeId(n);
  };
  EXPECT_NE(found(two_buckets(), plant).find("number 0 of communicator \"world\" on sim:1, and meets"), std::string::npos);
}

TEST(PlantedInReplicas, AMissingMember) {
  const auto plant = [](Net& net) {
    for (Node& node : net.nodes)
      if (node.name == "w@sim:1.gradient.AllReduce") {
        node.domain = "";
        node.type = "Identity";
        node.version = 0;
        node.schema = nullptr;
        node.attributes.clear();
        return;
      }
  };
  const std::string text = found(two_buckets(), plant);
  EXPECT_NE(text.find("and sim:1 has no such collective"), std::string::npos) << text;
}

// A rank with two sums.
struct SummingRank {
  explicit SummingRank(int rank) : runtime(runtime_with_devices()) {
    NetBuilder b("sums");
    const ValueId x = b.add1("Neg", "negative", {b.input("x", DType::f32, {2})});
    for (const char* const name : {"first", "second"}) b.output(b.add1("AllReduce", name, {x}, {{"communicator", world}}, "heddle"));
    auto opened = runtime.open(b.finish(), options_of({2, false}, "at once", rank));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session.emplace(std::move(*opened));
    prepare();
  }
  // Makes a context from the plan as it is now.
  void prepare() {
    context.reset();
    if (kept_plans(*session) > 0) drop_idle_contexts(*session);
    auto prepared = session->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context.emplace(std::move(*prepared));
    EXPECT_TRUE(context->bind_input(0, ones.data()).ok());
  }
  Plan& plan() { return const_cast<Plan&>(Internals::execution(*context).plan()); }

  const std::vector<float> ones = {1, 1};
  Runtime runtime;
  std::optional<Session> session;
  std::optional<Context> context;
};

// The order of the sums is dropped from the plan of a rank. It comes to both while the other rank has come to none.
TEST(PlantedInReplicas, ACommunicatorThatTwoStepsUseAtOnce) {
  SummingRank planted(0), other(1);
  StepGraph& graph = planted.plan().graph;
  ASSERT_EQ(graph.successors, (std::vector<uint32_t>{1, 2, 2}));  // both follow the negative, and the second one the first
  ASSERT_TRUE(compiling::check(planted.plan()).ok());
  graph.successors.pop_back();
  --graph.successor_begin.back();
  graph.successor_begin[2] = graph.successor_begin.back();
  --graph.predecessor_count[2];
  const Status wrong = compiling::check(planted.plan());
  EXPECT_NE(wrong.text().find("are collectives of one device in no order"), std::string::npos) << wrong.text();
  std::atomic<bool> over{false};
  Injection waits(other.plan().steps[0], [&](const heddle_run_context&, const std::function<heddle_status()>& original) {
    while (!over) std::this_thread::yield();
    return original();
  });
  planted.prepare();
  other.prepare();
  waits.arm();
  std::thread beside([&] { static_cast<void>(other.context->run()); });
  const Status found = planted.context->run();
  over = true;
  beside.join();
  EXPECT_NE(found.text().find("is in a collective of communicator \"world\" of \"local:at once\" already: two steps use it at once"),
            std::string::npos)
      << found.text();
}

// Layers with 60 variables, each of whose gradients is reduced alone.
Job deep_job() {
  NetBuilder b("deep");
  ValueId x = b.input("x", batch_of(DType::f32, {4}));
  for (int layer = 0; layer < 30; ++layer) {
    const std::string n = std::to_string(layer);
    const ValueId w = b.variable("w" + n, blob(in_dtype(DType::f32, doubles({4, 4}, layer))), true);
    const ValueId bias = b.variable("b" + n, blob(in_dtype(DType::f32, doubles({4}, layer))), true);
    x = b.add1("Tanh", "tanh" + n, {b.add1("Add", "add" + n, {b.add1("MatMul", "product" + n, {x, w}), bias})});
  }
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {x, x})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.parallel.bucket_bytes = 1;
  // The third batch is larger: all gradients grow within.
  for (const int64_t rows : {16, 16, 40, 16}) job.steps.push_back({in_dtype(DType::f32, doubles({rows, 4}, static_cast<double>(rows)))});
  return job;
}

// Opens sessions with contexts on all devices, and closes them, until it is told to end.
void storm(const Runtime& runtime, const std::atomic<bool>& over, std::atomic<int>& storms) {
  NetBuilder b("storm");
  const ValueId x = b.input("x", batch_of(DType::f32, {64}));
  for (int d = 0; d < 8; ++d) {
    const ValueId y = b.add1("Neg", "y" + std::to_string(d), {x});
    b.net()[b.net()[y].producer].device = sim(d);
    b.output(y);
  }
  const Net net = b.finish();
  SessionOptions options;
  options.copies = Copies::automatic;
  for (int64_t rows = 1; !over; rows = rows % 64 + 1) {
    auto session = runtime.open(Net(net), options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    const std::vector<float> numbers(static_cast<size_t>(rows * 64));
    const auto ran = session->run({{DType::f32, Shape{rows, 64}, const_cast<float*>(numbers.data())}});
    ASSERT_TRUE(ran.ok()) << ran.status().text();
    ++storms;
  }
}

TEST(ReplicasHunt, EightDevicesUnderManySchedules) {
  const Crew crew{8, true};
  const Job job = deep_job();
  const std::vector<Trained> expected = train(crew, job);
  expect_alike(expected);
  const int seeds = std::getenv("HEDDLE_LONG_TESTS") ? 500 : 6;
  std::atomic<int> storms{0};
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SimSetting delays("SEED", std::to_string(seed));
    const Runtime runtime = runtime_with_devices(2);
    auto nets = training_nets(runtime, crew, job);
    ASSERT_TRUE(nets.ok()) << nets.status().text();
    auto session = runtime.open(*nets, options_of(crew, ""));
    ASSERT_TRUE(session.ok()) << session.status().text();
    std::atomic<bool> over{false};
    std::thread beside([&] { storm(runtime, over, storms); });
    for (const Arrays& step : job.steps) {
      const auto ran = session->run({{step[0].dtype, step[0].shape, const_cast<char*>(step[0].bytes.data())}});
      EXPECT_TRUE(ran.ok()) << ran.status().text();
    }
    over = true;
    beside.join();
    Trained trained;
    ASSERT_TRUE(testing_collectives::detail::read_variables(*session, Internals::of(*nets).nets[0], &trained).ok());
    expect_alike({trained});
    EXPECT_EQ(trained.variables, expected[0].variables);
    EXPECT_EQ(testing_devices::counted(*last_plan(*session), &sim_counts::inner_allocations), 0u);
    EXPECT_GT(testing_devices::counted(*last_plan(*session), &sim_counts::allocations), 0u);
    // One communicator, whose collectives have one order on all devices.
    const std::shared_ptr<const Plan> plan = last_plan(*session);
    EXPECT_EQ(plan->communicators.size(), 1u);
    EXPECT_EQ(plan->communicator_needs.size(), 1u);
    std::map<std::string, std::vector<std::string>> orders;
    for (const PlanStep& step : plan->steps)
      if (step.type == "AllReduce")
        orders[plan->device_of(step)].push_back(step.name.substr(0, step.name.find('.')).substr(0, step.name.find('@')));
    EXPECT_EQ(orders.size(), 8u);
    for (const auto& [device, order] : orders) EXPECT_EQ(order, orders.begin()->second) << device;
    EXPECT_EQ(orders.begin()->second.size(), 60u);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(storms, 0);
}

}  // namespace
}  // namespace heddle

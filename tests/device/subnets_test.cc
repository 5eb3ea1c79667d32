// If, Loop and Scan on devices: their bodies are enqueued on their stream, with the bits of the host; only a condition that the device
// computes is waited for.
#include "lstm_loop.h"

namespace heddle {
namespace {

using namespace testing_devices;
using testing_nets::subnet;
using testing_nets::yes;

HEDDLE_DEVICE_SUITE(DeviceSubnets);

SessionOptions on_the_device(Copies copies = Copies::strict) {
  SessionOptions options = silent();
  options.device = device_name(0);
  options.copies = copies;
  return options;
}

// Doubles until the sum is large: the device computes the condition to continue.
Net counting_loop() {
  NetBuilder body("more"), b("until");
  body.input("turn", DType::i64, Shape{});
  body.input("go_on", DType::boolean, Shape{});
  const ValueId x = body.input("x", DType::f32, Shape{4});
  const ValueId doubled = body.add1("Add", "doubled", {x, x});
  const ValueId sum = body.add1("ReduceSum", "sum", {doubled}, {{"keepdims", int64_t{0}}});
  body.output(body.add1("Less", "small", {sum, body.constant("limit", whole_numbers(Shape{}, 6, 0))}));
  body.output(doubled);
  const ValueId begin = b.add1("Abs", "begin", {b.input("x", DType::f32, Shape{4})});
  b.output(b.add("Loop", "loop", {number(b, "trips", 20), yes(b), begin}, 1, {{"body", subnet(body)}})[0]);
  return b.finish();
}

// A branch within the steps of a scan along the second axis, in reverse.
Net branching_scan() {
  NetBuilder left("left"), right("right"), body("step"), b("scan");
  left.output(left.add1("Relu", "positive", {left.input("v", DType::f32, Shape{3})}));
  right.output(right.add1("Neg", "negative", {right.input("v", DType::f32, Shape{3})}));
  const ValueId state = body.input("state", DType::f32, Shape{3}), slice = body.input("slice", DType::f32, Shape{3});
  const ValueId sum = body.add1("Add", "sum", {state, slice});
  const ValueId large =
      body.add1("Less", "large",
                {body.constant("zero", whole_numbers(Shape{}, 6, 0)), body.add1("ReduceMax", "most", {sum}, {{"keepdims", int64_t{0}}})});
  const ValueId chosen = body.add("If", "chosen", {large, sum}, 1, {{"then_branch", subnet(left)}, {"else_branch", subnet(right)}})[0];
  body.output(sum);
  body.output(chosen);
  const std::vector<int64_t> second = {1}, backwards = {1};
  for (const ValueId out : b.add("Scan", "scan", {b.input("state", DType::f32, Shape{3}), b.input("x", DType::f32, Shape{3, 5})}, 2,
                                 {{"body", subnet(body)},
                                  {"num_scan_inputs", int64_t{1}},
                                  {"scan_input_axes", second},
                                  {"scan_input_directions", backwards},
                                  {"scan_output_axes", second}}))
    b.output(out);
  return b.finish();
}

std::vector<std::vector<char>> two_runs(const Net& net, const SessionOptions& options) {
  const Runtime runtime = device_runtime(2);
  auto prepared = prepare(runtime, Net(net), options);
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  if (!prepared.ok()) return {};
  std::vector<std::vector<char>> all;
  for (int run = 0; run < 2; ++run) {
    const Status status = prepared->context.run();
    EXPECT_TRUE(status.ok()) << status.text();
    for (std::vector<char>& output : outputs(prepared->context)) all.push_back(std::move(output));
  }
  return all;
}

const PlanStep& step_of(Prepared& prepared, const char* type) {
  const std::vector<PlanStep>& steps = prepared.plan().steps;
  return *std::find_if(steps.begin(), steps.end(), [&](const PlanStep& s) { return s.type == type; });
}

TEST_P(DeviceSubnets, GiveTheBitsOfTheHostInAnyOrder) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  for (const Net& net : {lstm_loop(), counting_loop(), branching_scan()}) {
    const std::vector<std::vector<char>> right = two_runs(net, {});
    for (int seed = 0; seed <= 5; ++seed) {
      SCOPED_TRACE(net.name + ", seed " + std::to_string(seed));
      const DeviceSetting delays("SEED", std::to_string(seed));
      EXPECT_EQ(two_runs(net, on_the_device(net.name == "lstm" ? Copies::strict : Copies::automatic)), right);
    }
  }
}

TEST_P(DeviceSubnets, TripsThatAreKnownAreEnqueuedWithoutAWait) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  auto prepared = prepare(device_runtime(2), lstm_loop(), on_the_device());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const PlanStep& loop = step_of(*prepared, "Loop");
  ASSERT_TRUE(loop.on_device);
  ASSERT_EQ(loop.nested->size(), 1u);
  EXPECT_TRUE(loop.nested->at(0).plan->only_enqueues);
  EXPECT_FALSE(step_of(*prepared, "Loop").late);
}

TEST_P(DeviceSubnets, AConditionOfTheDeviceIsWaitedFor) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  auto prepared = prepare(device_runtime(2), counting_loop(), on_the_device(Copies::automatic));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const PlanStep& loop = step_of(*prepared, "Loop");
  ASSERT_TRUE(loop.on_device);
  EXPECT_FALSE(loop.nested->at(0).plan->only_enqueues);
}

// The label of a step of the body: the loop's label, with the subnet's number and the step's own number in its upper bits.
TEST_P(DeviceSubnets, AFailureInABodyNamesItsOperator) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  std::vector<std::vector<char>> right;
  {
    auto prepared = prepare(device_runtime(2), lstm_loop(), on_the_device());
    ASSERT_TRUE(prepared.ok() && prepared->context.run().ok());
    right = outputs(prepared->context);
  }
  for (const std::string rule : {"late:MatMul#400", "enqueue:Gather#31", "late:Gather#60"}) {
    SCOPED_TRACE(rule);
    const DeviceSetting faults("FAULTS", rule);
    auto prepared = prepare(device_runtime(2), lstm_loop(), on_the_device());
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    const Status status = prepared->context.run();
    ASSERT_EQ(status.code(), Code::device_failed) << status.text();
    EXPECT_NE(status.diagnostic().node.find("loop"), std::string::npos) << status.text();
    const std::string type = rule.substr(rule.find(':') + 1, rule.find('#') - rule.find(':') - 1);
    EXPECT_TRUE(status.text().find("(" + type + ")") != std::string::npos || type == "MatMul") << status.text();
    EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
    const Status again = prepared->context.run();
    ASSERT_TRUE(again.ok()) << again.text();
    EXPECT_EQ(outputs(prepared->context), right);
  }
}

TEST_P(DeviceSubnets, EachTripDrawsItsOwnNumbersAsOnTheHost) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  NetBuilder body("draws"), b("random");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  const ValueId v = body.input("v", DType::f32, Shape{6});
  body.output(body.add1("Add", "sum", {v, body.add1("RandomUniformLike", "random", {v})}));
  b.output(b.add("Loop", "loop", {number(b, "trips", 7), yes(b), b.input("v", DType::f32, Shape{6})}, 1, {{"body", subnet(body)}})[0]);
  const Net net = b.finish();
  EXPECT_EQ(two_runs(net, on_the_device()), two_runs(net, {}));
}

// A body whose operators name their devices: one names the device of its loop, one the host, one `other`.
Net loop_with_named_devices(const std::string& other) {
  NetBuilder body("named"), b("loop");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  const ValueId v = body.input("v", DType::f32, Shape{6});
  const ValueId there = on(body, device_name(0), body.add1("Relu", "there", {v}));
  const ValueId here = on(body, "cpu:0", body.add1("Neg", "here", {v}));
  body.output(on(body, other, body.add1("Sub", "next", {there, here})));
  b.output(b.add("Loop", "loop", {number(b, "trips", 3), yes(b), b.input("v", DType::f32, Shape{6})}, 1, {{"body", subnet(body)}})[0]);
  return b.finish();
}

TEST_P(DeviceSubnets, OperatorsInsideMayNameTheHostOrTheDeviceOfTheirLoop) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  const auto right = two_runs(loop_with_named_devices("cpu:0"), on_the_device(Copies::automatic));
  EXPECT_EQ(two_runs(loop_with_named_devices(device_name(0)), on_the_device(Copies::automatic)), right);
  const auto other = prepare(device_runtime(), loop_with_named_devices(device_name(1)), on_the_device(Copies::automatic));
  EXPECT_EQ(other.status().code(), Code::unsupported);
  EXPECT_NE(other.status().text().find("is put on \"" + device_name(1) + "\", but its subnet runs on \"" + device_name(0) + "\""),
            std::string::npos)
      << other.status().text();
}

}  // namespace
}  // namespace heddle

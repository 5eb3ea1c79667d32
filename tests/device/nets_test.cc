// Nets over host and devices: the same bits as on the host alone, whatever the streams, threads and delays are.
#include <random>
#include <thread>

#include "device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceNets);

std::vector<std::vector<char>> expected(const Net& net) {
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, on_the_host(net), {});
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  EXPECT_TRUE(prepared->plan().devices.empty());
  EXPECT_TRUE(prepared->context.run().ok());
  return outputs(prepared->context);
}

TEST_P(DeviceNets, MixedNetHasTheBitsOfTheHost) {
  const Net net = mixed_net();
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, net, silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  for (int i = 0; i < 3; ++i) {
    const Status status = prepared->context.run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(outputs(prepared->context), expected(net));
  }
}

// Nine inputs are more than one program has: the part that does not fit becomes a program of its own, on every device.
TEST_P(DeviceNets, SumsOfProductsOfNineInputs) {
  NetBuilder b("sum");
  std::vector<ValueId> inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back(b.input("x" + std::to_string(i), DType::f32, Shape{40}));
  ValueId sum;
  for (size_t i = 0; i < 9; i += 3) {
    const std::string name = std::to_string(i);
    const ValueId product = b.add1("Mul", "q" + name, {b.add1("Mul", "p" + name, {inputs[i], inputs[i + 1]}), inputs[i + 2]});
    sum = i > 0 ? b.add1("Add", "s" + name, {sum, product}) : product;
  }
  b.output(sum);
  const Net net = b.finish();
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, net, silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->context.run();
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(outputs(prepared->context), expected(net));
}

// More operators after a compute kernel than any epilogue has: those that it does not accept run after it.
TEST_P(DeviceNets, LongChainsAfterComputeKernels) {
  for (const char* type : {"MatMul", "Gemm", "Conv", "Softmax"})
    for (const bool reads : {true, false}) {
      SCOPED_TRACE(std::string(type) + (reads ? ", each reads one more value" : ""));
      NetBuilder b("long");
      const bool convolves = std::string(type) == "Conv";
      const Shape shape = convolves ? Shape{1, 4, 2, 2} : Shape{4, 4}, weight = convolves ? Shape{4, 4, 1, 1} : Shape{4, 4};
      std::vector<ValueId> operands = {b.input("x", DType::f32, shape)};
      if (std::string(type) != "Softmax") operands.push_back(b.constant("w", whole_numbers(weight, 1, 3)));
      ValueId y = b.add1(type, "first", operands);
      for (int i = 0; i < (reads ? 40 : 300); ++i) {
        const std::string name = std::to_string(i);
        y = reads ? b.add1("Add", "n" + name, {y, b.input("x" + name, DType::f32, shape)}) : b.add1("Neg", "n" + name, {y});
      }
      b.output(y);
      const Net net = b.finish();
      const Runtime runtime = device_runtime();
      auto prepared = prepare(runtime, net, silent());
      ASSERT_TRUE(prepared.ok()) << prepared.status().text();
      const Status status = prepared->context.run();
      ASSERT_TRUE(status.ok()) << status.text();
      if (std::string(type) == "Softmax") continue;  // its sums may be in another order
      EXPECT_EQ(outputs(prepared->context), expected(net));
    }
}

// Add and Relu in any order over the host and two devices; many values, few bytes of arena.
Net random_net(uint32_t seed) {
  std::mt19937 random(seed);
  NetBuilder b("random");
  const Shape shape{40};
  std::vector<ValueId> values = {b.input("x", DType::f32, shape), b.input("y", DType::f32, shape),
                                 b.constant("c", whole_numbers(shape, 2, 7))};
  const std::string devices[] = {"", device_name(0), device_name(0), device_name(1)};
  for (int i = 0; i < 36; ++i) {
    const auto pick = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 7)]; };
    const std::string name = "n" + std::to_string(i);
    const ValueId made = random() % 3 == 0 ? b.add1("Relu", name, {pick()}) : b.add1("Add", name, {pick(), pick()});
    values.push_back(on(b, devices[random() % 4], made));
  }
  for (size_t i = values.size() - 3; i < values.size(); ++i) b.output(values[i]);
  return b.finish();
}

TEST_P(DeviceNets, FiftySeedsOfDelaysStreamsAndThreads) {
  HEDDLE_DEVICES_NEEDED(2);
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    const Net net = random_net(seed);
    const auto right = expected(net);
    const DeviceSetting delays("SEED", std::to_string(seed));
    const int streams = 1 + static_cast<int>(seed % 3), threads = 1 + static_cast<int>(seed / 3 % 3);
    const Runtime runtime = device_runtime(threads);
    auto prepared = prepare(runtime, net, silent(streams));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    for (int i = 0; i < 2; ++i) {
      const Status status = prepared->context.run();
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(outputs(prepared->context), right) << "seed " << seed << ", " << streams << " streams, " << threads << " threads";
    }
  }
}

TEST_P(DeviceNets, ShuffledSchedulesKeepTheBits) {
  HEDDLE_DEVICES_NEEDED(2);
  const Net net = random_net(77);
  const auto right = expected(net);
  const DeviceSetting delays("SEED", "5");
  const Runtime runtime = device_runtime(3);
  for (uint64_t shuffle = 1; shuffle <= 12; ++shuffle) {
    auto session = runtime.open(Net(net), silent(3));
    ASSERT_TRUE(session.ok());
    Internals::of(*session).scheduler.shuffle_seed = shuffle;
    auto context = session->prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    const auto inputs = inputs_of(*session);
    for (size_t i = 0; i < inputs.size(); ++i) ASSERT_TRUE(context->bind_input(i, inputs[i]->data).ok());
    ASSERT_TRUE(context->run().ok());
    ASSERT_EQ(outputs(*context), right) << "shuffle " << shuffle;
  }
}

TEST_P(DeviceNets, ContextsRunSideBySideOnOneDevice) {
  const Net net = mixed_net();
  const auto right = expected(net);
  const DeviceSetting delays("SEED", "9");
  const Runtime runtime = device_runtime(2);
  auto session = runtime.open(Net(net), silent(2));
  ASSERT_TRUE(session.ok());
  const auto inputs = inputs_of(*session);
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < good.size(); ++t)
    threads.emplace_back([&, t] {
      auto context = session->prepare();
      if (!context.ok() || !context->bind_input(0, inputs[0]->data).ok()) return;
      for (int i = 0; i < 5; ++i) good[t] += context->run().ok() && outputs(*context) == right;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, std::vector<int>(4, 5));
}

TEST_P(DeviceNets, TheDefaultDeviceTakesWhatItCanAndTheHostTheRest) {
  HEDDLE_DEVICE_NEEDS(has_few_kernels);
  const Net net = on_the_host(mixed_net());
  const Runtime runtime = device_runtime();
  SessionOptions options = silent(2);
  options.device = kind().name;
  auto prepared = prepare(runtime, net, options);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(outputs(prepared->context), expected(net));
  std::map<std::string, std::string> device;
  for (const PlanStep& step : prepared->plan().steps) device[step.name] = prepared->plan().device_of(step);
  EXPECT_EQ(device["a"], device_name(0));
  EXPECT_EQ(device["turned"], "cpu:0");
  // The fallback was requested, so there is no warning, but a note.
  ASSERT_FALSE(prepared->plan().warnings.empty());
  for (const Diagnostic& d : prepared->plan().warnings) {
    EXPECT_EQ(d.severity, Severity::note);
    EXPECT_EQ(d.code, Code::no_kernel);
    EXPECT_EQ(device[d.node], "cpu:0") << d.node;
  }
  options.copies = Copies::warn;
  auto warned = prepare(runtime, net, options);
  ASSERT_TRUE(warned.ok());
  ASSERT_FALSE(warned->plan().warnings.empty());
  EXPECT_EQ(warned->plan().warnings[0].severity, Severity::warning);
}

TEST_P(DeviceNets, CallersBuffersAreReadAndWritten) {
  const Net net = mixed_net();
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, net, silent());
  ASSERT_TRUE(prepared.ok());
  std::vector<float> y(8 * 16, -1);
  ASSERT_TRUE(prepared->context.bind_output(0, y.data()).ok());
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(prepared->context.output(0).data, y.data());
  EXPECT_EQ(bytes(prepared->context.output(0)), expected(net)[0]);
}

TEST_P(DeviceNets, StepsCanBeObserved) {
  const Net net = mixed_net();
  const DeviceSetting delays("SEED", "3");
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, net, silent(2));
  ASSERT_TRUE(prepared.ok());
  Execution& execution = Internals::execution(prepared->context);
  uint32_t steps = 0;
  const std::function<Status(uint32_t)> seen = [&](uint32_t) { return ++steps, Status(); };
  RunSettings settings;
  settings.observer = &seen;
  ASSERT_TRUE(execution.run(settings).ok());
  EXPECT_EQ(steps, prepared->plan().steps.size());
  EXPECT_EQ(outputs(prepared->context), expected(net));
}

}  // namespace
}  // namespace heddle

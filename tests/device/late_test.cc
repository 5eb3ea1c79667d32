// Steps on a device whose extents are known only while they run: they give the host's bits, however the extents change from run to run.
//
// HEDDLE_LONG_TESTS=1 takes 5,000 random nets (tools/soak.sh --spread).
#include "late_nets.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceLate);

// Returns x, in which about every `k`-th element is zero, and all from the `n`-th on.
std::shared_ptr<const Blob> some_numbers(const Shape& shape, int k, int n) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()), 0.0f);
  for (size_t i = 0; i < values.size() && i < static_cast<size_t>(n); ++i)
    if ((i + 1) % static_cast<size_t>(k) != 0) values[i] = static_cast<float>(static_cast<int>(i % 11) - 20);
  return Blob::copy_of(DType::f32, shape, values.data());
}

struct Answer {
  std::vector<Shape> shapes;
  std::vector<std::vector<char>> bytes;
  friend bool operator==(const Answer&, const Answer&) = default;
};
std::ostream& operator<<(std::ostream& to, const Answer& answer) {
  for (size_t i = 0; i < answer.shapes.size(); ++i) to << answer.shapes[i].text() << " (" << answer.bytes[i].size() << " bytes) ";
  return to;
}

Answer run(Context& context, const std::vector<std::shared_ptr<const Blob>>& feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) EXPECT_TRUE(context.bind_input(i, feeds[i]->data).ok());
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  Answer answer;
  for (size_t i = 0; status.ok() && i < context.output_count(); ++i) answer.shapes.push_back(context.output(i).shape);
  if (status.ok()) answer.bytes = outputs(context);
  return answer;
}

// Compares each run with the host's, with extents that grow and shrink.
void expect_the_hosts_bits(const Net& net, const SessionOptions& options, int threads,
                           const std::vector<std::vector<std::shared_ptr<const Blob>>>& feeds) {
  const Runtime runtime = device_runtime(threads);
  auto host = prepare(runtime, on_the_host(net), SessionOptions());
  auto device = prepare(runtime, Net(net), options);
  ASSERT_TRUE(host.ok()) << host.status().text();
  ASSERT_TRUE(device.ok()) << device.status().text();
  for (int round = 0; round < 2; ++round)
    for (const auto& feed : feeds) EXPECT_EQ(run(device->context, feed), run(host->context, feed)) << net.name;
}

SessionOptions on_the_device(Copies copies, int streams) {
  SessionOptions options = silent(streams);
  options.device = device_name(0);
  options.copies = copies;
  return options;
}

TEST_P(DeviceLate, ExtentsThatLieOnTheDeviceAreBroughtToTheHost) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  std::vector<std::vector<std::shared_ptr<const Blob>>> feeds;
  for (const int n : {48, 5, 0, 30, 48}) feeds.push_back({some_numbers(Shape{6, 8}, 3, n)});
  for (const int streams : {1, 3})
    for (const int threads : {1, 2}) expect_the_hosts_bits(found(), on_the_device(Copies::strict, streams), threads, feeds);
}

// Indices of a scalar and of an empty tensor have no bytes, but have an extent all the same.
TEST_P(DeviceLate, WhatHasNoBytesHasAnExtent) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0}}) {
    NetBuilder b("nothing");
    b.output(b.add1("NonZero", "where", {b.input("x", DType::f32, shape)}));
    expect_the_hosts_bits(b.finish(), on_the_device(Copies::strict, 1), 2, {{some_numbers(shape, 3, 1)}});
  }
}

TEST_P(DeviceLate, ExtentsThatTheHostDecidesNeedNoWait) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  std::vector<std::vector<std::shared_ptr<const Blob>>> feeds;
  for (const int64_t n : {3, 0, 5, 1}) {
    const int64_t less = n;
    feeds.push_back({some_numbers(Shape{6, 8}, 4, 48), Blob::copy_of(DType::i64, Shape{1}, &less)});
  }
  for (const int streams : {1, 3})
    for (const int threads : {1, 2}) expect_the_hosts_bits(rows(), on_the_device(Copies::automatic, streams), threads, feeds);
}

TEST_P(DeviceLate, InsideASubnetTheyAreTheSame) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  // Each trip adds the sum of the elements of `carried` that are not zero to all of it.
  NetBuilder body("body");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  const ValueId carried = body.input("carried", DType::f32, Shape{6, 8});
  const ValueId each = body.add1("Transpose", "each", {body.add1("NonZero", "where", {carried})});
  const ValueId sum = body.add1("ReduceSum", "sum", {body.add1("GatherND", "numbers", {carried, each}), body.constant_ints("axes", {0})},
                                {{"keepdims", int64_t{0}}});
  body.output(body.add1("Add", "next", {carried, sum}));
  NetBuilder b("loop");
  const ValueId x = b.input("x", DType::f32, Shape{6, 8});
  const int64_t trips = 4;
  b.output(b.add1("Loop", "loop", {b.constant("trips", Blob::copy_of(DType::i64, Shape{}, &trips)), ValueId(), x},
                  {{"body", std::make_shared<const Net>(body.finish())}}));
  const Net net = b.finish();
  std::vector<std::vector<std::shared_ptr<const Blob>>> feeds;
  for (const int n : {48, 5, 0}) feeds.push_back({some_numbers(Shape{6, 8}, 3, n)});
  expect_the_hosts_bits(net, on_the_device(Copies::strict, 1), 2, feeds);
}

TEST_P(DeviceLate, RandomNetsSpreadOverDevicesGiveTheHostsBits) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  std::vector<std::vector<std::shared_ptr<const Blob>>> feeds;
  for (const int n : {48, 3, 0, 20}) feeds.push_back({some_numbers(Shape{6, 8}, 3, n), some_numbers(Shape{6, 8}, 2, 48 - n)});
  for (uint64_t net = 1; net <= (std::getenv("HEDDLE_LONG_TESTS") ? 5000u : 40u); ++net) {
    SCOPED_TRACE("net " + std::to_string(net));
    const DeviceSetting delays("SEED", std::to_string(net % 5)), peers("PEERS", net % 3 == 0 ? "1" : "0");
    expect_the_hosts_bits(random_late_net(net), silent(1 + static_cast<int>(net % 3)), 1 + static_cast<int>(net % 2), feeds);
  }
}

// The step runs where it may allocate; the following steps are on the device again, with its own kernels where it has them.
TEST_P(DeviceLate, WhatAKernelAllocatesComesFromTheHost) {
  NetBuilder b("positive");
  const ValueId x = b.input("x", DType::f32, Shape{6, 8});
  const ValueId positive = b.add1("Positive", "positive", {x}, {}, "host_only");
  const ValueId twice = on(b, device_name(0), b.add1("Add", "twice", {positive, positive}));
  b.output(on(b, device_name(0), b.add1("Relu", "y", {twice})));
  const Net net = b.finish();
  std::vector<std::vector<std::shared_ptr<const Blob>>> feeds;
  for (const int first : {3, 0, 9}) feeds.push_back({whole_numbers(Shape{6, 8}, first, 5)});
  feeds.push_back({some_numbers(Shape{6, 8}, 3, 48)});  // no element is positive
  for (const Copies copies : {Copies::automatic, Copies::warn}) expect_the_hosts_bits(net, on_the_device(copies, 2), 2, feeds);
  const auto strict = prepare(device_runtime(), Net(net), on_the_device(Copies::strict, 1));
  EXPECT_NE(strict.status().text().find("\"positive\" (host_only::Positive)"), std::string::npos) << strict.status().text();
}

TEST_P(DeviceLate, ThePlanShowsWhatIsBroughtToTheHost) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  auto prepared = prepare(device_runtime(), found(), on_the_device(Copies::strict, 1));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  std::vector<std::string> fences;
  for (const PlanStep& step : prepared->plan().steps)
    if (step.on_device && step.on_device->kind == DeviceWork::Kind::fence) fences.push_back(step.type.text() + " " + step.name);
  EXPECT_EQ(std::count(fences.begin(), fences.end(), "Extents extents of where"), 1) << fences.size();
}

}  // namespace
}  // namespace heddle

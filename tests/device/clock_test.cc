// Tests when work is enqueued, by the clock of the simulated device, which is held and advanced: checks orders, no times.
#include <future>

#include "simulated.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceClock);

constexpr uint64_t product_ns = 5'000'000;

const Device& device_of(Prepared& prepared) {
  return *prepared.plan().devices[0].device;
}
// Waits for other threads; the suite's time limit ends a wait that is in vain.
template <class Condition>
void wait_until(const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

std::vector<sim_span> spans(const sim_native_table& table) {
  std::vector<sim_span> all(1000);
  all.resize(std::min<size_t>(all.size(), table.spans(all.data(), all.size())));
  return all;
}
bool overlap(const sim_span& a, const sim_span& b) {
  return a.begin_ns < b.end_ns && b.begin_ns < a.end_ns;
}

SessionOptions on_the_device(int streams = 1) {
  SessionOptions options = silent(streams);
  options.device = device_name(0);
  return options;
}

// x -> `length` products. With `seen`, the third one also goes to the host's Through, whose result goes back to the device.
Net chain(int length, bool seen) {
  NetBuilder b("chain");
  ValueId v = b.input("x", DType::f32, Shape{4, 4});
  for (int i = 0; i < length; ++i) {
    v = b.add1("MatMul", "m" + std::to_string(i), {v, b.constant("w" + std::to_string(i), whole_numbers(Shape{4, 4}, i % 3, 1))});
    if (seen && i == 2) b.output(on(b, device_name(0), b.add1("Relu", "back", {b.add1("Through", "seen", {v}, {}, "host_only")})));
  }
  b.output(v);
  return b.finish();
}

// Runs a context on a thread of its own, while the clock is held.
struct HeldRun {
  explicit HeldRun(Prepared& of) : device(device_of(of)), table(native(device)) {
    EXPECT_TRUE(of.context.run().ok());  // so that uploads and first uses are done
    table.forget_spans();
    table.hold_clock();
    before = counts(device);
    over = std::async(std::launch::async, [&of] { return of.context.run(); });
  }
  uint64_t enqueued() const { return counts(device).launches - before.launches; }
  void end() {
    table.release_clock();
    const Status status = over.get();
    EXPECT_TRUE(status.ok()) << status.text();
  }
  const Device& device;
  const sim_native_table& table;
  sim_counts before = {};
  std::future<Status> over;
};

TEST_P(DeviceClock, AChainIsEnqueuedBeforeItsSecondHasEnded) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const DeviceSetting cost("COST", "MatMul=" + std::to_string(product_ns));
  auto prepared = prepare(device_runtime(2), chain(20, false), on_the_device());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  HeldRun run(*prepared);
  run.table.advance_clock(product_ns);
  wait_until([&] { return run.enqueued() == 20; });  // the clock has not reached the second's end
  EXPECT_LE(spans(run.table).size(), 2u);            // the feed's copy, and the first product
  run.end();
}

// The host's result of the third product is on its way back while the clock is at the third's end: the sixth begins two products later. All
// of the chain has been enqueued by then, although it shares its stream with work that waits for the host.
TEST_P(DeviceClock, TheHostReadsAResultBeforeTheChainIsDone) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const DeviceSetting cost("COST", "MatMul=" + std::to_string(product_ns));
  for (const int threads : {1, 2}) {
    auto prepared = prepare(device_runtime(threads), chain(20, true), on_the_device());
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    HeldRun run(*prepared);
    wait_until([&] { return run.enqueued() == 20; });
    run.table.advance_clock(3 * product_ns);
    const auto copied_there = [&] {
      const std::vector<sim_span> all = spans(run.table);
      return std::count_if(all.begin(), all.end(), [](const sim_span& s) { return s.stream_class == HEDDLE_STREAM_TO_DEVICE; });
    };
    wait_until([&] { return copied_there() == 2; });  // the feed, and the host's result
    const std::vector<sim_span> all = spans(run.table);
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const sim_span& s) { return std::string(s.name) == "MatMul"; }), 3);
    run.end();
  }
}

TEST_P(DeviceClock, ADiamondOverlapsOnTwoStreamsAndCopiesOverlapWork) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const DeviceSetting cost("COST", "MatMul=" + std::to_string(product_ns) + ",copy=" + std::to_string(product_ns));
  NetBuilder b("diamond");
  const ValueId w = b.constant("w", whole_numbers(Shape{4, 4}, 1, 1));
  const ValueId x = b.input("x", DType::f32, Shape{4, 4}), z = b.input("z", DType::f32, Shape{8, 4});
  const ValueId top = b.add1("MatMul", "top", {x, w});
  const ValueId left = b.add1("MatMul", "left", {top, w}), right = b.add1("MatMul", "right", {top, top});
  b.output(b.add1("MatMul", "joined", {left, right}));
  b.output(b.add1("MatMul", "other", {z, w}));
  auto prepared = prepare(device_runtime(2), b.finish(), on_the_device(2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const auto at = [&](const char* name) {
    const auto& steps = prepared->plan().steps;
    return static_cast<uint64_t>(std::find_if(steps.begin(), steps.end(), [&](const PlanStep& s) { return s.name == name; }) -
                                 steps.begin());
  };
  HeldRun run(*prepared);
  wait_until([&] { return run.enqueued() == 5; });
  run.end();
  std::map<uint64_t, sim_span> by_step;
  for (const sim_span& span : spans(run.table)) by_step[span.label] = span;
  EXPECT_TRUE(overlap(by_step[at("left")], by_step[at("right")]));
  const bool any = std::any_of(by_step.begin(), by_step.end(), [&](const auto& copy) {
    return copy.second.stream_class != HEDDLE_STREAM_COMPUTE && std::any_of(by_step.begin(), by_step.end(), [&](const auto& kernel) {
             return kernel.second.stream_class == HEDDLE_STREAM_COMPUTE && overlap(copy.second, kernel.second);
           });
  });
  EXPECT_TRUE(any) << "a copy beside a kernel";
}

// Work that the host waits for goes first, although the second product was enqueued before it.
TEST_P(DeviceClock, CopiesGoBeforeWorkThatTakesAsLong) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const DeviceSetting cost("COST", "MatMul=1000,copy=1000");
  NetBuilder b("results");
  const ValueId w = b.constant("w", whole_numbers(Shape{4, 4}, 1, 1));
  const ValueId one = b.add1("MatMul", "one", {b.input("x", DType::f32, Shape{4, 4}), w});
  const ValueId two = b.add1("MatMul", "two", {one, w});
  b.output(one);
  b.output(two);
  auto prepared = prepare(device_runtime(), b.finish(), on_the_device());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  HeldRun run(*prepared);
  wait_until([&] { return counts(run.device).calls == run.before.calls + 5; });  // two products, three copies
  run.end();
  std::vector<std::string> order;
  for (const sim_span& span : spans(run.table))
    order.push_back(span.stream_class == HEDDLE_STREAM_COMPUTE ? prepared->plan().steps[span.label].name : "copy");
  EXPECT_EQ(order, (std::vector<std::string>{"copy", "one", "copy", "two", "copy"}));
}

TEST_P(DeviceClock, PeersWaitByEventWithoutTheHost) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  NetBuilder b("peers");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  const ValueId y = on(b, device_name(0), b.add1("Softmax", "y", {x}));
  b.output(on(b, device_name(1), b.add1("Transpose", "z", {y})));
  const Net net = b.finish();
  std::vector<std::vector<char>> right;
  for (const bool peers : {false, true}) {
    const DeviceSetting reach("PEERS", peers ? "1" : "0");
    auto prepared = prepare(device_runtime(2), Net(net), silent());
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    ASSERT_TRUE(prepared->context.run().ok());
    EXPECT_EQ(prepared->plan().copies.size(), peers ? 3u : 4u);
    EXPECT_EQ(counts(*prepared->plan().devices[1].device).peer_copies, peers ? 1u : 0u);
    // The feed's end on sim:0, and the result's on sim:1: between them the host is not notified.
    const auto fences = std::count_if(prepared->plan().steps.begin(), prepared->plan().steps.end(), [](const PlanStep& s) {
      return s.on_device && s.on_device->kind == DeviceWork::Kind::fence && s.name.find("\"y\"") != std::string::npos;
    });
    EXPECT_EQ(fences, 0);
    if (right.empty()) right = outputs(prepared->context);
    EXPECT_EQ(outputs(prepared->context), right);
  }
}

TEST_P(DeviceClock, AStepTakesTwoCallsAtMostAndAChainNoWait) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  for (const Net& net : {chain(20, false), mixed_net()}) {
    auto prepared = prepare(device_runtime(2), Net(net), on_the_device(2));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(prepared->context.run().ok());
    const sim_counts before = counts(device_of(*prepared));
    ASSERT_TRUE(prepared->context.run().ok());
    const sim_counts after = counts(device_of(*prepared));
    uint64_t steps = 0, fences = 0;
    for (const PlanStep& step : prepared->plan().steps)
      if (step.on_device) ++(step.on_device->kind == DeviceWork::Kind::fence ? fences : steps);
    EXPECT_LE(after.calls - before.calls, 2 * steps) << net.name;
    EXPECT_EQ(after.callbacks - before.callbacks, fences) << net.name;
    EXPECT_EQ(after.synchronizes, before.synchronizes) << net.name;
    EXPECT_EQ(after.allocations, before.allocations) << net.name;
    EXPECT_EQ(after.pageable_copies, before.pageable_copies) << net.name;
    EXPECT_TRUE(net.name != "chain" || fences <= 3) << "a chain is waited for at its ends alone";
  }
}

TEST_P(DeviceClock, ARunWaitsForAStreamOfTheCallers) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const DeviceSetting cost("COST", "copy=1000");
  SessionOptions options = on_the_device();
  options.placed_ports = {{"x", device_name(0)}};
  const Runtime runtime = device_runtime(2);
  auto session = runtime.open(chain(2, false), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto context = session->prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const auto& device = Internals::execution(*context).plan().devices[0].device;
  const sim_native_table& table = native(*device);
  void* const memory = table.allocate(0, 64);
  void* const stream = table.create_stream(0);
  ASSERT_TRUE(context->bind_input(0, memory).ok());
  const CallerStream made_on = {device_name(0), stream};
  RunOptions run;
  run.streams = &made_on;
  run.stream_count = 1;
  std::vector<std::vector<char>> results;
  for (int i = 0; i < 3; ++i) {
    const auto feed = whole_numbers(Shape{4, 4}, i, 1);
    table.hold_clock();
    table.copy(0, stream, memory, feed->data, 64, HEDDLE_COPY_HOST_TO_DEVICE);
    const uint64_t before = counts(*device).launches;
    auto over = std::async(std::launch::async, [&] { return context->run(run); });
    wait_until([&] { return counts(*device).launches == before + 2; });
    table.release_clock();
    const Status status = over.get();
    ASSERT_TRUE(status.ok()) << status.text();
    results.push_back(outputs(*context)[0]);
    auto host = prepare(runtime, chain(2, false), on_the_device());
    ASSERT_TRUE(host.ok());
    ASSERT_TRUE(host->context.bind_input(0, feed->data).ok());
    ASSERT_TRUE(host->context.run().ok());
    EXPECT_EQ(results.back(), outputs(host->context)[0]);
  }
  const CallerStream elsewhere = {"sim:7", stream};
  run.streams = &elsewhere;
  EXPECT_EQ(context->run(run).code(), Code::invalid_argument);
  table.synchronize(0, stream);
  context = session->prepare();
  table.destroy_stream(0, stream);
  table.release(0, memory);
}

// Runs without a context of the caller's heed streams too: one of a device that the net does not use is refused.
TEST_P(DeviceClock, RunsOfASessionHeedStreams) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const Runtime runtime = device_runtime(2);
  auto prepared = prepare(runtime, chain(2, false), on_the_device());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const auto device = Internals::execution(prepared->context).plan().devices[0].device;  // stays open until the stream is destroyed
  const sim_native_table& table = native(*device);
  void* const stream = table.create_stream(0);
  const Blob& feed = *prepared->inputs[0];
  const TensorView x = {feed.dtype, feed.shape, const_cast<std::byte*>(feed.data)};
  for (const auto& [name, code] : {std::pair(device_name(0), Code::ok), std::pair(std::string("sim:7"), Code::invalid_argument)}) {
    const CallerStream given = {name, stream};
    RunOptions run;
    run.streams = &given;
    run.stream_count = 1;
    TensorView y;
    EXPECT_EQ(prepared->session.run(&x, 1, &y, 1, run).code(), code) << name;
    EXPECT_EQ(prepared->session.run({x}, run).status().code(), code) << name;
  }
  table.synchronize(0, stream);
  { const Prepared gone = std::move(*prepared); }
  table.destroy_stream(0, stream);
}

// A caller may bring another stream to every run: the data kept for streams stays bounded.
TEST_P(DeviceClock, StreamsOfCallersThatComeAndGoAreLetGo) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const Runtime runtime = device_runtime(2);
  auto prepared = prepare(runtime, chain(2, false), on_the_device());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  Context& context = prepared->context;
  const auto feed = whole_numbers(Shape{4, 4}, 1, 1);
  ASSERT_TRUE(context.bind_input(0, feed->data).ok());
  const auto& device = Internals::execution(context).plan().devices[0].device;
  const sim_native_table& table = native(*device);
  const auto before = counts(*device).events;
  std::vector<void*> streams;  // all at once, so that none has the address of an earlier one
  for (int i = 0; i < 50; ++i) streams.push_back(table.create_stream(0));
  for (void* const stream : streams) {
    const CallerStream given = {device_name(0), stream};
    RunOptions run;
    run.streams = &given;
    run.stream_count = 1;
    ASSERT_TRUE(context.run(run).ok());
  }
  EXPECT_LE(counts(*device).events, before + 16);
  for (void* const stream : streams) table.destroy_stream(0, stream);
}

// Drivers do the same: memory is allocated and freed when the device has completed all work given to it before.
TEST_P(DeviceClock, MemoryIsGivenAndTakenWhenTheDeviceIsIdle) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const DeviceSetting delays("SEED", "3");
  auto prepared = prepare(device_runtime(), chain(2, false), on_the_device());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const sim_native_table& table = native(device_of(*prepared));
  void* const memory = table.allocate(0, 64);
  void* const stream = table.create_stream(0);
  for (int64_t i = 1; i <= 200; ++i) {
    int64_t given = 0, taken = 0;
    table.copy(0, stream, memory, &i, sizeof(i), HEDDLE_COPY_HOST_TO_DEVICE);
    table.copy(0, stream, &given, memory, sizeof(i), HEDDLE_COPY_DEVICE_TO_HOST);
    void* const more = table.allocate(0, 64);
    ASSERT_EQ(given, i);
    table.copy(0, stream, &taken, memory, sizeof(i), HEDDLE_COPY_DEVICE_TO_HOST);
    table.release(0, more);
    ASSERT_EQ(taken, i);
  }
  table.synchronize(0, stream);
  table.destroy_stream(0, stream);
  table.release(0, memory);
}

}  // namespace
}  // namespace heddle

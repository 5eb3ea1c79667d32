// The update phase that begins on devices without a look of the host: it is joined by events, and a commit on the device decides for all of
// its updates.
#include <chrono>
#include <future>
#include <thread>

#include "device/simulated.h"
#include "heddle/training.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceTail);

// p = Gather(w, rows) x, w <- w + p, v <- v + p; on `device`, and the update of v on `other`.
Net gathering_net(const std::string& device, const std::string& other) {
  NetBuilder b("gathering");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4}), rows = b.input("rows", DType::i64, Shape{4});
  const ValueId w = b.variable("w", whole_numbers(Shape{4, 4}, 1, 3)), v = b.variable("v", whole_numbers(Shape{4, 4}, 2, 5));
  const ValueId picked = on(b, device, b.add1("Gather", "picked", {w, rows}));
  const ValueId p = on(b, device, b.add1("MatMul", "p", {picked, x}));
  b.updates(on(b, device, b.add1("AccumulateAdd", "next_w", {w, p}, {}, "heddle")), w);
  b.updates(on(b, other, b.add1("AccumulateAdd", "next_v", {v, p}, {}, "heddle")), v);
  b.output(p);
  return b.finish();
}

// Asks again while the device is busy with a run that was given up, as it may be for a while on a busy machine.
template <class Ask>
auto when_free(const Ask& ask) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    auto answer = ask();
    if (answer.code() != Code::busy || std::chrono::steady_clock::now() >= patience) return answer;
    std::this_thread::yield();
  }
}

struct Gathering {
  Prepared prepared;
  std::vector<float> x = std::vector<float>(16, 0.5F);
  std::vector<int64_t> rows = {3, 0, 2, 1};

  static Result<std::unique_ptr<Gathering>> make(const Runtime& runtime, Net net, const SessionOptions& options) {
    HEDDLE_TRY(Prepared made, prepare(runtime, std::move(net), options));
    auto all = std::make_unique<Gathering>(Gathering{std::move(made)});
    HEDDLE_CHECK(all->prepared.context.bind_input(0, all->x.data()));
    HEDDLE_CHECK(all->prepared.context.bind_input(1, all->rows.data()));
    return all;
  }
  std::vector<std::vector<char>> variables() const {
    std::vector<std::vector<char>> both;
    for (const char* name : {"w", "v"}) {
      Result<Tensor> value = Status(Code::busy, "");
      EXPECT_TRUE(when_free([&] { return (value = prepared.session.read_variable(name)).status(); }).ok()) << value.status().text();
      if (value.ok()) both.push_back(bytes({value->dtype(), value->shape(), const_cast<void*>(value->data())}));
    }
    return both;
  }
};

// Fences that a step waits for, and steps of the host, between the first step on a device and the last.
size_t looks_of_host(const Plan& plan) {
  size_t first = plan.steps.size(), last = 0, looks = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const DeviceWork* const work = plan.steps[i].on_device.get();
    if (work && work->is_auxiliary()) continue;
    first = std::min(first, i);
    last = i;
  }
  const auto is_waited_for = [&](size_t i) { return plan.graph.successor_begin[i] < plan.graph.successor_begin[i + 1]; };
  for (size_t i = first; i < last; ++i)
    if (!plan.steps[i].on_device || (plan.steps[i].on_device->kind == DeviceWork::Kind::fence && is_waited_for(i))) ++looks;
  return looks;
}

TEST_P(DeviceTail, BeginsWithoutALookOfTheHost) {
  if (kind().has_few_kernels) GTEST_SKIP() << "devices of kind " << kind().name << " have no kernel for Gather";
  const auto made = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(0)), silent(3));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Gathering& g = **made;
  EXPECT_TRUE(g.prepared.plan().joins_tail);
  EXPECT_EQ(looks_of_host(g.prepared.plan()), 0u);
  const auto on_host = Gathering::make(device_runtime(2), on_the_host(gathering_net("", "")), {});
  ASSERT_TRUE(on_host.ok()) << on_host.status().text();
  for (int i = 0; i < 5; ++i) {  // the numbers stay exact
    const Status there = g.prepared.context.run(), here = (*on_host)->prepared.context.run();
    ASSERT_TRUE(there.ok() && here.ok()) << there.text() << here.text();
    ASSERT_EQ(g.variables(), (*on_host)->variables());
    ASSERT_EQ(outputs(g.prepared.context), outputs((*on_host)->prepared.context));
  }
}

// An index out of range is named, and leaves the variables as they were.
void expect_refusal(Gathering& g) {
  const auto before = g.variables();
  g.rows[1] = 4;
  const Status status = g.prepared.context.run();
  EXPECT_NE(status.text().find("index 4 is outside [-4, 3]"), std::string::npos) << status.text();
  EXPECT_EQ(g.variables(), before);
  g.rows[1] = 0;
}

TEST_P(DeviceTail, JoinsOverTwoDevices) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  HEDDLE_DEVICES_NEEDED(2);
  for (const bool peers : {false, true}) {
    std::optional<DeviceSetting> reach;
    if (peers) reach.emplace("PEERS", "1");
    const auto made = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(1)), silent(2));
    ASSERT_TRUE(made.ok()) << made.status().text();
    Gathering& g = **made;
    EXPECT_EQ(g.prepared.plan().joins_tail, peers);
    const auto on_host = Gathering::make(device_runtime(2), on_the_host(gathering_net("", "")), {});
    ASSERT_TRUE(on_host.ok()) << on_host.status().text();
    for (int i = 0; i < 20; ++i) {
      if (i % 5 == 4) expect_refusal(g);
      const Status there = g.prepared.context.run(), here = (*on_host)->prepared.context.run();
      ASSERT_TRUE(there.ok() && here.ok()) << there.text() << here.text();
      ASSERT_EQ(g.variables(), (*on_host)->variables());
    }
  }
}

// Without kernels that report, nothing is written to the device before a run, and the host waits for nothing in it.
TEST_P(DeviceTail, IsNotPreparedByTheHostInEachRun) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const auto made = Gathering::make(device_runtime(1), gathering_net(device_name(0), device_name(0)), silent(1));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Gathering& g = **made;
  ASSERT_TRUE(g.prepared.context.run().ok());
  const uint64_t before = counted(g.prepared.plan(), &sim_counts::synchronizes);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(g.prepared.context.run().ok());
  EXPECT_EQ(counted(g.prepared.plan(), &sim_counts::synchronizes) - before, 0u);
}

// Devices that do their work late: the host has enqueued everything, updates too, when the run is stopped.
TEST_P(DeviceTail, AStopBeforeTheCommitHoldsAllUpdates) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  if (kind().has_few_kernels) GTEST_SKIP() << "devices of kind " << kind().name << " have no kernel for Gather";
  for (const bool cancels : {false, true}) {
    const Gate gate;
    const auto made = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(0)), silent(2));
    ASSERT_TRUE(made.ok()) << made.status().text();
    Gathering& g = **made;
    ASSERT_TRUE(g.prepared.context.run().ok());
    const auto before = g.variables();
    gate.close();
    RunOptions options;
    if (!cancels) options.deadline_ns = 20'000'000;
    std::promise<Status> over;
    ASSERT_TRUE(g.prepared.context.run_async([&](Status status) { over.set_value(std::move(status)); }, options).ok());
    if (cancels) g.prepared.context.cancel();
    std::future<Status> ended = over.get_future();
    // The device goes on when the stop has been told, and may then still come to the updates.
    std::this_thread::sleep_for(std::chrono::milliseconds(cancels ? 20 : 50));
    gate.open();
    const Status status = ended.get();
    EXPECT_EQ(status.code(), cancels ? Code::cancelled : Code::deadline_exceeded) << status.text();
    EXPECT_EQ(g.variables(), before) << status.text();
    const Status again = g.prepared.context.run();
    EXPECT_TRUE(again.ok()) << again.text();
    EXPECT_NE(g.variables(), before);
  }
}

// A run that is given up before its commit has not torn the variables: the updates are still held when the device goes on.
TEST_P(DeviceTail, ARunThatIsGivenUpBeforeTheCommitTearsNothing) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  if (kind().has_few_kernels) GTEST_SKIP() << "devices of kind " << kind().name << " have no kernel for Gather";
  const Gate gate;
  const auto made = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(0)), silent(2));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Gathering& g = **made;
  const auto before = g.variables();
  gate.close();
  RunOptions options;
  options.deadline_ns = 20'000'000;
  const Status status = g.prepared.context.run(options);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  gate.open();
  const Status next = when_free([&] { return g.prepared.context.run(); });
  EXPECT_TRUE(next.ok()) << next.text();
  const auto twice = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(0)), silent(2));
  ASSERT_TRUE(twice.ok() && (*twice)->prepared.context.run().ok());
  EXPECT_NE(g.variables(), before);
  EXPECT_EQ(g.variables(), (*twice)->variables()) << "the updates were made once";
}

// w and v are updated on a device each.
Net two_updates(const std::string& other) {
  NetBuilder b("two");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  const ValueId w = b.variable("w", whole_numbers(Shape{4, 4}, 1, 3)), v = b.variable("v", whole_numbers(Shape{4, 4}, 2, 5));
  const ValueId p = on(b, device_name(0), b.add1("MatMul", "p", {w, x}));
  b.updates(on(b, device_name(0), b.add1("AccumulateAdd", "next_w", {w, p}, {}, "heddle")), w);
  b.updates(on(b, other, b.add1("AccumulateAdd", "next_v", {v, p}, {}, "heddle")), v);
  b.output(p);
  return b.finish();
}

// The first commit has let the updates of its device go.
TEST_P(DeviceTail, AFailureOfAnotherCommitIsSaidToTearVariables) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  HEDDLE_DEVICES_NEEDED(2);
  const DeviceSetting reach("PEERS", "1");
  auto made = prepare(device_runtime(2), two_updates(device_name(1)), silent(2));
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Plan& plan = made->plan();
  ASSERT_EQ(plan.commits, 2u);
  const DeviceSetting faults("FAULTS", "copy@" + std::to_string(plan.graph.tail_begin + 1));
  auto failing = prepare(device_runtime(2), two_updates(device_name(1)), silent(2));
  ASSERT_TRUE(failing.ok()) << failing.status().text();
  const Status status = failing->context.run();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_EQ(failing->context.run().code(), Code::hazard);
}

// Even a busy machine comes to the work that hangs before this deadline.
constexpr int64_t until_it_hangs_ns = 1'000'000'000;

// An update that hangs is aborted in the end, when another may have been made.
TEST_P(DeviceTail, AnUpdateThatIsAbortedIsSaidToTearVariables) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  const DeviceSetting faults("FAULTS", "silent:AccumulateAdd#2");
  auto made = prepare(device_runtime(2), two_updates(device_name(0)), silent(1));
  ASSERT_TRUE(made.ok()) << made.status().text();
  RunOptions options;
  options.deadline_ns = until_it_hangs_ns;
  EXPECT_EQ(made->context.run(options).code(), Code::deadline_exceeded);
  EXPECT_EQ(made->context.run(options).code(), Code::hazard);
}

// A device that reports indices and updates nothing: its report belongs to no update.
TEST_P(DeviceTail, ADeviceThatOnlyReportsIsHeardToo) {
  HEDDLE_DEVICES_NEEDED(2);
  if (kind().has_few_kernels) GTEST_SKIP() << "devices of kind " << kind().name << " have no kernel for Gather";
  const DeviceSetting reach("PEERS", "1");
  NetBuilder b("gathering");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4}), rows = b.input("rows", DType::i64, Shape{4});
  const ValueId table = b.constant("table", whole_numbers(Shape{4, 4}, 1, 3)), v = b.variable("v", whole_numbers(Shape{4, 4}, 2, 5));
  b.variable("w", whole_numbers(Shape{4, 4}, 2, 5));
  const ValueId p = on(b, device_name(0), b.add1("MatMul", "p", {on(b, device_name(0), b.add1("Gather", "picked", {table, rows})), x}));
  b.updates(on(b, device_name(1), b.add1("AccumulateAdd", "next_v", {v, p}, {}, "heddle")), v);
  const auto made = Gathering::make(device_runtime(2), b.finish(), silent(2));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Gathering& g = **made;
  EXPECT_TRUE(g.prepared.plan().joins_tail);
  const auto before = g.variables();
  expect_refusal(g);
  EXPECT_TRUE(g.prepared.context.run().ok());
  EXPECT_NE(g.variables(), before);
}

TEST_P(DeviceTail, AFailureOfAStepBeforeItLeavesVariablesAsTheyWere) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  for (const char* rule : {"late:Gather", "late:MatMul", "silent:MatMul"}) {
    SCOPED_TRACE(rule);
    const auto made = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(0)), silent(3));
    ASSERT_TRUE(made.ok()) << made.status().text();
    const auto before = (*made)->variables();
    const DeviceSetting faults("FAULTS", rule);
    const auto failing = Gathering::make(device_runtime(2), gathering_net(device_name(0), device_name(0)), silent(3));
    ASSERT_TRUE(failing.ok()) << failing.status().text();
    Gathering& g = **failing;
    RunOptions options;
    options.deadline_ns = until_it_hangs_ns;
    const Status status = g.prepared.context.run(options);
    EXPECT_EQ(status.code(), std::string(rule) == "silent:MatMul" ? Code::deadline_exceeded : Code::device_failed) << status.text();
    EXPECT_EQ(g.variables(), before);
    const Status next = when_free([&] { return g.prepared.context.run(); });
    EXPECT_TRUE(next.ok()) << next.text();
  }
}

}  // namespace
}  // namespace heddle

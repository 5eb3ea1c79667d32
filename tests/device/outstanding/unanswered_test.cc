// Devices that never answer: runs end all the same, memory that the device may still access is not reused, and everything recovers once it
// answers.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "device/device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(Unanswered);

// The text of an error about a device that has not answered, up to the name of an operator.
std::string still_runs() {
  return "device \"" + device_name(0) + "\" still runs \"";
}

// Long enough for a run to give the device its work, on a busy machine and under a sanitizer too.
constexpr int64_t soon = 1'000'000'000;

RunOptions within(int64_t ns) {
  RunOptions options;
  options.deadline_ns = ns;
  return options;
}

// Like prepare(), with one run, so that initial work on the device is done.
Result<Prepared> prepared_and_warm(const Runtime& runtime, const Net& net) {
  HEDDLE_TRY(Prepared made, prepare(runtime, net, silent(2)));
  HEDDLE_CHECK(made.context.run());
  return made;
}

void run_until_answered(Prepared& prepared) {
  Status status = prepared.context.run();
  while (status.code() == Code::busy) {
    std::this_thread::yield();
    status = prepared.context.run();
  }
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST_P(Unanswered, ADeadlineEndsTheRunAndTheContextSaysWhatIsStillRun) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  for (const int threads : {1, 2}) {
    const Runtime runtime = device_runtime(threads);
    auto right = prepare(runtime, on_the_host(mixed_net()), silent());
    auto prepared = prepared_and_warm(runtime, mixed_net());
    ASSERT_TRUE(right.ok() && prepared.ok()) << prepared.status().text();
    ASSERT_TRUE(right->context.run().ok());
    for (const int64_t deadline : {int64_t{-1}, int64_t{1}, int64_t{1'000'000}, soon}) {
      gate.close();
      Status status = prepared->context.run(within(deadline));
      EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
      // If the deadline left time to begin, the device has been given work.
      if (deadline == soon) {
        EXPECT_NE(status.text().find(still_runs()), std::string::npos) << status.text();
        status = prepared->context.run();
        EXPECT_EQ(status.code(), Code::busy) << status.text();
        EXPECT_NE(status.text().find(still_runs()), std::string::npos) << status.text();
      }
      gate.open();
      run_until_answered(*prepared);
      EXPECT_EQ(outputs(prepared->context), outputs(right->context));
    }
  }
}

TEST_P(Unanswered, ACancellationEndsTheRun) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  for (const int threads : {1, 2}) {
    const Runtime runtime = device_runtime(threads);
    auto prepared = prepared_and_warm(runtime, mixed_net());
    ASSERT_TRUE(prepared.ok());
    gate.close();
    std::atomic<bool> done{false};
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::nanoseconds(soon));  // by then the device has been given work
      while (!done) {
        prepared->context.cancel();
        std::this_thread::yield();
      }
    });
    const Status status = prepared->context.run();
    EXPECT_EQ(status.code(), Code::cancelled) << status.text();
    EXPECT_NE(status.text().find(still_runs()), std::string::npos) << status.text();
    done = true;
    canceller.join();
    gate.open();
    run_until_answered(*prepared);
  }
}

// Memory that faults when it is accessed after it was freed.
class Region {
 public:
  explicit Region(size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~Region() { ::munmap(data_, bytes_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  void* data() const { return data_; }

 private:
  const size_t bytes_;
  void* data_ = nullptr;
};

TEST_P(Unanswered, TheCallersBuffersAreHisBehindTheRun) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  auto prepared = prepared_and_warm(runtime, mixed_net());
  ASSERT_TRUE(prepared.ok());
  {
    const Region x(4096), y(4096), z(4096);
    std::memcpy(x.data(), prepared->inputs[0]->data, static_cast<size_t>(prepared->inputs[0]->bytes));
    ASSERT_TRUE(prepared->context.bind_input(0, x.data()).ok());
    ASSERT_TRUE(prepared->context.bind_output(0, y.data()).ok() && prepared->context.bind_output(1, z.data()).ok());
    gate.close();
    EXPECT_EQ(prepared->context.run(within(soon)).code(), Code::deadline_exceeded);
  }
  gate.open();
  ASSERT_TRUE(prepared->context.bind_input(0, prepared->inputs[0]->data).ok());
  ASSERT_TRUE(prepared->context.bind_output(0, nullptr).ok() && prepared->context.bind_output(1, nullptr).ok());
  run_until_answered(*prepared);
}

TEST_P(Unanswered, HandlesMayGoAndTheRestStaysUntilTheDeviceAnswers) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  {
    auto prepared = prepared_and_warm(runtime, mixed_net());
    ASSERT_TRUE(prepared.ok());
    gate.close();
    EXPECT_EQ(prepared->context.run(within(soon)).code(), Code::deadline_exceeded);
  }
  // The session's own contexts are tested, too.
  {
    auto prepared = prepare(runtime, on_the_host(mixed_net()), silent());
    ASSERT_TRUE(prepared.ok() && prepared->context.run().ok());
  }
  EXPECT_EQ(Internals::of(runtime).outstanding->kept(), 1u);
  gate.open();
  while (Internals::of(runtime).outstanding->kept() != 0) {
    Runtime(runtime).trim();
    std::this_thread::yield();
  }
}

TEST_P(Unanswered, ARuntimeThatGoesLeavesOutstandingWorkBehindAndSaysSo) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  std::vector<std::string> lines;
  set_log_function(
      [](void* user, int, const char* text, size_t length) { static_cast<std::vector<std::string>*>(user)->emplace_back(text, length); },
      &lines);
  {
    const Runtime runtime = device_runtime(1);
    auto prepared = prepared_and_warm(runtime, mixed_net());
    ASSERT_TRUE(prepared.ok());
    lines.clear();
    gate.close();
    EXPECT_EQ(prepared->context.run(within(soon)).code(), Code::deadline_exceeded);
  }
  set_log_function(nullptr, nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(still_runs()), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("never freed"), std::string::npos) << lines[0];
}

// Other contexts that share the memory cannot use it either.
TEST_P(Unanswered, SharedMemoryIsBusyUntilTheDeviceAnswers) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  HEDDLE_DEVICES_NEEDED(2);
  const Gate gate;
  const Runtime runtime = device_runtime(1);
  auto one = runtime.open(mixed_net(), silent()), two = runtime.open(mixed_net(device_name(1)), silent());
  auto shared = share_memory(one, two);
  ASSERT_TRUE(shared.ok()) << shared.status().text();
  Context *const first = &shared->first, *const second = &shared->second;
  gate.close();
  EXPECT_EQ(first->run(within(soon)).code(), Code::deadline_exceeded);
  const Status status = second->run();
  EXPECT_EQ(status.code(), Code::busy) << status.text();
  EXPECT_NE(status.text().find(still_runs()), std::string::npos) << status.text();
  EXPECT_EQ(two->prepare_on(shared->memory).status().code(), Code::busy);
  gate.open();
  while (second->run().code() == Code::busy) std::this_thread::yield();
  EXPECT_TRUE(second->run().ok());
  EXPECT_TRUE(first->run().ok());
}

// The memory may be shared by contexts of several runtimes, each of which has a list of its own.
TEST_P(Unanswered, MemorySharedByTwoRuntimesIsBusyForBoth) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(1), other = device_runtime(1);
  auto one = runtime.open(mixed_net(), silent()), two = other.open(on_the_host(mixed_net()), silent());
  auto shared = share_memory(one, two);
  ASSERT_TRUE(shared.ok()) << shared.status().text();
  Context *const first = &shared->first, *const second = &shared->second;
  gate.close();
  EXPECT_EQ(first->run(within(soon)).code(), Code::deadline_exceeded);
  for (int i = 0; i < 2; ++i) {
    const Status status = second->run();
    EXPECT_EQ(status.code(), Code::busy) << status.text();
    EXPECT_NE(status.text().find(still_runs()), std::string::npos) << status.text();
  }
  gate.open();
  while (second->run().code() == Code::busy) std::this_thread::yield();
  EXPECT_TRUE(second->run().ok());
  EXPECT_TRUE(first->run().ok());
}

// w += x on the device.
Net counting_net() {
  NetBuilder b("counting");
  const float zeros[4] = {0, 0, 0, 0};
  const ValueId w = b.variable("w", Blob::copy_of(DType::f32, Shape{4}, zeros));
  const ValueId x = b.input("x", DType::f32, Shape{4});
  const ValueId next = on(b, device_name(0), b.add1("AccumulateAdd", "count", {w, x}, {}, "heddle"));
  b.updates(next, w);
  return b.finish();
}

TEST_P(Unanswered, VariablesThatTheDeviceMayStillWriteAreNobodyElses) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(1);
  SessionOptions early = silent();
  early.commit_late = false;
  auto prepared = prepare(runtime, counting_net(), early);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  ASSERT_TRUE(prepared->context.run().ok());
  gate.close();
  EXPECT_EQ(prepared->context.run(within(soon)).code(), Code::deadline_exceeded);
  const Status read = prepared->session.read_variable("w").status();
  EXPECT_EQ(read.code(), Code::busy) << read.text();
  EXPECT_EQ(prepared->context.run().code(), Code::busy);
  gate.open();
  Status status = prepared->context.run();
  while (status.code() == Code::busy) {
    std::this_thread::yield();
    status = prepared->context.run();
  }
  EXPECT_EQ(status.code(), Code::hazard) << status.text();  // torn
  float ones[4] = {1, 1, 1, 1};
  ASSERT_TRUE(prepared->session.write_variable("w", {DType::f32, Shape{4}, ones}).ok());
  EXPECT_TRUE(prepared->context.run().ok());
}

// Copies between the host's and the device's bytes of a variable wait for the device as well.
TEST_P(Unanswered, ReadingAVariableThatLivesThereMeetsItsDeadline) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(1);
  auto prepared = prepare(runtime, counting_net(), silent());
  ASSERT_TRUE(prepared.ok() && prepared->context.run().ok());
  gate.close();
  EXPECT_EQ(prepared->session.read_variable("w", within(1'000'000)).status().code(), Code::deadline_exceeded);
  EXPECT_EQ(prepared->session.read_variable("w", within(1'000'000)).status().code(), Code::busy);
  gate.open();
  auto w = prepared->session.read_variable("w");
  while (w.status().code() == Code::busy) {
    std::this_thread::yield();
    w = prepared->session.read_variable("w");
  }
  ASSERT_TRUE(w.ok()) << w.status().text();
  EXPECT_EQ(std::memcmp(w->data(), prepared->inputs[0]->data, 16), 0);
}

// The plan of a first run uploads constants: the run's deadline covers that, too.
TEST_P(Unanswered, UploadsForANewPlanMeetTheDeadlineOfTheRun) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(1);
  auto session = runtime.open(mixed_net(), silent());
  ASSERT_TRUE(session.ok());
  const auto inputs = inputs_of(*session);
  gate.close();
  EXPECT_EQ(session->run({view(*inputs[0])}, within(50'000'000)).status().code(), Code::deadline_exceeded);
  gate.open();
  auto results = session->run({view(*inputs[0])});
  while (results.status().code() == Code::busy) {
    std::this_thread::yield();
    results = session->run({view(*inputs[0])});
  }
  EXPECT_TRUE(results.ok()) << results.status().text();
}

// Memory kept by an abandoned copy is freed once the device has answered: the variables that it read from hold their device.
TEST_P(Unanswered, AGivenUpCopyKeepsNothingForGood) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  Runtime runtime = device_runtime(1);
  {
    auto prepared = prepare(runtime, counting_net(), silent());
    ASSERT_TRUE(prepared.ok() && prepared->context.run().ok());
    gate.close();
    EXPECT_EQ(prepared->session.read_variable("w", within(1'000'000)).status().code(), Code::deadline_exceeded);
  }
  gate.open();
  // The copy completes some time from now; then only the runtime and this test hold the device.
  const auto device = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), device_name(0));
  ASSERT_TRUE(device.ok());
  while (device->use_count() > 2) {
    runtime.trim();
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace heddle

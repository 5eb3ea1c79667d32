// Thousands of runs, failures and sessions leak nothing, on the device or in the process.
#include <malloc.h>

#include <array>
#include <future>
#include <numeric>
#include <thread>

#include "lstm_loop.h"
#include "simulated.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceSteady);

const Plan& plan_of(Context& context) {
  return Internals::execution(context).plan();
}

int64_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

// Resources that are held now by the process, a context and its device.
struct Held {
  int64_t heap = 0, threads = 0, descriptors = 0, free = 0, on_host = 0, on_device = 0;
  sim_counts counts = {};
};

Held held(Context& context) {
  Held now;
  const struct mallinfo2 heap = ::mallinfo2();
  now.heap = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  now.threads = entries("/proc/self/task");
  now.descriptors = entries("/proc/self/fd");
  int64_t total = 0;
  EXPECT_TRUE(plan_of(context).devices[0].device->memory_info(&now.free, &total).ok());
  now.on_host = context.held_bytes(0);
  now.on_device = context.held_bytes(1);
  now.counts = counts(*plan_of(context).devices[0].device);
  return now;
}

constexpr int64_t half_a_block = 16;  // half of the smallest block that malloc gives

// `times`: how often heap memory was allocated and freed, or something may have been created once, as oneTBB does. malloc counts memory
// that it caches for the thread that freed it; half a block each time is less than one leaked block each time.
void expect_as_before(const Held& now, const Held& before, int times) {
  EXPECT_LE(now.heap, before.heap + times * half_a_block);
  EXPECT_EQ(now.threads, before.threads);
  EXPECT_EQ(now.descriptors, before.descriptors);
  EXPECT_EQ(now.free, before.free);
  EXPECT_EQ(now.on_host, before.on_host);
  EXPECT_EQ(now.on_device, before.on_device);
  EXPECT_EQ(now.counts.streams, before.counts.streams);
  EXPECT_EQ(now.counts.events, before.counts.events);
}

// Prepares a diamond with copies, or a loop on the device.
Result<Prepared> prepare_either(const Runtime& runtime, bool loops) {
  SessionOptions options = silent(2);
  if (!loops) return prepare(runtime, mixed_net(), options);
  options.device = device_name(0);
  return prepare(runtime, lstm_loop(2), options);
}

// On a busy machine a thread may join late, and malloc then gives it memory once: one stretch of runs without that is required. A leak of
// one run in a hundred shows in every stretch.
TEST_P(DeviceSteady, TenThousandRunsLeaveNothingBehind) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  constexpr int runs = 5000;
  for (const bool loops : {false, true}) {
    auto prepared = prepare_either(device_runtime(2), loops);
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    Context& context = prepared->context;
    for (int run = 1; run <= 50; ++run) ASSERT_TRUE(context.run().ok());
    const std::vector<std::vector<char>> right = outputs(context);
    Held before, now = held(context);
    for (int stretch = 0; stretch < 3; ++stretch) {
      before = now;
      for (int run = 1; run <= runs; ++run) {
        ASSERT_TRUE(context.run().ok());
        EXPECT_TRUE(run % 1000 != 0 || outputs(context) == right) << "run " << run;
      }
      now = held(context);
      if (now.heap <= before.heap + runs / 100 * half_a_block && now.threads == before.threads) break;
    }
    expect_as_before(now, before, runs / 100);
    EXPECT_EQ(now.counts.allocations, before.counts.allocations);
  }
}

// Cancels the run when the device has reached the work that never ends: no deadline can be chosen for that.
Status run_into_silence(Context& context) {
  const auto silences = [&] { return counted(plan_of(context), &sim_counts::silences); };
  const uint64_t before = silences();
  std::promise<Status> over;
  HEDDLE_CHECK(context.run_async([&](Status status) { over.set_value(std::move(status)); }));
  while (silences() == before) std::this_thread::yield();
  context.cancel();
  return over.get_future().get();
}

// Each hundredth run ends with an error: of a kernel, of a launch, or because the device does not finish and the run is cancelled.
TEST_P(DeviceSteady, RunsThatFailLeaveNothingBehind) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  constexpr int warm_up = 1050,
                runs = 4150;  // ten runs that fail, until malloc has cached the blocks that their threads pass to each other
  for (const std::string kind : {"late", "enqueue", "silent"}) {
    SCOPED_TRACE(kind);
    std::string rules;
    for (int run = 100; run <= runs; run += 100) rules += (run > 100 ? "," : "") + kind + "@1#" + std::to_string(run);
    const DeviceSetting faults("FAULTS", rules);
    auto prepared = prepare_either(device_runtime(2), false);
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    ASSERT_EQ(prepared->plan().steps[1].name, "a");
    Context& context = prepared->context;
    std::vector<std::vector<char>> right;
    Held before;
    for (int run = 1; run <= runs; ++run) {
      const bool fails = run % 100 == 0;
      const Status status = fails && kind == "silent" ? run_into_silence(context) : context.run();
      ASSERT_EQ(status.ok(), !fails) << "run " << run << ": " << status.text();
      if (run == 1) right = outputs(context);
      EXPECT_TRUE(run % 1000 != 1 || outputs(context) == right) << "run " << run;
      if (run <= warm_up) before = held(context);
    }
    expect_as_before(held(context), before, (runs - warm_up) / 100);
  }
}

// malloc fills its cache for each thread once, whenever that thread first takes part. A leak grows in every stretch.
TEST_P(DeviceSteady, SessionsThatComeAndGoLeaveNothingBehind) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  constexpr int rounds = 300;
  const Runtime runtime = device_runtime(2);
  Held before, now;
  for (int stretch = 0; stretch <= 10; ++stretch) {
    before = now;
    for (int round = 1; round <= rounds; ++round) {
      auto prepared = prepare_either(runtime, round % 2 == 0);
      ASSERT_TRUE(prepared.ok() && prepared->context.run().ok());
      if (round == rounds) now = held(prepared->context);
    }
    if (stretch > 0 && now.heap <= before.heap + rounds * half_a_block) break;
  }
  expect_as_before(now, before, rounds);
}

// The numbers of streams by class, then of events.
using Queues = std::array<uint64_t, HEDDLE_STREAM_FROM_DEVICE + 2>;

Queues queues_of(Context& context) {
  const PlanDevice& device = plan_of(context).devices[0];
  Queues queues = {};
  for (const int32_t stream_class : device.stream_classes) ++queues[static_cast<size_t>(stream_class)];
  queues.back() = device.events;
  return queues;
}

void expect_queues(const Device& device, const sim_counts& before, const Queues& queues) {
  EXPECT_EQ(counts(device).streams - before.streams, std::accumulate(queues.begin(), queues.end() - 1, uint64_t{0}));
  EXPECT_EQ(counts(device).events - before.events, queues.back());
}

TEST_P(DeviceSteady, StreamsAndEventsBelongToTheMemoryThatContextsShare) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  Runtime runtime = device_runtime(2);
  std::vector<Session> sessions;
  std::shared_ptr<Device> device;
  for (const int streams : {1, 3}) {
    auto prepared = prepare(runtime, mixed_net(), silent(streams));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    device = prepared->plan().devices[0].device;
    sessions.push_back(prepared->session);
  }
  runtime.trim(0);
  const sim_counts before = counts(*device);  // constants were copied on these streams
  const std::vector<std::shared_ptr<const Blob>> inputs = inputs_of(sessions[0]);
  for (const bool shares : {true, false}) {
    const SharedMemory memory;
    std::vector<Context> contexts;
    Queues queues = {};
    for (const int i : {0, 1, 0, 1, 1}) {
      Session& session = sessions[static_cast<size_t>(i)];
      auto context = shares ? session.prepare_on(memory) : session.prepare();
      ASSERT_TRUE(context.ok()) << context.status().text();
      ASSERT_TRUE(context->bind_input(0, inputs[0]->data).ok() && context->run().ok());
      const Queues own = queues_of(*context);
      for (size_t k = 0; k < own.size(); ++k) queues[k] = shares ? std::max(queues[k], own[k]) : queues[k] + own[k];
      expect_queues(*device, before, queues);
      contexts.push_back(std::move(*context));
    }
    contexts.clear();
    runtime.trim(0);
    if (shares) expect_queues(*device, before, queues);  // the memory still exists
  }
  expect_queues(*device, before, {});
}

}  // namespace
}  // namespace heddle

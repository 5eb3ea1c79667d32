// Guarantees for a stream: calls for it never overlap, and the completion of its work is requested where the work is enqueued.
#include <algorithm>

#include "device_support.h"
#include "run/device/stream_state.h"
#include "state_tables.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceStreams);

// Each link of the chain is copied to the host: the stream has work and notifications in turns, and threads that could make them at once.
Net fenced_chains(int chains, int links) {
  NetBuilder b("fenced_chains");
  const Shape shape{16};
  const ValueId x = b.input("x", DType::f32, shape);
  for (int c = 0; c < chains; ++c) {
    ValueId v = x;
    for (int i = 0; i < links; ++i) {
      const std::string name = std::to_string(c) + "_" + std::to_string(i);
      v = on(b, device_name(0), b.add1("Add", "add" + name, {v, x}));
      b.output(b.add1("Neg", "neg" + name, {v}));
    }
  }
  return b.finish();
}

// A device may refuse a call for a stream while another thread is in a call for the same stream.
TEST_P(DeviceStreams, CallsForOneStreamNeverOverlap) {
  const DeviceSetting delays("SEED", "11");
  const Runtime runtime = device_runtime(4);
  for (int streams = 1; streams <= 3; ++streams)
    for (const Net& net : {fenced_chains(1, 24), fenced_chains(4, 8), mixed_net()}) {
      for (uint64_t shuffle = 0; shuffle <= 8; ++shuffle) {
        // One session each, because contexts are reused.
        auto session = runtime.open(Net(net), silent(streams));
        ASSERT_TRUE(session.ok()) << session.status().text();
        Internals::of(*session).scheduler.shuffle_seed = shuffle;
        const auto inputs = inputs_of(*session);
        auto context = session->prepare();
        ASSERT_TRUE(context.ok()) << context.status().text();
        for (size_t i = 0; i < inputs.size(); ++i) ASSERT_TRUE(context->bind_input(i, inputs[i]->data).ok());
        for (int run = 0; run < 4; ++run) {
          const Status status = context->run();
          ASSERT_TRUE(status.ok()) << status.text() << ", " << streams << " streams, shuffle " << shuffle;
        }
      }
    }
}

// A stream with a value for the host, followed by much work that waits for the host's result.
TEST_P(DeviceStreams, TheHostIsToldBeforeTheStreamIsDone) {
  HEDDLE_DEVICE_NEEDS(has_gates);
  NetBuilder b("told");
  const ValueId x = b.input("x", DType::f32, Shape{16});
  const ValueId made = on(b, device_name(0), b.add1("Relu", "made", {x}));
  b.output(b.add1("Open", "opened", {made}, {}, kind().name));
  ValueId v = on(b, device_name(0), b.add1("Gate", "gate", {made}, {}, kind().name));
  for (int i = 0; i < 30; ++i) v = on(b, device_name(0), b.add1("Add", "behind" + std::to_string(i), {v, v}));
  b.output(v);
  const Net net = b.finish();
  for (const int threads : {1, 2}) {
    const Runtime runtime = device_runtime(threads);
    // This must hold in every legal schedule, not only if the requesting step happens to come first.
    for (uint64_t shuffle = 0; shuffle <= 6; ++shuffle) {
      auto session = runtime.open(Net(net), silent());
      ASSERT_TRUE(session.ok()) << session.status().text();
      Internals::of(*session).scheduler.shuffle_seed = shuffle;
      const auto inputs = inputs_of(*session);
      auto context = session->prepare();
      ASSERT_TRUE(context.ok()) << context.status().text();
      ASSERT_TRUE(context->bind_input(0, inputs[0]->data).ok());
      // On the one stream the copy must come before the gate, otherwise the run could not continue.
      const std::vector<PlanStep>& steps = Internals::execution(*context).plan().steps;
      const auto at = [&](const auto& is) { return std::find_if(steps.begin(), steps.end(), is) - steps.begin(); };
      ASSERT_LT(at([](const PlanStep& s) { return s.on_device && s.on_device->copy_kind == HEDDLE_COPY_DEVICE_TO_HOST; }),
                at([](const PlanStep& s) { return s.type == "Gate"; }));
      for (int run = 0; run < 3; ++run) {
        const Status status = context->run();
        ASSERT_TRUE(status.ok()) << status.text() << ", " << threads << " threads, shuffle " << shuffle;
      }
    }
  }
}

// ---------------------------------------------------------------- the table of states of a stream (run/device/stream_state.h)

HEDDLE_DEVICE_SUITE(StreamStates);

// Every row is taken by runs of real nets, every other event is refused.
TEST_P(StreamStates, EveryTransitionIsTaken) {
  HEDDLE_DEVICE_NEEDS(has_faults());
  HEDDLE_NEEDS_ASSERTIONS();
  const RowsTaken<StreamRules> taken;
  const FaultyStep faulty(FaultyStep::When::later, 1);
  NetBuilder b("faulty");
  b.output(on(b, device_name(0), b.add1("Relu", "last", {faulty.add(b, b.input("x", DType::f32, Shape{32}))})));
  const Runtime runtime = device_runtime(1);
  auto prepared = prepare(runtime, b.finish(), silent(1));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  EXPECT_EQ(prepared->context.run().code(), Code::device_failed);  // drained
  for (int run = 0; run < 2; ++run) EXPECT_TRUE(prepared->context.run().ok());
  const StepObserver observer = [](StepView&) { return Status(); };
  RunOptions observed;
  observed.observer = &observer;
  EXPECT_TRUE(prepared->context.run(observed).ok());
  EXPECT_EQ(taken.missing(), "");
}

TEST(StreamStateTable, OtherEventsAreRefused) {
  expect_only_its_rows<StreamRules>();
}

}  // namespace
}  // namespace heddle

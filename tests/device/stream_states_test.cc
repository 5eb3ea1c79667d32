// The table of states of a stream (run/device/stream_state.h): every row is taken by runs of real nets, every other event is refused.
#include "device_support.h"
#include "run/device/stream_state.h"
#include "state_tables.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(StreamStates);

TEST_P(StreamStates, EveryTransitionIsTaken) {
  HEDDLE_DEVICE_NEEDS(has_faults());
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

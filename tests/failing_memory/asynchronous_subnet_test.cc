// A subnet with an asynchronous step, in an operator that may suspend: with each allocation of the context's first run failing in turn, the
// run fails or is right, and the next run is right.
#include <gtest/gtest.h>

#include "failing_allocations.h"
#include "plugin/started_crew.h"

namespace heddle::testing_memory {
namespace {

using testing_nets::subnet;

Net net_of(Crew& crew) {
  const Shape eight{8};
  NetBuilder first("first"), second("second"), b("outer");
  first.output(started(first, "inside", {first.input("x", DType::f32, eight)}, crew, 0));
  second.output(second.add1("Neg", "neg", {second.input("x", DType::f32, eight)}));
  b.output(b.add1("Careless", "careless", {b.input("x", DType::f32, eight)},
                  {{"mistake", int64_t{0}}, {"first", subnet(first)}, {"second", subnet(second)}}, "started"));
  return b.finish();
}

TEST(FailingMemoryOfAsynchronousSubnets, LeavesTheContextUsable) {
  const std::vector<float> x(8, 1);
  for (const int threads : {1, 2}) {
    const Runtime runtime = runtime_on(nullptr, threads);
    note_libraries();
    bool failed = true;
    for (int64_t n = 1; failed; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      Crew crew(17);
      Session session = testing_nets::open(runtime, net_of(crew));
      auto context = session.prepare();
      ASSERT_TRUE(context.ok()) << context.status().text();
      ASSERT_TRUE(context->bind_input(0, x.data()).ok());
      FailingAllocation failing(n);
      const Status first = context->run();
      failed = failing.stop();
      EXPECT_TRUE(first.ok() || (failed && first.code() == Code::out_of_memory)) << first.text();
      const Status next = context->run();
      ASSERT_TRUE(next.ok()) << next.text();
      EXPECT_EQ(static_cast<const float*>(context->output(0).data)[1], 1);
      ASSERT_LT(n, 1000);
    }
  }
}

}  // namespace
}  // namespace heddle::testing_memory

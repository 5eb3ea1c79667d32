// The order that a plan for several threads has for memory's sake: what it saves in training, and what a memory limit makes of it.
#include <gtest/gtest.h>

#include "heddle/training.h"
#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

// Blocks of MatMul and Sigmoid: each activation is needed by the gradient of a weight, which no other step waits for.
Result<Session> open_chain(const Runtime& runtime, const SessionOptions& how = {}) {
  constexpr int64_t rows = 1024, width = 256;
  NetBuilder b("chain");
  ValueId x = b.input("x", DType::f32, Shape{rows, width});
  for (int i = 0; i < 16; ++i) {
    const std::string number = std::to_string(i);
    x = b.add1("Sigmoid", "s" + number,
               {b.add1("MatMul", "m" + number, {x, b.variable("w" + number, DType::f32, Shape{width, width}, "constant(0.01)", true)})});
  }
  b.output(b.add1("ReduceMean", "loss", {x}, {{"keepdims", int64_t{0}}}));
  std::vector<Net> one;
  one.push_back(b.finish());
  HEDDLE_TRY(Nets nets, Nets::of(std::move(one)));
  TrainingOptions options;
  options.losses = {"loss"};
  HEDDLE_CHECK(nets.add_training(runtime, "chain", options, "train"));
  HEDDLE_TRY(const Session session, runtime.open(nets, how));
  return session.net("train");
}

const PlanInfo& planned(const Result<std::shared_ptr<const PlanInfo>>& plan) {
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  static const PlanInfo none;
  return plan.ok() ? **plan : none;
}

constexpr int64_t mib = int64_t{1} << 20;

TEST(MemoryOrder, TrainingOnTwoThreadsKeepsFewActivationsMoreThanOnOne) {
  auto one = open_chain(testing_nets::runtime(1)), two = open_chain(testing_nets::runtime(2));
  ASSERT_TRUE(one.ok() && two.ok()) << one.status().text() << two.status().text();
  const auto serial = one->plan(), parallel = two->plan();
  const PlanInfo::MemoryOrder& none = planned(serial).memory_order;
  EXPECT_EQ(none.lag, 0u);
  const PlanInfo::MemoryOrder& order = planned(parallel).memory_order;
  EXPECT_GT(order.lag, 0u);
  EXPECT_GT(order.edges, 0u);
  EXPECT_LE(order.length_ns, 1.01 * order.length_without_ns);
  EXPECT_GT(order.arena_bytes_without, 30 * mib);
  EXPECT_LE(order.arena_bytes, 22 * mib);
  EXPECT_LE(planned(parallel).memory[0].peak_bytes, 22 * mib);
  EXPECT_EQ(order.arena_bytes, planned(parallel).memory[0].arena_bytes);
  EXPECT_LE(order.arena_bytes, planned(serial).memory[0].arena_bytes + 3 * mib);
}

// A limit between the memory of both orders makes the lag smaller; one below what any order needs is an error.
TEST(MemoryOrder, AMemoryLimitMakesTheLagSmaller) {
  const Runtime runtime = testing_nets::runtime(2);
  auto wide = open_chain(runtime);
  ASSERT_TRUE(wide.ok()) << wide.status().text();
  const auto free = wide->plan();
  const PlanInfo::MemoryOrder order = planned(free).memory_order;
  SessionOptions limited;
  limited.memory_limit = planned(free).memory[0].peak_bytes - 1;
  auto narrow = open_chain(runtime, limited);
  ASSERT_TRUE(narrow.ok()) << narrow.status().text();
  const auto tight = narrow->plan();
  EXPECT_LT(planned(tight).memory_order.lag, order.lag);
  EXPECT_GT(planned(tight).memory_order.lag, 0u);
  EXPECT_LE(planned(tight).memory[0].peak_bytes, limited.memory_limit);
  limited.memory_limit = 4 * mib;
  auto impossible = open_chain(runtime, limited);
  const Status status = impossible.ok() ? impossible->plan().status() : impossible.status();
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
}

}  // namespace
}  // namespace heddle

// Features of the boundary beyond plain operators (tests/plugins/boundary.cc), run in sessions.
#include <gtest/gtest.h>

#include <cstring>

#include "heddle/session.h"
#include "plugins.h"
#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

using testing_nets::blob;
using testing_nets::view;

class Boundary : public ::testing::Test {
 protected:
  Session open(Net net, const SessionOptions& session_options = {}) {
    RuntimeOptions options;
    options.default_plugins = false;
    options.threads = 2;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", test_plugin("boundary")};
    auto runtime = Runtime::create(options);
    EXPECT_TRUE(runtime.ok()) << runtime.status().text();
    auto session = runtime->open(std::move(net), session_options);
    EXPECT_TRUE(session.ok()) << session.status().text();
    return *session;
  }
  static std::vector<float> numbers(const Tensor& t) {
    const auto* data = static_cast<const float*>(t.data());
    return {data, data + t.shape().element_count()};
  }
};

TEST_F(Boundary, ContextsAreCopiedAndUsedOnOtherThreads) {
  NetBuilder b("foreign");
  b.output(b.add1("Foreign", "y", {b.input("x", DType::f32, Shape{4})}, {}, "boundary"));
  Session session = open(b.finish());
  std::vector<float> x = {1, 2, 3, 4};
  auto y = session.run({view(x.data(), DType::f32, Shape{4})});
  ASSERT_TRUE(y.ok()) << y.status().text();
  EXPECT_EQ(numbers((*y)[0]), x);
  x[2] = -1;
  y = session.run({view(x.data(), DType::f32, Shape{4})});
  EXPECT_EQ(y.status().code(), Code::kernel_failed);
  EXPECT_NE(y.status().text().find("a negative number, said the other thread"), std::string::npos) << y.status().text();
  EXPECT_EQ(y.status().diagnostic().node, "y");
}

// The variables w0 and w1 are updated with their gradients.
Net many_updates() {
  NetBuilder b("updates");
  const ValueId rate = b.input("rate", DType::f32, Shape{});
  const ValueId g0 = b.input("g0", DType::f32, Shape{2}), g1 = b.input("g1", DType::f32, Shape{3});
  const ValueId w0 = b.variable("w0", blob(Shape{2}, 10, 0)), w1 = b.variable("w1", blob(Shape{3}, 20, 0));
  const std::vector<ValueId> next = b.add("SgdUpdates", "update", {rate, w0, w1, g0, g1}, 2, {}, "boundary");
  b.updates(next[0], w0);
  b.updates(next[1], w1);
  b.output(next[1]);
  return b.finish();
}

TEST_F(Boundary, TheKthOutputUpdatesTheKthVariable) {
  Session session = open(many_updates());
  const float rate = 2, g0[] = {1, 2}, g1[] = {1, 0, -1};
  for (int step = 1; step <= 2; ++step) {
    const auto out = session.run({view(&rate, DType::f32, Shape{}), view(g0, DType::f32, Shape{2}), view(g1, DType::f32, Shape{3})});
    ASSERT_TRUE(out.ok()) << out.status().text();
    const auto s = static_cast<float>(2 * step);
    EXPECT_EQ(numbers(*session.read_variable("w0")), (std::vector<float>{10 - s, 10 - 2 * s}));
    EXPECT_EQ(numbers(*session.read_variable("w1")), (std::vector<float>{20 - s, 20, 20 + s}));
    EXPECT_EQ(numbers((*out)[0]), (std::vector<float>{20 - s, 20, 20 + s}));
  }
}

TEST_F(Boundary, EveryOutputMayTakeTheBytesOfItsInput) {
  NetBuilder b("both");
  const ValueId x = b.input("x", DType::f32, Shape{256});
  const ValueId a = b.add1("Neg", "a", {x}), c = b.add1("Abs", "c", {x});
  for (const ValueId y : b.add("Both", "both", {a, c}, 2, {}, "boundary")) b.output(y);
  Session session = open(b.finish());
  std::vector<float> values(256, -3);
  const auto out = session.run({view(values.data(), DType::f32, Shape{256})});
  ASSERT_TRUE(out.ok()) << out.status().text();
  EXPECT_EQ(numbers((*out)[0]), std::vector<float>(256, 4));
  EXPECT_EQ(numbers((*out)[1]), std::vector<float>(256, 4));
  const auto plan = session.plan({{DType::f32, Shape{256}, nullptr}});
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  for (const PlanInfo::Step& step : (*plan)->steps) {
    if (step.name != "both") continue;
    for (size_t k = 0; k < 2; ++k)
      EXPECT_EQ((*plan)->values[*step.inputs[k].value].buffer, (*plan)->values[*step.outputs[k].value].buffer) << k;
  }
}

TEST_F(Boundary, AKernelKeepsWithinTheBudgetOfScratch) {
  const auto algorithm = [&](int64_t limit) {
    NetBuilder b("budgeted");
    b.output(b.add1("Budgeted", "y", {b.input("x", DType::f32, Shape{1024})}, {}, "boundary"));
    SessionOptions options;
    options.memory_limit = limit;
    Session session = open(b.finish(), options);
    std::vector<float> x(1024);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const auto y = session.run({view(x.data(), DType::f32, Shape{1024})});
    EXPECT_TRUE(y.ok()) << y.status().text();
    if (!y.ok()) return 0.0F;
    const std::vector<float> got = numbers((*y)[0]);
    EXPECT_TRUE(std::equal(x.rbegin(), x.rend(), got.begin() + 1));
    return got[0];
  };
  EXPECT_EQ(algorithm(INT64_MAX), 1);
  EXPECT_EQ(algorithm(4200), 2) << "the output alone takes 4100 bytes";
}

// Rows of Dropout by trip, in the order in which the operator runs them.
TEST_F(Boundary, ATripDrawsTheSameNumbersInAnyOrder) {
  NetBuilder body("body"), b("outer");
  const ValueId x = body.input("x", DType::f32, Shape{64});
  body.output(body.add("Dropout", "dropped", {x, body.constant_float("ratio", 0.5F), testing_nets::yes(body)}, 1)[0]);
  const std::shared_ptr<const Net> net = testing_nets::subnet(body);
  const ValueId order = b.input("order", DType::i64, Shape{4}), in = b.input("x", DType::f32, Shape{64});
  b.output(b.add1("Trips", "first", {order, in}, {{"body", net}}, "boundary"));
  b.output(b.add1("Trips", "second", {order, in}, {{"body", net}}, "boundary"));
  Session session = open(b.finish());
  const std::vector<float> ones(64, 1);
  const auto rows = [&](const std::vector<int64_t>& trips) {
    const auto out = session.run({view(trips.data(), DType::i64, Shape{4}), view(ones.data(), DType::f32, Shape{64})});
    EXPECT_TRUE(out.ok()) << out.status().text();
    std::vector<std::vector<float>> made;
    for (const Tensor& t : *out)
      for (int64_t i = 0; i < 4; ++i) {
        const auto* row = static_cast<const float*>(t.data()) + i * 64;
        made.emplace_back(row, row + 64);
      }
    return made;
  };
  const auto forward = rows({0, 1, 2, 3}), backward = rows({3, 2, 1, 0}), again = rows({2, 2, 0, 2});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(forward[i], backward[3 - i]) << i;
    for (size_t k = 0; k < i; ++k) EXPECT_NE(forward[i], forward[k]) << i << " and " << k;
    EXPECT_NE(forward[i], forward[4 + i]) << "another operator draws other numbers";
  }
  EXPECT_EQ(again[0], forward[2]);
  EXPECT_EQ(again[1], forward[2]);
  EXPECT_EQ(again[2], forward[0]);
}

}  // namespace
}  // namespace heddle

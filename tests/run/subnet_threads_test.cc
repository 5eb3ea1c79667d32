// Subnets on the threads of the run around them: the same bits for any number, and threads that really help.
#include <gtest/gtest.h>

#include <cstring>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr int64_t side = 192;

// x -> a layer of wide work, twice.
ValueId layers(NetBuilder& b, ValueId x) {
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    const ValueId left = b.add1("MatMul", "left" + n, {x, b.constant("wl" + n, blob(Shape{side, side}, -0.01F, 0.0002F))});
    const ValueId right = b.add1("MatMul", "right" + n, {x, b.constant("wr" + n, blob(Shape{side, side}, 0.01F, -0.0002F))});
    x = b.add1("Softmax", "soft" + n, {b.add1("Add", "sum" + n, {b.add1("Tanh", "tl" + n, {left}), b.add1("Exp", "el" + n, {right})})});
  }
  return x;
}

Net branches() {
  NetBuilder then_branch("then"), else_branch("else"), b("branches");
  then_branch.output(layers(then_branch, then_branch.input("x", DType::f32, Shape{side, side})));
  else_branch.output(else_branch.add1("Neg", "neg", {else_branch.input("x", DType::f32, Shape{side, side})}));
  const ValueId c = b.input("c", DType::boolean, Shape{}), x = b.input("x", DType::f32, Shape{side, side});
  const ValueId first = b.add1("If", "first", {c, x}, {{"then_branch", subnet(then_branch)}, {"else_branch", subnet(else_branch)}});
  b.output(layers(b, first));
  return b.finish();
}

Net loop() {
  NetBuilder body("body"), b("loop");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  body.output(layers(body, body.input("x", DType::f32, Shape{side, side})));
  const int64_t count = 3;
  const ValueId c = b.input("c", DType::boolean, Shape{}), x = b.input("x", DType::f32, Shape{side, side});
  b.output(b.add("Loop", "loop", {b.constant("turns", Blob::copy_of(DType::i64, Shape{}, &count)), c, x}, 1, {{"body", subnet(body)}})[0]);
  return b.finish();
}

std::vector<char> bytes_of(Context& context) {
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  if (!status.ok()) return {};
  const TensorView y = context.output(0);
  const auto* data = static_cast<const char*>(y.data);
  return {data, data + y.byte_size()};
}

class SubnetThreads : public testing::TestWithParam<bool> {
 protected:
  static Net net() { return GetParam() ? loop() : branches(); }
};

TEST_P(SubnetThreads, AnyNumberInAnyOrderGivesTheSameBits) {
  std::vector<float> x(side * side);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 31) * 0.03F - 0.4F;
  const bool condition = true;
  std::vector<char> expected;
  for (const int threads : {1, 2, 3, 8}) {
    const Runtime each = runtime(threads);
    for (uint64_t shuffle = 0; shuffle <= (threads == 1 ? 0u : 70u); ++shuffle) {
      Session session = open(each, net());
      Internals::of(session).scheduler.shuffle_seed = shuffle;
      if (shuffle == 0 && threads > 1) Internals::of(session).scheduler.mode = ScheduleMode::parallel;
      auto context = session.prepare();
      ASSERT_TRUE(context.ok()) << context.status().text();
      ASSERT_TRUE(context->bind_input(0, &condition).ok());
      ASSERT_TRUE(context->bind_input(1, x.data()).ok());
      for (int run = 0; run < 3; ++run) {
        const std::vector<char> got = bytes_of(*context);
        if (expected.empty()) expected = got;
        ASSERT_EQ(got, expected) << threads << " threads, shuffle " << shuffle << ", run " << run;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, SubnetThreads, testing::Bool(), [](const auto& net) { return net.param ? "Loop" : "If"; });

}  // namespace
}  // namespace heddle

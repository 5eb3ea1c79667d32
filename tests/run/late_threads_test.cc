// Late steps on all threads: the same bits for any number of them and in any order, and steps that are run in one call.
#include <gtest/gtest.h>

#include <cstring>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr int64_t side = 160;

// The positions where x is not 0, as numbers, and much work on those; how many there are is unknown before the run.
Net wide_behind_nonzero() {
  NetBuilder b("wide");
  const ValueId x = b.input("x", DType::f32, Shape{side, side});
  const ValueId found = b.add1("NonZero", "found", {x});
  const ValueId where = b.add1("Cast", "where", {found}, {{"to", int64_t{1}}});
  const ValueId small = b.add1("Mul", "small", {where, b.constant_float("scale", 0.01F)});
  const ValueId turned = b.add1("Transpose", "turned", {small});
  const ValueId product = b.add1("MatMul", "product", {turned, b.constant("w", blob(Shape{2, 96}, -1.5F, 0.03F))});
  const ValueId soft = b.add1("Softmax", "soft", {product});
  b.output(b.add1("ReduceSum", "sums", {soft, b.constant_ints("axes", {1})}));
  b.output(b.add1("Tanh", "tanh", {product}));
  return b.finish();
}

std::vector<float> field(uint32_t every) {
  std::vector<float> x(side * side, 0);
  for (uint32_t i = 0; i < x.size(); ++i)
    if ((i * 2654435761u >> 8) % every != 0) x[i] = static_cast<float>(i % 7 + 1);
  return x;
}

TEST(LateThreads, AnyNumberInAnyOrderGivesTheSameBits) {
  std::vector<std::vector<std::vector<char>>> expected;
  for (const int threads : {1, 2, 3, 8}) {
    const Runtime each = runtime(threads);
    for (uint64_t shuffle = 0; shuffle <= (threads == 1 ? 0u : 70u); ++shuffle) {
      Session session = open(each, wide_behind_nonzero());
      Internals::of(session).scheduler.shuffle_seed = shuffle;
      if (shuffle == 0 && threads > 1) Internals::of(session).scheduler.mode = ScheduleMode::parallel;
      auto context = session.prepare();
      ASSERT_TRUE(context.ok()) << context.status().text();
      size_t k = 0;
      for (const uint32_t every : {2u, 3u, 2u, 1'000'000u}) {  // other extents, the first ones again, nearly all
        const std::vector<float> x = field(every);
        ASSERT_TRUE(context->bind_input(0, x.data()).ok());
        const Status status = context->run();
        ASSERT_TRUE(status.ok()) << status.text();
        std::vector<std::vector<char>> got;
        for (size_t i = 0; i < 2; ++i) {
          const TensorView y = context->output(i);
          const auto* data = static_cast<const char*>(y.data);
          got.emplace_back(data, data + y.byte_size());
        }
        if (expected.size() == k) expected.push_back(got);
        ASSERT_EQ(got, expected[k]) << threads << " threads, shuffle " << shuffle << ", case " << k;
        ++k;
      }
    }
  }
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_EQ(expected[0], expected[2]);
}

}  // namespace
}  // namespace heddle

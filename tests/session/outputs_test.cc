// The buffers that outputs are written to, the sizes that these must have, and how long results are valid.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// x [6] -> the indices of the elements that are not 0, at most 6.
Net bounded() {
  NetBuilder b("bounded");
  b.output(b.add1("NonZero", "found", {b.input("x", DType::f32, Shape{6})}));
  return b.finish();
}
const std::vector<float> six = {0, 1, 0, 2, 3, 0};

TEST(Outputs, BuffersAreLargeEnoughOrRefused) {
  Session session = open(runtime(), bounded());
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  EXPECT_EQ(context->output_bytes(0), 6 * 8);
  EXPECT_EQ(context->output_bytes(1), -1);
  std::vector<int64_t> out(7, -1);
  EXPECT_EQ(context->bind_output(0, out.data(), 5 * 8).code(), Code::invalid_argument);
  ASSERT_TRUE(context->bind_output(0, out.data(), 6 * 8).ok());
  ASSERT_TRUE(context->bind_input(0, six.data()).ok());
  ASSERT_TRUE(context->run().ok());
  EXPECT_EQ(context->output(0).shape, (Shape{1, 3}));
  EXPECT_EQ((std::vector<int64_t>(out.begin(), out.begin() + 3)), (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(out[6], -1);
}

TEST(Outputs, SessionRunAsksForTheSizeOfTypedViews) {
  Session session = open(runtime(), bounded());
  const TensorView x{DType::f32, Shape{6}, const_cast<float*>(six.data())};
  std::vector<int64_t> out(6, -1);
  TensorView small{DType::i64, Shape{1, 3}, out.data()}, right{DType::i64, Shape{1, 6}, out.data()};
  EXPECT_EQ(session.run(&x, 1, &small, 1).code(), Code::invalid_argument);
  EXPECT_EQ(out, std::vector<int64_t>(6, -1));
  ASSERT_TRUE(session.run(&x, 1, &right, 1).ok());
  EXPECT_EQ(right.shape, (Shape{1, 3}));
  EXPECT_EQ(out[2], 4);
}

TEST(Outputs, AreGoneNotStaleWhenSharedMemoryHasMoved) {
  const Runtime r = runtime();
  Session small = open(r, convolution_net(1)), large = open(r, convolution_net(4));
  const SharedMemory memory;
  auto first = small.prepare_on(memory);
  ASSERT_TRUE(first.ok());
  const auto x = blob(Shape{1, 8, 14, 14}, -1, 0.01f);
  ASSERT_TRUE(first->bind_input(0, x->data).ok());
  ASSERT_TRUE(first->run().ok());
  EXPECT_NE(first->output(0).data, nullptr);
  ASSERT_TRUE(large.prepare_on(memory).ok());
  EXPECT_EQ(first->output(0).data, nullptr);
  ASSERT_TRUE(first->run().ok());
  EXPECT_NE(first->output(0).data, nullptr);
}

TEST(Outputs, AContextThatRunsMayBeAssignedOver) {
  const Runtime r = runtime(2);
  Session session = open(r, convolution_net(4));
  const auto x = blob(Shape{4, 8, 14, 14}, -1, 0.01f);
  std::atomic<int> done{0}, right{0};
  for (int i = 0; i < 20; ++i) {
    auto running = session.prepare(), other = session.prepare();
    ASSERT_TRUE(running.ok() && other.ok());
    ASSERT_TRUE(running->bind_input(0, x->data).ok() && other->bind_input(0, x->data).ok());
    ASSERT_TRUE(running
                    ->run_async([&](Status status) {
                      right += status.ok() ? 1 : 0;
                      ++done;
                    })
                    .ok());
    *running = std::move(*other);
    EXPECT_TRUE(running->run().ok());
  }
  while (done < 20) std::this_thread::yield();  // called after the end of the run
  EXPECT_EQ(right, 20);
}

}  // namespace
}  // namespace heddle

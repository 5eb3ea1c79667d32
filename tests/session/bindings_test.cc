// The bindings of a run: contents that decide shapes, buffers that stay bound, buffers that overlap.
#include <gtest/gtest.h>

#include <cstring>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

const std::vector<float> values = [] {
  std::vector<float> v(2000);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 7);
  return v;
}();

TensorView x_view() {
  return {DType::f32, Shape{2, 1000}, const_cast<float*>(values.data())};
}
TensorView axes_view(const int64_t* axes) {
  return {DType::i64, Shape{1}, const_cast<int64_t*>(axes)};
}

// x [2, 1000], axes [1] -> ReduceSum.
Net sum_net() {
  NetBuilder b("sum");
  const ValueId x = b.input("x", DType::f32, Shape{2, 1000}), axes = b.input("axes", DType::i64, Shape{1});
  b.output(b.add1("ReduceSum", "y", {x, axes}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

TEST(Bindings, AContentThatTheContextWasNotPreparedForIsRefused) {
  Session session = open(runtime(), sum_net());
  const int64_t last = 1, first = 0;
  auto context = session.prepare({x_view(), axes_view(&last)});
  ASSERT_TRUE(context.ok()) << context.status().text();
  std::vector<float> y(2 + 998, -1);
  ASSERT_TRUE(context->bind_input(0, values.data()).ok());
  ASSERT_TRUE(context->bind_input(1, &first).ok());
  ASSERT_TRUE(context->bind_output(0, y.data(), 2 * sizeof(float)).ok());
  const Status status = context->run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::shape_mismatch) << status.text();
  EXPECT_NE(status.text().find(R"(input "axes" decides shapes: the context was prepared for [1], now it is [0])"), std::string::npos)
      << status.text();
  EXPECT_EQ(std::count(y.begin(), y.end(), -1.0f), 1000);
  // The same content at another address counts as the same.
  const int64_t again = 1;
  ASSERT_TRUE(context->bind_input(1, &again).ok());
  EXPECT_TRUE(context->run().ok());
  EXPECT_EQ(std::count(y.begin(), y.end(), -1.0f), 998);
}

TEST(Bindings, AContentThatIsOverwrittenInPlaceIsRefusedToo) {
  Session session = open(runtime(), sum_net());
  int64_t axes = 1;
  auto context = session.prepare({x_view(), axes_view(&axes)});
  ASSERT_TRUE(context.ok());
  ASSERT_TRUE(context->bind_input(0, values.data()).ok());
  ASSERT_TRUE(context->bind_input(1, &axes).ok());
  EXPECT_TRUE(context->run().ok());
  axes = 0;
  EXPECT_EQ(context->run().code(), Code::shape_mismatch);
  axes = 1;
  EXPECT_TRUE(context->run().ok());
}

// Session::run finds the plan by content.
TEST(Bindings, SessionRunPlansAnewForAnotherContent) {
  Session session = open(runtime(), sum_net());
  for (const int64_t axes : {1, 0, 1}) {
    auto result = session.run({x_view(), axes_view(&axes)});
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_EQ((*result)[0].shape(), (Shape{axes == 1 ? 2 : 1000}));
  }
}

// The execution serves the next context of the same plan, and the next run: the bindings are removed.
TEST(Bindings, OfARunAreGoneBehindIt) {
  Session session = open(runtime(), sum_net());
  const int64_t axes = 1;
  const std::vector<TensorView> inputs = {x_view(), axes_view(&axes)};
  TensorView y;
  ASSERT_TRUE(session.run(inputs.data(), 2, &y, 1).ok());
  {
    auto context = session.prepare(inputs);
    ASSERT_TRUE(context.ok());
    EXPECT_EQ(context->run().code(), Code::missing_input);
  }
  Session declared = open(runtime(), convolution_net());
  const auto x = blob(Shape{1, 8, 14, 14}, -1, 0.01f);
  auto context = std::make_unique<Context>(std::move(*declared.prepare()));
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  ASSERT_TRUE(context->run().ok());
  context = nullptr;
  EXPECT_EQ(declared.run(nullptr, 0, &y, 1).code(), Code::missing_input);
}

Net add_net() {
  NetBuilder b("add");
  const ValueId x = b.input("x", DType::f32, Shape{1000});
  b.output(b.add1("CumSum", "sum", {x, b.constant("axis", Blob::copy_of(DType::i64, Shape{}, std::vector<int64_t>{0}.data()))}));
  b.output(b.add1("Softmax", "soft", {x}));
  return b.finish();
}

TEST(Bindings, OutputsThatOverlapAreRefused) {
  Session session = open(runtime(), add_net());
  auto context = session.prepare();
  ASSERT_TRUE(context.ok());
  std::vector<float> memory(3000, 1);
  const auto expect_refused = [&](const void* x, void* a, void* b, const char* part) {
    ASSERT_TRUE(context->bind_input(0, x).ok() && context->bind_output(0, a).ok() && context->bind_output(1, b).ok());
    const Status status = context->run();
    ASSERT_EQ(status.code(), Code::invalid_argument) << status.text();
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  };
  float* const at = memory.data();
  expect_refused(at, at, at + 1000, R"(output "sum" lies in the memory of input "x")");
  expect_refused(at, at + 999, at + 2000, R"(output "sum" lies in the memory of input "x")");
  expect_refused(at, at + 1000, at + 1000, R"(output "soft" lies in the memory of output "sum")");
  expect_refused(at, at + 1000, at + 1500, R"(output "soft" lies in the memory of output "sum")");
  ASSERT_TRUE(context->bind_output(0, nullptr).ok() && context->bind_output(1, nullptr).ok());
  ASSERT_TRUE(context->bind_input(0, at).ok());
  ASSERT_TRUE(context->run().ok());
  // The outputs are in the context's own memory, which the next run overwrites.
  expect_refused(context->output(0).data, at, at + 1000, R"(input "x" lies in the context's own memory)");
  ASSERT_TRUE(context->bind_input(0, at).ok() && context->bind_output(0, at + 1000).ok() && context->bind_output(1, at + 2000).ok());
  EXPECT_TRUE(context->run().ok());
  TensorView outputs[2] = {{DType::f32, Shape{1000}, at}, {DType::f32, Shape{1000}, at + 1000}};
  const TensorView x = {DType::f32, Shape{1000}, at};
  EXPECT_EQ(session.run(&x, 1, outputs, 2).code(), Code::invalid_argument);
}

// Inputs may share one buffer: they are only read.
TEST(Bindings, InputsMayOverlap) {
  NetBuilder b("two");
  const ValueId x = b.input("x", DType::f32, Shape{4}), y = b.input("y", DType::f32, Shape{4});
  b.output(b.add1("Add", "z", {x, y}));
  Session session = open(runtime(), b.finish());
  const TensorView view = {DType::f32, Shape{4}, const_cast<float*>(values.data())};
  EXPECT_TRUE(session.run({view, view}).ok());
}

TEST(Bindings, ABufferForAllMemoryIsNeverNull) {
  Session session = open(runtime(), convolution_net());
  const auto bytes = session.transient_bytes();
  ASSERT_TRUE(bytes.ok());
  const auto context = session.prepare_in(nullptr, *bytes);
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.status().code(), Code::invalid_argument) << context.status().text();
}

// A session keeps the context of a run for the next, whose ports are bound anew all the same.
TEST(Bindings, SessionRunUsesNothingThatAnEarlierRunHasBound) {
  NetBuilder b("two");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("Relu", "r", {x}));
  b.output(b.add1("Neg", "n", {x}));
  Session session = open(runtime(), b.finish());
  float in[4] = {1, 2, 3, 4}, other[4] = {5, 6, 7, 8}, r[4] = {}, n[4] = {};
  const auto view = [](float* data) { return TensorView{DType::f32, Shape{4}, data}; };
  const auto run = [&](float* from, std::vector<TensorView> outputs) {
    const TensorView input = view(from);
    return session.run(&input, 1, outputs.data(), outputs.size());
  };
  ASSERT_TRUE(run(in, {view(r), view(n)}).ok());
  ASSERT_TRUE(run(in, {view(r), view(n)}).ok());
  EXPECT_EQ(r[3], 4);
  EXPECT_EQ(n[3], -4);
  ASSERT_TRUE(run(other, {view(r)}).ok());
  EXPECT_EQ(r[3], 8);
  EXPECT_EQ(n[3], -4) << "the second output was not asked for";
  ASSERT_TRUE(run(in, {view(nullptr), view(n)}).ok());
  EXPECT_EQ(r[3], 8) << "the first output was given no buffer";
  EXPECT_EQ(run(in, {view(in), view(n)}).code(), Code::invalid_argument) << "an output in an input";
  EXPECT_EQ(run(nullptr, {view(r), view(n)}).code(), Code::missing_input);
  ASSERT_TRUE(run(other, {view(r), view(n)}).ok());
  TensorView outputs[2] = {view(r), view(n)};
  EXPECT_EQ(session.run(nullptr, 0, outputs, 2).code(), Code::missing_input);
}

}  // namespace
}  // namespace heddle

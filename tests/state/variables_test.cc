// Variables that are outputs, are written from outside, and are waited for.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr int64_t wide = 100000;

// w += x; the output is w itself.
Net counter() {
  NetBuilder b("counter");
  const ValueId x = b.input("x", DType::f32, Shape{wide});
  const std::vector<float> zeros(wide, 0);
  const ValueId w = b.variable("w", Blob::copy_of(DType::f32, Shape{wide}, zeros.data()));
  const ValueId next = b.add1("AccumulateAdd", "add", {w, x}, {}, "heddle");
  b.updates(next, w);
  b.output(next);
  return b.finish();
}

bool all_equal(const float* data) {
  for (int64_t i = 1; i < wide; ++i)
    if (data[i] != data[0]) return false;
  return true;
}

TEST(VariableOutputs, AreWhatTheyWereAtTheEndOfTheirRun) {
  const Runtime r = runtime();
  Session session = open(r, counter());
  const std::vector<float> ones(wide, 1);
  const std::vector<TensorView> inputs = {{DType::f32, Shape{wide}, const_cast<float*>(ones.data())}};
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 60; ++i) {
        auto result = session.run(inputs);
        if (!result.ok() || !all_equal(static_cast<const float*>((*result)[0].data()))) ++torn;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
}

TEST(VariableOutputs, OfAContextDoNotMoveWithLaterRuns) {
  const Runtime r = runtime();
  Session session = open(r, counter());
  const std::vector<float> ones(wide, 1);
  const std::vector<TensorView> inputs = {{DType::f32, Shape{wide}, const_cast<float*>(ones.data())}};
  auto context = session.prepare(inputs);
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->output(0).data, nullptr);
  ASSERT_TRUE(context->bind_input(0, ones.data()).ok());
  ASSERT_TRUE(context->run().ok());
  ASSERT_TRUE(session.run(inputs).ok());
  const auto* data = static_cast<const float*>(context->output(0).data);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data[0], 1.0f);
  EXPECT_EQ(data[wide - 1], 1.0f);
  const auto now = session.read_variable("w");
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(static_cast<const float*>(now->data())[0], 2.0f);
  // The memory of the snapshot is part of the plan.
  EXPECT_GE(context->planned_bytes(), wide * 4);
}

// The update would write the rows that it reads.
TEST(Updates, MayNotReadTheirVariableAtAnotherInput) {
  for (const bool through_a_view : {false, true}) {
    NetBuilder b("twice");
    const std::vector<float> content = {1, 2, 3, 4};
    const ValueId w = b.variable("w", Blob::copy_of(DType::f32, Shape{4, 1}, content.data()));
    const ValueId rows = through_a_view ? b.add1("Reshape", "view", {w, b.constant_ints("shape", {4, 1})}) : w;
    const ValueId next = b.add1("ScatterAssign", "turn", {w, b.constant_ints("indices", {1, 2, 3, 0}), rows}, {}, "heddle");
    b.updates(next, w);
    b.output(next);
    const Runtime r = runtime();
    auto session = r.open(b.finish());
    const Status status = session.ok() ? session->run(std::vector<TensorView>()).status() : session.status();
    EXPECT_EQ(status.code(), Code::hazard);
    EXPECT_NE(status.text().find("\"turn\" (heddle::ScatterAssign): takes variable \"w\" at two inputs"), std::string::npos)
        << status.text();
  }
}

// The run determines the extents of a gradient: the variable keeps its type, and a gradient that does not fit is refused.
TEST(Updates, OfExtentsThatOnlyTheRunKnowsHaveToFit) {
  constexpr int64_t i64 = 7;  // ONNX's number
  NetBuilder b("sliced");
  const ValueId x = b.input("x", DType::f32, Shape{4}), count = b.input("count", DType::f32, Shape{1});
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 0));
  const ValueId end = b.add1("Cast", "end", {count}, {{"to", i64}});
  const ValueId slice = b.add1("Slice", "slice", {x, b.constant_ints("start", {0}), end});
  const ValueId next = b.add1("SgdUpdate", "update", {w, slice, b.constant_float("rate", 1)}, {}, "heddle");
  b.updates(next, w);
  b.output(next);
  Session session = open(runtime(), b.finish());
  const std::vector<float> numbers = {1, 2, 3, 4};
  const auto run = [&](float extent) {
    return session.run({view(numbers.data(), DType::f32, Shape{4}), view(&extent, DType::f32, Shape{1})});
  };
  const auto content = [&] {
    const auto read = session.read_variable("w");
    EXPECT_TRUE(read.ok()) << read.status().text();
    const auto* const data = static_cast<const float*>(read->data());
    return std::vector<float>(data, data + 2);
  };
  const auto two = run(2);
  ASSERT_TRUE(two.ok()) << two.status().text();
  EXPECT_EQ(content(), (std::vector<float>{0, -1}));
  for (const float extent : {3.0F, 1.0F, 0.0F}) {
    const auto other = run(extent);
    ASSERT_FALSE(other.ok()) << extent;
    EXPECT_NE(other.status().text().find("\"update\" (heddle::SgdUpdate)"), std::string::npos) << other.status().text();
    EXPECT_EQ(content(), (std::vector<float>{0, -1}));
  }
}

TEST(WriteVariable, TakesTheShapeOfTheVariableAndNoOther) {
  NetBuilder b("w");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("Add", "y", {b.variable("w", blob(Shape{2, 3}, 0, 1)), x}));
  Session session = open(runtime(), b.finish());
  std::vector<float> six = {1, 2, 3, 4, 5, 6};
  const Status turned = session.write_variable("w", {DType::f32, Shape{3, 2}, six.data()});
  EXPECT_EQ(turned.code(), Code::shape_mismatch) << turned.text();
  EXPECT_NE(turned.text().find(R"(variable "w" is f32[2, 3], the value is f32[3, 2])"), std::string::npos) << turned.text();
  EXPECT_EQ(session.write_variable("w", {DType::f32, Shape{6}, six.data()}).code(), Code::shape_mismatch);
  EXPECT_EQ(session.write_variable("w", {DType::f32, Shape{2, 3}, nullptr}).code(), Code::invalid_argument);
  EXPECT_TRUE(session.write_variable("w", {DType::f32, Shape{2, 3}, six.data()}).ok());
}

// Memory of an earlier snapshot is used again, unless its contents are still held.
TEST(Snapshots, UseTheMemoryThatTheyAreGiven) {
  const Runtime r = runtime();
  Session session = open(r, counter());
  const std::shared_ptr<VariableStore> store = Internals::of(session).variables;
  const std::vector<float> ones(wide, 1);
  const std::vector<TensorView> inputs = {{DType::f32, Shape{wide}, const_cast<float*>(ones.data())}};
  const auto take = [&](const std::vector<std::shared_ptr<const Blob>>& memory) {
    auto begun = store->begin_snapshot({}, memory);
    EXPECT_TRUE(begun.ok());
    EXPECT_TRUE(session.run(inputs).ok()) << "which is not in the snapshot";
    auto contents = begun->finish();
    EXPECT_TRUE(contents.ok());
    return std::move(*contents)[0];
  };
  const auto number = [](const std::shared_ptr<const Blob>& blob) { return *reinterpret_cast<const float*>(blob->data); };
  std::vector<std::shared_ptr<const Blob>> memory = store->snapshot_memory();
  const std::byte* const place = memory[0]->data;
  ASSERT_TRUE(session.run(inputs).ok());
  std::shared_ptr<const Blob> content = take(memory);
  EXPECT_EQ(content->data, place);
  EXPECT_EQ(number(content), 1);
  memory = {content};
  const std::shared_ptr<const Blob> other = take(memory);
  EXPECT_NE(other->data, place) << "it is still held";
  EXPECT_EQ(number(content), 1);
  EXPECT_EQ(number(other), 2);
  content.reset();
  EXPECT_EQ(number(take(memory)), 3);
  EXPECT_EQ(number(memory[0]), 3);
}

}  // namespace
}  // namespace heddle

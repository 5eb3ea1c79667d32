// The twelve awkward operators (tests/plugins/mistaken/awkward.cc), each through the whole boundary, its tiles in random ranges and order.
#include <gtest/gtest.h>

#include <cmath>

#include "operator_runner/operator_runner.h"
#include "plugins.h"

namespace heddle {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

class Awkward : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status loaded = registry_.load(test_plugin("awkward"));
    ASSERT_TRUE(loaded.ok()) << loaded.text();
  }
  Result<Blobs> run(const std::string& type, const Blobs& inputs, std::vector<Attribute> attributes = {}, size_t output_count = 1) {
    OperatorCall call;
    call.domain = "awkward";
    call.type = type;
    call.inputs = inputs;
    call.attributes = std::move(attributes);
    call.output_count = output_count;
    call.constant_inputs = constant_inputs_;
    call.split_seed = split_seed_;
    call.random_seed = 11;
    call.step = step_;
    return run_operator(registry_, call);
  }
  // Returns the only output of a call that must succeed.
  Blob one(const std::string& type, const Blobs& inputs, std::vector<Attribute> attributes = {}) {
    auto result = run(type, inputs, std::move(attributes));
    EXPECT_TRUE(result.ok()) << result.status().text();
    return result.ok() ? *result.value()[0] : Blob();
  }
  std::string refusal(const std::string& type, const Blobs& inputs, std::vector<Attribute> attributes = {}, size_t output_count = 1) {
    return run(type, inputs, std::move(attributes), output_count).status().text();
  }
  Registry registry_;
  bool constant_inputs_ = false;
  uint64_t split_seed_ = 5;
  uint64_t step_ = 0;
};

std::vector<float> ramp(size_t count, float first = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}
std::shared_ptr<const Blob> integers(const std::vector<int64_t>& values) {
  return Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(values.size())}, values.data());
}

TEST_F(Awkward, ReluRunsInSlices) {
  const size_t count = 100'001;  // seven slices, the last one short
  const Blob y = one("Relu", {floats(Shape{static_cast<int64_t>(count)}, ramp(count, -50'000))});
  const std::vector<float> values = to_floats(y);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], std::max(static_cast<float>(i) - 50'000, 0.0f));
  EXPECT_EQ(one("Relu", {floats(Shape{0, 3}, {})}).shape, (Shape{0, 3}));
}

TEST_F(Awkward, AddBroadcasts) {
  const Blob c = one("Add", {floats(Shape{2, 1, 2}, {1, 2, 3, 4}), floats(Shape{3, 1}, {10, 20, 30})});
  EXPECT_EQ(c.shape, (Shape{2, 3, 2}));
  EXPECT_EQ(to_floats(c), (std::vector<float>{11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34}));
  EXPECT_NE(refusal("Add", {floats(Shape{2}, {1, 2}), floats(Shape{3}, {1, 2, 3})}).find("does not broadcast"), std::string::npos);
}

TEST_F(Awkward, MatMulPacksAConstant) {
  const Blobs inputs = {floats(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), floats(Shape{2, 2}, {1, 2, 3, 4})};
  const std::vector<float> expected = {7, 10, 15, 22, 23, 34};
  for (const bool constant : {false, true}) {
    constant_inputs_ = constant;
    for (split_seed_ = 0; split_seed_ < 5; ++split_seed_) EXPECT_EQ(to_floats(one("MatMul", inputs)), expected);
  }
  EXPECT_NE(refusal("MatMul", {inputs[1], inputs[0]}).find("has 2 columns"), std::string::npos);
}

TEST_F(Awkward, ConvTakesListsAndAnOptionalInput) {
  const auto x = floats(Shape{1, 1, 3, 3}, ramp(9)), w = floats(Shape{2, 1, 2, 2}, {1, 1, 1, 1, 1, 0, 0, -1});
  EXPECT_EQ(to_floats(one("Conv", {x, w})), (std::vector<float>{8, 12, 20, 24, -4, -4, -4, -4}));
  const auto bias = floats(Shape{2}, {100, 0});
  const Blob y = one("Conv", {x, w, bias}, {{"strides", std::vector<int64_t>{2, 2}}, {"pads", std::vector<int64_t>{1, 1}}});
  EXPECT_EQ(y.shape, (Shape{1, 2, 2, 2}));
  EXPECT_EQ(to_floats(y), (std::vector<float>{100, 103, 109, 124, 0, -2, -6, -4}));
  EXPECT_NE(refusal("Conv", {w, x}).find("does not fit into x"), std::string::npos) << refusal("Conv", {w, x});
  EXPECT_NE(refusal("Conv", {floats(Shape{1, 2, 3, 3}, ramp(18)), w}).find("has 2 channels, w takes 1"), std::string::npos);
}

TEST_F(Awkward, SumTakesAnyNumber) {
  const auto x = floats(Shape{2}, {1, 2});
  EXPECT_EQ(to_floats(one("Sum", {x})), (std::vector<float>{1, 2}));
  EXPECT_EQ(to_floats(one("Sum", {x, x, floats(Shape{2}, {10, 20})})), (std::vector<float>{12, 24}));
  EXPECT_EQ(run("Sum", {}).status().code(), Code::arity_mismatch);
  EXPECT_NE(refusal("Sum", {x, floats(Shape{1}, {1})}).find("input 1 is [1]"), std::string::npos);
}

TEST_F(Awkward, SplitGivesAsManyAsAreAskedFor) {
  const auto result = run("Split", {floats(Shape{6, 1}, ramp(6))}, {}, 3);
  ASSERT_TRUE(result.ok()) << result.status().text();
  ASSERT_EQ(result.value().size(), 3u);
  EXPECT_EQ(to_floats(*result.value()[2]), (std::vector<float>{4, 5}));
  EXPECT_NE(refusal("Split", {floats(Shape{6, 1}, ramp(6))}, {}, 4).find("does not divide by 4"), std::string::npos);
}

TEST_F(Awkward, ReshapeReadsItsShapeOperand) {
  const auto x = floats(Shape{2, 3}, ramp(6));
  const Blob y = one("Reshape", {x, integers({3, -1})});
  EXPECT_EQ(y.shape, (Shape{3, 2}));
  EXPECT_EQ(to_floats(y), ramp(6));
  const std::vector<int64_t> eight(6, 1);
  EXPECT_EQ(one("Reshape", {Blob::copy_of(DType::i64, Shape{6}, eight.data()), integers({6, 1})}).dtype,
            DType::i64);  // In<void>: any dtype
  EXPECT_NE(refusal("Reshape", {x, integers({4, 2})}).find("does not reshape to [4, 2]"), std::string::npos);
  EXPECT_NE(refusal("Reshape", {x, integers({-2, 3})}).find("-2"), std::string::npos);
}

TEST_F(Awkward, NonZeroFindsItsExtentWhenItRan) {
  const Blob y = one("NonZero", {floats(Shape{2, 3}, {0, 5, 0, 7, 0, 9})});
  EXPECT_EQ(y.shape, (Shape{2, 3}));
  const auto* indices = reinterpret_cast<const int64_t*>(y.data);
  EXPECT_EQ(std::vector<int64_t>(indices, indices + 6), (std::vector<int64_t>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(one("NonZero", {floats(Shape{2, 2}, {0, 0, 0, 0})}).shape, (Shape{2, 0}));
}

TEST_F(Awkward, SgdUpdateSaysWhatItUpdates) {
  const OperatorSchema* schema = registry_.snapshot()->find_operator("awkward", "SgdUpdate");
  ASSERT_NE(schema, nullptr);
  EXPECT_TRUE(schema->updates_variable());
  EXPECT_EQ(schema->op->outputs[0]->updates, 0);
  const Blob next = one("SgdUpdate", {floats(Shape{2}, {1, 2}), floats(Shape{2}, {10, -10}), floats(Shape{}, {0.1f})});
  EXPECT_EQ(to_floats(next), (std::vector<float>{0, 3}));
}

TEST_F(Awkward, DropoutDependsOnSeedAndStepAlone) {
  const size_t count = 10'000;
  const auto x = floats(Shape{static_cast<int64_t>(count)}, std::vector<float>(count, 1));
  const std::vector<float> first = to_floats(one("Dropout", {x}, {{"ratio", 0.25}}));
  EXPECT_EQ(first, to_floats(one("Dropout", {x}, {{"ratio", 0.25}})));
  size_t kept = 0;
  for (const float v : first) {
    EXPECT_TRUE(v == 0 || std::abs(v - 4.0f / 3) < 1e-6f);
    kept += v != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 7500, 5 * std::sqrt(count * 0.25 * 0.75));  // five standard deviations
  step_ = 1;
  EXPECT_NE(first, to_floats(one("Dropout", {x}, {{"ratio", 0.25}})));
}

TEST_F(Awkward, AttributesOfAnotherTypeAreNamed) {
  const std::string text = refusal("Dropout", {floats(Shape{1}, {1})}, {{"ratio", std::string("half")}});
  EXPECT_NE(text.find("attribute \"ratio\" is a string, must be a number"), std::string::npos) << text;
}

TEST_F(Awkward, ATicketWithoutItsResourceNamesIt) {
  EXPECT_NE(refusal("Ticket", {}).find("awkward_provider.counter"), std::string::npos) << refusal("Ticket", {});
}

TEST_F(Awkward, TheProviderPublishesAResource) {
  ASSERT_TRUE(registry_.load(test_plugin("awkward_provider")).ok());
  std::shared_ptr<const LoadedPlugin> owner;
  const heddle_resource* resource = registry_.snapshot()->find_resource("awkward_provider.counter", "cpu", &owner);
  ASSERT_NE(resource, nullptr);
  EXPECT_EQ(owner->name, "awkward_provider");
  EXPECT_EQ(registry_.snapshot()->find_resource("awkward_provider.counter", "cuda", &owner), resource);  // of a session: for all devices
  const Status twice = registry_.load(test_plugin("awkward_provider"));
  EXPECT_TRUE(twice.ok()) << twice.text();  // the same file again changes nothing
}

}  // namespace
}  // namespace heddle

// Dims that ports declare (heddle_port::dims): inputs are compared with them, outputs follow from them.
#include <gtest/gtest.h>

#include "alone/operator_runner.h"
#include "plugins.h"

namespace heddle {
namespace {

std::shared_ptr<const Blob> ones(const Shape& shape) {
  return floats(shape, std::vector<float>(static_cast<size_t>(shape.element_count()), 1.0f));
}

Result<std::vector<std::shared_ptr<const Blob>>> call(const std::string& type, std::vector<std::shared_ptr<const Blob>> inputs) {
  static const Registry& registry = *[] {
    auto* r = new Registry();
    EXPECT_TRUE(r->load(test_plugin("dims")).ok());
    return r;
  }();
  OperatorCall call;
  call.domain = "dims";
  call.type = type;
  call.inputs = std::move(inputs);
  return run_operator(registry, call);
}

Shape shape_of(const std::string& type, std::vector<std::shared_ptr<const Blob>> inputs) {
  const auto result = call(type, std::move(inputs));
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? (*result)[0]->shape : Shape{};
}
std::string refusal(const std::string& type, std::vector<std::shared_ptr<const Blob>> inputs) {
  const auto result = call(type, std::move(inputs));
  EXPECT_EQ(result.status().code(), Code::shape_mismatch);
  return result.status().diagnostic().message;
}

TEST(DeclaredDims, OutputsFollowFromInputs) {
  EXPECT_EQ(shape_of("Affine", {ones({2, 3}), ones({3})}), (Shape{2, 3}));
  EXPECT_EQ(shape_of("Product", {ones({2, 3}), ones({3, 5})}), (Shape{2, 5}));
  EXPECT_EQ(shape_of("Product", {ones({7, 1, 2, 3}), ones({7, 1, 3, 5})}), (Shape{7, 1, 2, 5}));
  EXPECT_EQ(shape_of("Product", {ones({0, 2, 3}), ones({0, 3, 5})}), (Shape{0, 2, 5}));
  EXPECT_EQ(shape_of("Area", {ones({6, 4})}), (Shape{6}));
}

TEST(DeclaredDims, WhatDoesNotFitIsNamedWithWhoSaidOtherwise) {
  EXPECT_NE(refusal("Affine", {ones({2, 3}), ones({4})}).find(R"(input "scale" is [4], declared as [C]: C is 3 in input "x")"),
            std::string::npos);
  EXPECT_NE(refusal("Affine", {ones({2, 3}), ones({3}), ones({1})}).find(R"(input "shift" is [1], declared as [C]: C is 3 in input "x")"),
            std::string::npos);
  EXPECT_NE(refusal("Affine", {ones({3}), ones({3})}).find(R"(input "x" is [3], declared as [N, C])"), std::string::npos);
  EXPECT_NE(refusal("Area", {ones({2, 5})}).find(R"(input "boxes" is [2, 5], declared as [B, 4])"), std::string::npos);
  EXPECT_NE(refusal("Product", {ones({7, 2, 3}), ones({6, 3, 5})})
                .find(R"(input "b" is [6, 3, 5], declared as [..., K, N]: "..." is [7] in input)"),
            std::string::npos);
  EXPECT_NE(refusal("Product", {ones({3}), ones({3, 5})}).find(R"(input "a" is [3], declared as [..., M, K])"), std::string::npos);
}

}  // namespace
}  // namespace heddle

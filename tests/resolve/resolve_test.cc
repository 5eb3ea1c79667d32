#include "resolve/resolve.h"

#include <gtest/gtest.h>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

Status resolved(Net net) {
  return resolve(std::move(net), Internals::of(runtime()).registry.snapshot()).status();
}

TEST(Resolve, ListsAllUnknownOperatorsWithNearestNames) {
  NetBuilder b("unknown");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("Rellu", "a", {b.add1("Frobnicate", "b", {x})}));
  const Status status = resolved(b.finish());
  ASSERT_EQ(status.code(), Code::unknown_operator);
  EXPECT_EQ(status.diagnostic().node, "b");
  ASSERT_EQ(status.diagnostic().attached.size(), 1u);
  EXPECT_NE(status.diagnostic().attached[0].hint.find("\"Relu\""), std::string::npos);
}

// Each unknown type gives one finding, however often and however deep it is used.
TEST(Resolve, AnUnknownOperatorIsReportedOnceWithItsUses) {
  NetBuilder b("often"), branch("branch");
  branch.output(branch.add1("Frobnicate", "inner", {branch.input("x", DeclaredType())}));
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("Frobnicate", "first", {x}));
  b.output(b.add1("Frobnicate", "second", {x}));
  b.output(b.add1("Twist", "once", {x}, {}, "mine"));
  const auto both = subnet(branch);
  b.output(b.add1("If", "y", {b.input("c", DType::boolean, Shape{}), x}, {{"then_branch", both}, {"else_branch", both}}));
  const Status status = resolved(b.finish());
  EXPECT_EQ(status.diagnostic().node, "first");
  EXPECT_EQ(status.diagnostic().message, "no loaded plugin has this operator, used 4 times");
  EXPECT_EQ(status.diagnostic().hint.find("plugin that has it"), std::string::npos) << "ONNX's operators come with Heddle, or not at all";
  ASSERT_EQ(status.diagnostic().attached.size(), 1u);
  EXPECT_EQ(status.diagnostic().attached[0].message, "no loaded plugin has this operator");
  EXPECT_NE(status.diagnostic().attached[0].hint.find("plugin that has it"), std::string::npos);
}

// Each suggestion compares with every operator there is: only the first mistakes get one.
TEST(Resolve, SuggestsForTheFirstOfManyUnknownOperators) {
  NetBuilder b("many");
  ValueId x = b.input("x", DType::f32, Shape{4});
  constexpr size_t count = 30'000;
  for (size_t i = 0; i < count; ++i) x = b.add1("Relu" + std::to_string(i), "n" + std::to_string(i), {x});
  b.output(x);
  const Status status = resolved(b.finish());
  ASSERT_EQ(status.code(), Code::unknown_operator);
  size_t suggested = status.diagnostic().hint.find("\"Relu\"") != std::string::npos;
  for (const Diagnostic& d : status.diagnostic().attached) suggested += d.hint.find("\"Relu\"") != std::string::npos;
  EXPECT_EQ(suggested, 100u);
  EXPECT_NE(status.diagnostic().attached.back().message.find("29000 further findings"), std::string::npos)
      << status.diagnostic().attached.back().message;
}

TEST(Resolve, ChecksAttributesAndArity) {
  NetBuilder b("wrong");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("LeakyRelu", "unknown", {x}, {{"alhpa", 0.1}}));
  b.output(b.add1("LeakyRelu", "type", {x}, {{"alpha", std::string("much")}}));
  b.output(b.add1("LeakyRelu", "widened", {x}, {{"alpha", int64_t{1}}}));
  b.output(b.add1("Relu", "many", {x, x}));
  b.output(b.add1("Add", "few", {x}));
  const Status status = resolved(b.finish());
  std::vector<std::pair<std::string, Code>> found = {{status.diagnostic().node, status.code()}};
  for (const Diagnostic& d : status.diagnostic().attached) found.emplace_back(d.node, d.code);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, Code>>{{"unknown", Code::unknown_attribute},
                                                              {"type", Code::attribute_mismatch},
                                                              {"many", Code::arity_mismatch},
                                                              {"few", Code::arity_mismatch}}));
}

TEST(Resolve, RefusesReadingWhatComesLater) {
  NetBuilder b("cycle");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  const ValueId first = b.add1("Add", "first", {x, x});
  const ValueId second = b.add1("Relu", "second", {first});
  b.net().nodes[0].inputs[1] = second;
  b.output(second);
  const Status status = resolved(b.finish());
  EXPECT_EQ(status.code(), Code::cycle);
  EXPECT_EQ(status.diagnostic().node, "first");
}

TEST(Resolve, AnUpdateNeedsTheNewestVersionOfAVariable) {
  NetBuilder b("updates");
  const ValueId w = b.variable("w", blob(Shape{3}, 1, 0));
  const ValueId g = b.input("g", DType::f32, Shape{3});
  const ValueId rate = b.constant_float("rate", 0.5f);
  b.add1("SgdUpdate", "one", {w, g, rate}, {}, "heddle");
  b.add1("SgdUpdate", "two", {w, g, rate}, {}, "heddle");
  b.add1("SgdUpdate", "three", {g, g, rate}, {}, "heddle");
  const Status status = resolved(b.finish());
  EXPECT_EQ(status.code(), Code::hazard);
  EXPECT_EQ(status.diagnostic().node, "two");
  ASSERT_EQ(status.diagnostic().attached.size(), 1u);
  EXPECT_EQ(status.diagnostic().attached[0].node, "three");
}

}  // namespace
}  // namespace heddle

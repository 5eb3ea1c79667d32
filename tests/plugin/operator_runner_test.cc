#include "operator_runner/operator_runner.h"

#include <gtest/gtest.h>

#include "plugins.h"

namespace heddle {
namespace {

TEST(OperatorRunner, RunsThePluginOfTheReadme) {
  Registry registry;
  Status loaded = registry.load(HEDDLE_BINARY_DIR "/lib/example.so");
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  std::vector<float> x(100000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  OperatorCall call;
  call.domain = "example";
  call.type = "Scale";
  call.attributes = {{"factor", 2.5}};
  call.inputs = {floats(Shape{100, 1000}, x)};
  call.split_seed = 7;
  auto result = run_operator(registry, call);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Blob& y = *result.value()[0];
  EXPECT_EQ(y.shape, (Shape{100, 1000}));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(reinterpret_cast<const float*>(y.data)[i], 2.5f * x[i]);
}

TEST(OperatorRunner, NamesWhatIsWrong) {
  Registry registry;
  ASSERT_TRUE(registry.load(HEDDLE_BINARY_DIR "/lib/example.so").ok());
  OperatorCall call;
  call.domain = "example";
  call.type = "Scale";
  EXPECT_EQ(run_operator(registry, call).status().code(), Code::arity_mismatch);
  const int64_t one = 1;
  call.inputs = {Blob::copy_of(DType::i64, Shape{}, &one)};
  EXPECT_EQ(run_operator(registry, call).status().code(), Code::no_kernel);
  call.type = "Skale";
  const Status unknown = run_operator(registry, call).status();
  EXPECT_EQ(unknown.code(), Code::unknown_operator);
  EXPECT_NE(unknown.text().find("did you mean \"Scale\"?"), std::string::npos) << unknown.text();
}

// As in a net, the operator is not called, so it may count on the attribute.
TEST(OperatorRunner, RefusesACallWithoutARequiredAttribute) {
  Registry registry;
  ASSERT_TRUE(registry.load(test_plugin("guide_attributes")).ok());
  OperatorCall call;
  call.domain = "guide";
  call.type = "Bucket";
  call.inputs = {floats(Shape{2}, {0, 1})};
  CallEnd end;
  const Status status = run_operator(*registry.snapshot(), call, &end).status();
  EXPECT_EQ(status.code(), Code::attribute_mismatch);
  EXPECT_NE(status.text().find("attribute \"bounds\" is missing and has no default"), std::string::npos) << status.text();
  EXPECT_TRUE(end.refused());
  call.attributes = {{"bounds", std::string("wide")}};
  EXPECT_NE(run_operator(*registry.snapshot(), call).status().text().find("attribute \"bounds\" is a string, must be a list of numbers"),
            std::string::npos);
  call.attributes = {{"boundaries", std::vector<double>{0.5}}};
  EXPECT_NE(run_operator(*registry.snapshot(), call).status().text().find("attribute \"boundaries\" is unknown"), std::string::npos);
  call.attributes = {{"bounds", std::vector<int64_t>{1}}};
  EXPECT_TRUE(run_operator(*registry.snapshot(), call).ok()) << "integers will do";
  call.attributes = {{"bounds", std::vector<double>{0.5}}};
  EXPECT_TRUE(run_operator(*registry.snapshot(), call).ok());
}

TEST(Registry, UnloadsAndRefusesWhatIsNotThere) {
  Registry registry;
  EXPECT_EQ(registry.load("no/such.so").code(), Code::plugin_unreadable);
  EXPECT_EQ(registry.load(HEDDLE_SOURCE_DIR "/CMakeLists.txt").code(), Code::plugin_unreadable);
  EXPECT_EQ(registry.unload("example").code(), Code::unknown_name);
  ASSERT_TRUE(registry.load(HEDDLE_BINARY_DIR "/lib/example.so").ok());
  ASSERT_TRUE(registry.load(HEDDLE_BINARY_DIR "/lib/example.so").ok());
  EXPECT_NE(registry.snapshot()->find_operator("example", "Scale"), nullptr);
  ASSERT_TRUE(registry.unload("example").ok());
  EXPECT_EQ(registry.snapshot()->find_operator("example", "Scale"), nullptr);
}

}  // namespace
}  // namespace heddle

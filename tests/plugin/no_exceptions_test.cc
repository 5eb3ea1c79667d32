// Plugins built with -fno-exceptions -fno-rtti: reading what is not there is the node's error, as with exceptions.
#include <gtest/gtest.h>

#include <limits>

#include "operator_runner/operator_runner.h"
#include "plugins.h"

namespace heddle {
namespace {

struct Misread {
  const char* type;
  Code code;
  const char* text;
};
void PrintTo(const Misread& misread, std::ostream* out) {
  *out << misread.type;
}

OperatorCall misread_call(const char* type) {
  OperatorCall call;
  call.domain = "misreads";
  call.type = type;
  call.inputs = {floats(Shape{2, 2}, {1, 2, 3, 4})};
  if (call.type.find("sFloats") != std::string::npos) {
    const uint16_t halves[] = {0x3c00, 0x4000};
    call.inputs = {Blob::copy_of(DType::f16, Shape{2}, halves)};
  }
  if (call.type == "Floats") call.inputs.push_back(floats(Shape{2}, {1, 0}));
  if (call.type == "Refuses") call.attributes = {{"factor", AttributeValue(-1.0)}};
  return call;
}

class Misreads : public ::testing::TestWithParam<Misread> {};

TEST_P(Misreads, AreErrorsWithoutExceptionsToo) {
  std::string with_exceptions;
  for (const char* name : {"misreads", "misreads_no_exceptions"}) {
    Registry registry;
    const Status loaded = registry.load(test_plugin(name));
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    const Status status = run_operator(registry, misread_call(GetParam().type)).status();
    EXPECT_EQ(status.code(), GetParam().code) << status.text();
    EXPECT_NE(status.text().find(GetParam().text), std::string::npos) << status.text();
    std::string text = status.text();
    const std::string thrown = "exception: ";
    if (const size_t at = text.find(thrown); at != std::string::npos) text.erase(at, thrown.size());
    EXPECT_EQ(text, with_exceptions.empty() ? text : with_exceptions);
    with_exceptions = text;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Operators, Misreads,
    ::testing::Values(
        Misread{"Undeclared", Code::kernel_failed, "operator Undeclared declares no attribute \"nowhere\""},
        Misread{"OtherType", Code::kernel_failed, "attribute \"factor\" of operator OtherType is read as type 3 but has type 2"},
        Misread{"Refuses", Code::kernel_failed, "factor is -1.000000, expected a positive number"},
        Misread{"Absent", Code::shape_mismatch, "infer reads input 1, which is absent"},
        Misread{"Floats", Code::shape_mismatch, "infer reads input 1 as integers"},
        Misread{"ReadsFloats", Code::kernel_failed, "the port takes f16, the kernel reads input 0 as f32: say which dtypes it takes"},
        Misread{"WritesFloats", Code::kernel_failed, "the port takes f16, the kernel writes output 0 as f32: say which dtypes it takes"},
        Misread{"StartsFloats", Code::kernel_failed, "the port takes f16, the kernel reads input 0 as f32"}),
    [](const auto& instance) { return std::string(instance.param.type); });

TEST(NoExceptions, WhatAsksForNothingButTheCostFails) {
  for (const char* name : {"misreads", "misreads_no_exceptions"}) {
    Registry registry;
    ASSERT_TRUE(registry.load(test_plugin(name)).ok());
    EXPECT_NE(operator_cost(*registry.snapshot(), misread_call("Cost")).status().text().find("cost reads input 1, which is absent"),
              std::string::npos);
  }
}

// A misread in a kernel's preferences is no reason to fail.
TEST(NoExceptions, APreferenceThatMisreadsIsNone) {
  for (const char* name : {"misreads", "misreads_no_exceptions"}) {
    Registry registry;
    ASSERT_TRUE(registry.load(test_plugin(name)).ok());
    const auto formats = operator_formats(*registry.snapshot(), misread_call("Preference"));
    ASSERT_TRUE(formats.ok()) << formats.status().text();
    EXPECT_TRUE(formats->empty());
    const auto result = run_operator(registry, misread_call("Preference"));
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_EQ(to_floats(*(*result)[0]), (std::vector<float>{1, 2, 3, 4}));
  }
}

TEST(NoExceptions, OperatorsRunAndRefuse) {
  Registry registry;
  const Status loaded = registry.load(test_plugin("no_exceptions"));
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  OperatorCall call;
  call.domain = "no_exceptions";
  call.type = "Scale";
  call.inputs = {floats(Shape{3}, {1, 2, -3})};
  call.attributes = {{"factor", AttributeValue(2.5)}};
  const auto result = run_operator(registry, call);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(to_floats(*(*result)[0]), (std::vector<float>{2.5, 5, -7.5}));
  call.attributes = {{"factor", AttributeValue(std::numeric_limits<double>::infinity())}};
  EXPECT_NE(run_operator(registry, call).status().text().find("factor is not finite"), std::string::npos);
  EXPECT_TRUE(registry.unload("no_exceptions").ok());
  EXPECT_FALSE(is_mapped("no_exceptions")) << "the library stayed in the process";
}

}  // namespace
}  // namespace heddle

// Plugins that lie, throw or are broken: each is refused or fails with one error, the registry stays as it was, the host survives.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hostile_operators.h"
#include "operator_runner/operator_runner.h"
#include "plugins.h"

namespace heddle {
namespace {

struct Refusal {
  const char* plugin;
  Code code;
  const char* text;  // part of the message
};
void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.plugin;
}

class HostileLoad : public ::testing::TestWithParam<Refusal> {};

TEST_P(HostileLoad, IsRefusedAndLeavesNoTrace) {
  Registry registry;
  ASSERT_TRUE(registry.load(example_plugin).ok());
  const auto before = registry.snapshot();
  const Status status = registry.load(test_plugin(GetParam().plugin));
  EXPECT_EQ(status.code(), GetParam().code) << status.text();
  EXPECT_NE(status.text().find(GetParam().text), std::string::npos) << status.text();
  EXPECT_NE(status.text().find(GetParam().plugin), std::string::npos) << "names no file: " << status.text();
  for (const char c : status.text()) EXPECT_TRUE(c >= ' ' && c != 0x7f) << "control character in: " << status.text();
  EXPECT_EQ(registry.snapshot(), before);
  EXPECT_FALSE(is_mapped(GetParam().plugin)) << "the library stayed in the process";
}

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define ABI_TEXT TEXT_OF(HEDDLE_ABI_MAJOR) "." TEXT_OF(HEDDLE_ABI_MINOR)
constexpr Code invalid_plugin = Code::plugin_invalid;
INSTANTIATE_TEST_SUITE_P(
    Plugins, HostileLoad,
    ::testing::Values(
        Refusal{"hostile_no_entry", invalid_plugin, "exports no heddle_plugin_query"},
        Refusal{"hostile_unresolved", Code::plugin_unreadable, "heddle_test_function_of_nobody"},
        Refusal{"hostile_throws_entry", invalid_plugin, "threw an exception while it was asked"},
        Refusal{"hostile_throws_initialize", invalid_plugin, "it threw an exception across"},
        Refusal{"hostile_null_table", invalid_plugin, "answered with no table"},
        Refusal{"hostile_short_answer", invalid_plugin, "answered with no table"},
        Refusal{"hostile_abi_older", Code::plugin_abi, "was built for ABI 0.0, this host has ABI " ABI_TEXT},
        Refusal{"hostile_abi_newer", Code::plugin_abi, "this host has ABI " ABI_TEXT "; update Heddle"},
        Refusal{"hostile_abi_newer_minor", Code::plugin_abi, "this host has ABI " ABI_TEXT "; update Heddle"},
        Refusal{"hostile_abi_other_headers", Code::plugin_abi, "was built for another ABI " ABI_TEXT " (with hash 0x"},
        Refusal{"hostile_abi_no_hash", Code::plugin_abi,
                "was built for another ABI " ABI_TEXT " (without a hash) than this host's (with hash 0x"},
        Refusal{"hostile_short_plugin", invalid_plugin, "a table that is too short"},
        Refusal{"hostile_no_name", invalid_plugin, "has no name"},
        Refusal{"hostile_control_name", invalid_plugin, "other than printable ASCII"},
        Refusal{"hostile_null_operators", invalid_plugin, "operator table is null"},
        Refusal{"hostile_null_operator", invalid_plugin, "entry 0 of the operator table is null"},
        Refusal{"hostile_short_operator", invalid_plugin, "has struct_size 16"},
        Refusal{"hostile_huge_operators", invalid_plugin, "claims 4294967295 entries"},
        Refusal{"hostile_no_operator_name", invalid_plugin, "has no name"},
        Refusal{"hostile_no_infer", invalid_plugin, "\"Nothing\": has no infer function"},
        Refusal{"hostile_null_ports", invalid_plugin, "input table is null"},
        Refusal{"hostile_null_port", invalid_plugin, "entry 0 of the input table is null"},
        Refusal{"hostile_short_port", invalid_plugin, "has struct_size 8"},
        Refusal{"hostile_huge_ports", invalid_plugin, "input table claims 4294967295 entries"},
        Refusal{"hostile_port_twice", invalid_plugin, "\"x\" is declared twice"},
        Refusal{"hostile_alias_nowhere", invalid_plugin, "names an input that does not exist"},
        Refusal{"hostile_alias_of_one", invalid_plugin, "takes the bytes of one input, \"x\""},
        Refusal{"hostile_reserved_dtype", invalid_plugin, "whose number is reserved: this version has no operators for it"},
        Refusal{"hostile_output_not_differentiable", invalid_plugin,
                "has a gradient, and none of its outputs is differentiable, as is said of port \"y\""},
        Refusal{"hostile_dims_without_meaning", invalid_plugin, "\"x\" has dims \"N ?\": \"?\" is no name, no number"},
        Refusal{"hostile_dims_nobody_says", invalid_plugin, "\"y\" has dims \"N\": no input says \"N\""},
        Refusal{"hostile_commutative_of_one", invalid_plugin, "has the trait COMMUTATIVE, and not two inputs of the same dtypes"},
        Refusal{"hostile_commutative_of_several_dtypes", invalid_plugin, "has the trait COMMUTATIVE, and not two inputs"},
        Refusal{"hostile_input_may_update", invalid_plugin, "\"x\" may update what the net says, and is an input"},
        Refusal{"hostile_no_dtypes", invalid_plugin, "allows no dtype"},
        Refusal{"hostile_null_attributes", invalid_plugin, "attribute table is null"},
        Refusal{"hostile_default_without_content", invalid_plugin, "default of attribute \"axes\" has no content"},
        Refusal{"hostile_default_of_other_type", invalid_plugin, "default of attribute \"axes\" has another type"},
        Refusal{"hostile_subnet_without_ports", invalid_plugin, "\"axes\": does not say how its ports go with the operator's"},
        Refusal{"hostile_subnet_of_nobody", invalid_plugin, "takes inputs or outputs of the operator that do not exist"},
        Refusal{"hostile_subnet_undeclared", invalid_plugin, "has a subnet, and no function that says what it is run with"},
        Refusal{"hostile_ports_of_no_subnet", invalid_plugin, "\"axes\" has ports, and is no subnet"},
        Refusal{"hostile_null_gradient_roles", invalid_plugin, "gradient operator 0 has damaged roles"},
        Refusal{"hostile_bad_pointwise", invalid_plugin, "pointwise expression"},
        Refusal{"hostile_operator_twice", Code::duplicate_registration, "hostile::Nothing version 1"},
        Refusal{"hostile_kernel_without_operator", invalid_plugin, "an operator nobody declares"},
        Refusal{"hostile_kernel_without_run", invalid_plugin, "has no run function"},
        Refusal{"hostile_kernel_without_destroy", invalid_plugin, "has create but no destroy"},
        Refusal{"hostile_abort_without_async", invalid_plugin, "has abort, and is not asynchronous"},
        Refusal{"hostile_async_on_device", invalid_plugin, "is asynchronous on a device"},
        Refusal{"hostile_async_and_resumes", invalid_plugin, "is asynchronous and resumes"},
        Refusal{"hostile_resumes_on_device", invalid_plugin, "resumes on a device"},
        Refusal{"hostile_group_without_function", invalid_plugin, "has one of HEDDLE_KERNEL_GROUP and run_group without the other"},
        Refusal{"hostile_group_function_without_flag", invalid_plugin, "has one of HEDDLE_KERNEL_GROUP and run_group without the other"},
        Refusal{"hostile_group_and_async", invalid_plugin, "is launched in groups, and is asynchronous"},
        Refusal{"hostile_group_of_no_collective", invalid_plugin, "is launched in groups, and its operator is no collective"},
        Refusal{"hostile_kernel_twice", Code::duplicate_registration, "kernel of hostile::Nothing on cpu"},
        Refusal{"hostile_null_kernels", invalid_plugin, "kernel table is null"},
        Refusal{"hostile_short_kernel", invalid_plugin, "has struct_size 24"},
        Refusal{"hostile_resource_without_create", invalid_plugin, "\"hostile.thing\": has no create"},
        Refusal{"hostile_resource_without_scope", invalid_plugin, "has no scope, but 17"},
        Refusal{"hostile_resource_without_device", invalid_plugin, "has no device kind"},
        Refusal{"hostile_resource_with_device", invalid_plugin, "has a device kind, and is of no device"},
        Refusal{"hostile_resource_with_abort", invalid_plugin, "has abort, and is no communicator's"},
        Refusal{"hostile_rule_without_pattern", invalid_plugin, "has no pattern"},
        Refusal{"hostile_device_without_functions", invalid_plugin, "device backend"},
        Refusal{"hostile_initialize_fails", invalid_plugin, "the licence server said"},
        Refusal{"hostile_initialize_fails_silently", invalid_plugin, "failed to initialize (status 6)"},
        Refusal{"hostile_declares_port", invalid_plugin, "operator Copy: in_place() names \"z\""},
        Refusal{"hostile_declares_arity", invalid_plugin, "takes 1 inputs, 2 are declared"},
        Refusal{"hostile_declares_kernel", invalid_plugin, "priority() stands before any kernel"},
        Refusal{"hostile_declares_text", invalid_plugin, "beside the operator's pointwise text and does not say"},
        Refusal{"hostile_declares_no_text", invalid_plugin, "claims to equal a pointwise text, but the operator has none"},
        Refusal{"hostile_declares_rule", invalid_plugin, "same_as() names \"nothing\""},
        Refusal{"hostile_declares_index", invalid_plugin, "indexes() names \"table\""},
        Refusal{"hostile_declares_index_after", invalid_plugin,
                "operator Copy: indexes() stands after output \"other\", and is said of inputs: put it after its input"},
        Refusal{"hostile_declares_host_after", invalid_plugin, "on_host() stands after output \"y\""},
        Refusal{"hostile_declares_update_of_several", invalid_plugin, "declare it with variadic_out(), as \"more\" is variadic"},
        Refusal{"hostile_declares_dtype", invalid_plugin, "operator Wrong: a kernel function takes no dtype that input \"x\" allows"},
        Refusal{"hostile_declares_throw", invalid_plugin, "no space left on the device"}),
    [](const auto& instance) { return std::string(instance.param.plugin); });

TEST(Hostile, TheSoundPluginOfTheseTablesLoads) {
  Registry registry;
  const Status status = registry.load(test_plugin("hostile_sound"));
  EXPECT_TRUE(status.ok()) << status.text();  // otherwise the refusals above prove nothing
}

TEST(Hostile, ADuplicateNamesBothFiles) {
  Registry registry;
  ASSERT_TRUE(registry.load(test_plugin("hostile_sound")).ok());
  const std::string copy = testing::TempDir() + "/heddle_second.so";
  std::filesystem::copy_file(test_plugin("hostile_sound"), copy, std::filesystem::copy_options::overwrite_existing);
  const Status status = registry.load(copy);
  EXPECT_EQ(status.code(), Code::duplicate_registration);
  EXPECT_NE(status.text().find("heddle_second.so"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("hostile_sound.so"), std::string::npos) << status.text();
  EXPECT_EQ(registry.snapshot()->plugins().size(), 1u);
  std::filesystem::remove(copy);
}

TEST(Hostile, APluginThatDoesNotSayWhatItOffersOffersNothing) {
  for (const auto& [plugin, says] : {std::pair("hostile_throws_describe", "it threw an exception when it was asked what it offers"),
                                     std::pair("hostile_throws_silent", "it gives no reason")}) {
    Registry registry;
    ASSERT_TRUE(registry.load(test_plugin(plugin)).ok());
    const Library::Description found = registry.snapshot()->plugins()[0]->library->describe();
    EXPECT_FALSE(found.offers);
    EXPECT_EQ(found.text, says);
  }
}

TEST(Hostile, AShutdownThatThrowsStillCloses) {
  Registry registry;
  ASSERT_TRUE(registry.load(test_plugin("hostile_throws_shutdown")).ok());
  EXPECT_TRUE(registry.unload("hostile_throws").ok());
  EXPECT_FALSE(is_mapped("hostile_throws_shutdown"));
}

TEST(Hostile, FilesThatAreNoWholeLibraryAreRefused) {
  Registry registry;
  const std::string path = testing::TempDir() + "/heddle_broken.so";
  const auto refused = [&](const std::string& bytes, const char* what) {
    std::ofstream(path, std::ios::binary) << bytes;
    const Status status = registry.load(path);
    EXPECT_EQ(status.code(), Code::plugin_unreadable) << what << ": " << status.text();
    EXPECT_NE(status.text().find("heddle_broken.so"), std::string::npos) << status.text();
  };
  refused("", "empty");
  refused("#!/bin/sh\nexit 1\n", "text");
  std::ifstream file(example_plugin, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_GT(whole.size(), 4096u);
  // Up to the last loaded byte; the sections after it are read by debuggers only.
  for (size_t size = 1; size < whole.size() / 8; size += whole.size() / 64 + 1) refused(whole.substr(0, size), "truncated");
  std::string other = whole;
  other[18] = 40;  // e_machine: ARM
  refused(other, "another machine");
  other = whole;
  other[16] = 2;  // e_type: a program
  refused(other, "a program");
  std::filesystem::remove(path);
  EXPECT_EQ(registry.load(testing::TempDir()).code(), Code::plugin_unreadable);
  EXPECT_EQ(registry.load("/dev/null").code(), Code::plugin_unreadable);
}

class HostileKernel : public ::testing::TestWithParam<Failure> {};

TEST_P(HostileKernel, FailsWithOneSentence) {
  Registry registry;
  const Status loaded = registry.load(test_plugin("hostile_kernels"));
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  OperatorCall call;
  call.domain = "hostile";
  call.type = GetParam().type;
  call.inputs = {floats(Shape{4}, {1, 2, 3, 4})};
  for (int again = 0; again < 2; ++again) {
    const Status status = run_operator(registry, call).status();
    EXPECT_EQ(status.code(), GetParam().code) << status.text();
    EXPECT_NE(status.text().find(GetParam().text), std::string::npos) << status.text();
    EXPECT_LT(status.text().size(), 20'000u);
    for (const char c : status.text()) ASSERT_TRUE(c >= ' ' && c != 0x7f) << "control character in: " << status.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, HostileKernel, ::testing::ValuesIn(hostile_operators),
                         [](const auto& instance) { return std::string(instance.param.type); });

TEST(Hostile, WhatIsOnlySlowOrCleansUpBadlyStillRuns) {
  Registry registry;
  ASSERT_TRUE(registry.load(test_plugin("hostile_kernels")).ok());
  for (const char* type : {"Slow", "RawDestroyThrows"}) {
    OperatorCall call;
    call.domain = "hostile";
    call.type = type;
    call.inputs = {floats(Shape{2}, {1, 2})};
    const auto result = run_operator(registry, call);
    EXPECT_TRUE(result.ok()) << type << ": " << result.status().text();
  }
}

}  // namespace
}  // namespace heddle

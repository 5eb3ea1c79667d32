// Whole nets on the CUDA device, on the library that stands in for NVIDIA's: the host's results, and the calls in a run.
#include <algorithm>
#include <cmath>

#include "conformance/judge.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaNets = StandinTest;

TEST_F(CudaNets, PointwiseNetsOfAllKindsOfNumbersHaveTheHostsBits) {
  const Runtime runtime = cuda_runtime(2);
  auto host = prepare(runtime, mixed_net(), {});
  ASSERT_TRUE(host.ok() && host->context.run().ok()) << host.status().text();
  for (int seed = 0; seed <= 8; ++seed) {
    const StandinSetting drawn("SEED", std::to_string(seed));
    const Runtime again = cuda_runtime(1 + seed % 2);
    auto there = prepare(again, mixed_net(), on_cuda(1 + seed % 3));
    ASSERT_TRUE(there.ok()) << there.status().text();
    for (const PlanStep& step : there->plan().steps) EXPECT_TRUE(step.on_device || step.type == "Fence") << step.name << " is on the host";
    for (int run = 0; run < 2; ++run) {
      const Status status = there->context.run();
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(there->outputs(), host->outputs());
    }
  }
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaNets, FunctionsAreAsNearAsOnTheHost) {
  const auto net = [] {
    NetBuilder b("functions");
    const ValueId x = b.input("x", DType::f32, Shape{5, 33});
    for (const char* function : {"Tanh", "Exp", "Sigmoid", "Erf", "Sin", "Softplus"}) b.output(b.add1(function, function, {x}));
    return b.finish();
  };
  const Runtime runtime = cuda_runtime();
  auto host = prepare(runtime, net(), {});
  auto there = prepare(runtime, net(), on_cuda());
  ASSERT_TRUE(host.ok() && there.ok()) << there.status().text();
  ASSERT_TRUE(host->context.run().ok() && there->context.run().ok());
  for (size_t i = 0; i < host->context.output_count(); ++i) {
    const auto blob = [&](const Prepared& of) { return Blob::copy_of(DType::f32, Shape{5, 33}, of.context.output(i).data); };
    EXPECT_EQ(conformance::difference({blob(*there)}, {conformance::numbers_of(*blob(*host))}, {8}), "") << i;
  }
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaNets, TenRunsMakeTheSameCallsAndFewOfThem) {
  for (const auto& [net, streams] : {std::pair(mixed_net(), 1), std::pair(chain_net(20, Shape{64}), 1), std::pair(mixed_net(), 3)}) {
    SCOPED_TRACE(net.name + " on " + std::to_string(streams) + " streams");
    auto there = prepare(cuda_runtime(), Net(net), on_cuda(streams));
    ASSERT_TRUE(there.ok()) << there.status().text();
    ASSERT_TRUE(there->context.run().ok());
    const std::vector<std::string> first = calls_of_a_run(cuda, there->context);
    for (int run = 1; run < 10; ++run) EXPECT_EQ(calls_of_a_run(cuda, there->context), first);
    const auto steps = static_cast<size_t>(std::count_if(there->plan().steps.begin(), there->plan().steps.end(),
                                                         [](const PlanStep& step) { return step.on_device != nullptr; }));
    EXPECT_LE(static_cast<double>(first.size()), 2.5 * static_cast<double>(steps)) << ::testing::PrintToString(first);
  }
}

// Checked between the first and the last launch; inputs and outputs are bound to memory that is not pinned.
TEST_F(CudaNets, ARunWaitsForNothingAndAllocatesNothing) {
  const Runtime runtime = cuda_runtime();
  auto host = prepare(runtime, chain_net(6, Shape{50'000}), {});
  auto there = prepare(runtime, chain_net(6, Shape{50'000}), on_cuda(2));
  ASSERT_TRUE(host.ok() && host->context.run().ok());
  ASSERT_TRUE(there.ok()) << there.status().text();
  std::vector<std::vector<float>> results(6, std::vector<float>(50'000));
  for (size_t i = 0; i < results.size(); ++i) ASSERT_TRUE(there->context.bind_output(i, results[i].data()).ok());
  ASSERT_TRUE(there->context.run().ok());
  for (int run = 0; run < 3; ++run) {
    cuda.run(1);
    const std::vector<std::string> calls = calls_of_a_run(cuda, there->context);
    cuda.run(0);
    EXPECT_EQ(broken(), "");
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "cudaLaunchKernelExC"), 6);
    for (const char* never : {"cudaMallocAsync", "cudaFreeAsync", "cudaHostAlloc", "cudaHostRegister", "cudaStreamSynchronize",
                              "cudaEventCreateWithFlags", "cudaStreamCreateWithPriority"})
      EXPECT_EQ(std::count(calls.begin(), calls.end(), never), 0) << never;
  }
  EXPECT_EQ(there->outputs(), host->outputs());
}

TEST_F(CudaNets, WhatGoesIsGoneWithTheRuntime) {
  {
    const Runtime runtime = cuda_runtime(2);
    auto there = prepare(runtime, mixed_net(), on_cuda(2));
    ASSERT_TRUE(there.ok() && there->context.run().ok());
  }
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaNets, ProfilersSeeTheNamesOfOperators) {
  auto there = prepare(cuda_runtime(), chain_net(3, Shape{8}), on_cuda());
  ASSERT_TRUE(there.ok() && there->context.run().ok());
  cuda.log(1);
  ASSERT_TRUE(there->context.run().ok());
  EXPECT_STREQ(cuda.ranges(), "n0 (Pointwise),end,n1 (Pointwise),end,n2 (Pointwise),end");
  cuda.log(0);
}

// ---------------------------------------------------------------- failure

TEST_F(CudaNets, AnErrorOfAKernelIsOneErrorAndTheHostGoesOn) {
  const Runtime runtime = cuda_runtime(2);
  auto host = prepare(runtime, mixed_net(), {});
  ASSERT_TRUE(host.ok() && host->context.run().ok());
  const auto right = host->outputs();
  auto there = prepare(runtime, mixed_net(), on_cuda(2));
  ASSERT_TRUE(there.ok() && there->context.run().ok());
  cuda.fail(HEDDLE_STANDIN_LAUNCH, 2, cudaErrorIllegalAddress);
  const Status lost = there->context.run();
  EXPECT_EQ(lost.code(), Code::device_lost) << lost.text();
  EXPECT_TRUE(lost.diagnostic().attached.empty()) << lost.text();
  EXPECT_NE(lost.text().find("an illegal memory access was encountered (cudaErrorIllegalAddress)"), std::string::npos) << lost.text();
  EXPECT_NE(lost.text().find("the device is lost until the process ends"), std::string::npos) << lost.text();
  EXPECT_EQ(there->context.run().code(), Code::device_lost);
  const Status again = prepare(runtime, mixed_net(), on_cuda()).status();
  EXPECT_NE(again.text().find("an illegal memory access was encountered"), std::string::npos) << again.text();
  ASSERT_TRUE(host->context.run().ok());
  EXPECT_EQ(host->outputs(), right);
  EXPECT_EQ(broken(), "") << "nothing more was asked of it";
}

// The input is too large for the store kernel: each launch is a link of the chain.
TEST_F(CudaNets, WithBlockingTheOperatorThatFailedIsNamed) {
  ::setenv("HEDDLE_CUDA_BLOCKING", "1", 1);
  const Runtime runtime = cuda_runtime();
  auto there = prepare(runtime, chain_net(5, Shape{32}), on_cuda());
  ::unsetenv("HEDDLE_CUDA_BLOCKING");
  ASSERT_TRUE(there.ok()) << there.status().text();
  ASSERT_TRUE(there->context.run().ok());
  cuda.fail(HEDDLE_STANDIN_LAUNCH, 3, cudaErrorIllegalAddress);
  const Status lost = there->context.run();
  EXPECT_EQ(lost.code(), Code::device_lost) << lost.text();
  EXPECT_EQ(lost.diagnostic().node, "n2") << lost.text();
  EXPECT_EQ(lost.text().find("does not say which"), std::string::npos) << lost.text();
}

TEST_F(CudaNets, WithoutItAllThatItMayBeAreNamed) {
  auto there = prepare(cuda_runtime(), chain_net(5, Shape{32}), on_cuda());
  ASSERT_TRUE(there.ok() && there->context.run().ok());
  cuda.fail(HEDDLE_STANDIN_LAUNCH, 3, cudaErrorIllegalAddress);
  const Status lost = there->context.run();
  EXPECT_NE(lost.text().find("does not say which"), std::string::npos) << lost.text();
  EXPECT_NE(lost.text().find("\"n2\""), std::string::npos) << lost.text();
}

TEST_F(CudaNets, NoMemoryIsSaidWithNumbersAndLeavesNoErrorBehind) {
  const Runtime runtime = cuda_runtime();
  ASSERT_TRUE(prepare(runtime, chain_net(1, Shape{8}), on_cuda()).ok());
  const StandinSetting little("MEMORY", "5000");
  const Runtime small = cuda_runtime();
  const Status status = prepare(small, chain_net(1, Shape{4000}), on_cuda()).status();
  EXPECT_EQ(status.code(), Code::out_of_memory) << status.text();
  EXPECT_NE(status.text().find("bytes asked for, 5000 of 5000 free"), std::string::npos) << status.text();
  EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess) << "who asks next would take it for his";
}

// These operators have no pointwise text, and run by a program that is made for the call.
TEST_F(CudaNets, CastsAndFoldsHaveTheHostsBits) {
  NetBuilder b("casts");
  const ValueId x = b.input("x", DType::f32, Shape{4, 1, 6}), y = b.input("y", DType::f32, Shape{3, 1}),
                z = b.input("z", DType::f32, Shape{6});
  const ValueId h = b.input("h", DType::f16, Shape{5});
  for (const char* const type : {"Sum", "Mean", "Max", "Min"}) b.output(b.add1(type, std::string("of_three_") + type, {x, y, z}));
  b.output(b.add1("Max", "of_one", {x}));
  b.output(b.add1("Cast", "whole", {x}, {{"to", int64_t{7}}}));
  b.output(b.add1("Cast", "half", {x}, {{"to", int64_t{10}}}));
  b.output(b.add1("CastLike", "like", {x, h}));
  b.output(b.add1("Cast", "truth", {x}, {{"to", int64_t{9}}}));
  const Net net = b.finish();
  const Runtime runtime = cuda_runtime();
  auto host = prepare(runtime, net, {}), there = prepare(runtime, net, on_cuda());
  ASSERT_TRUE(host.ok() && host->context.run().ok()) << host.status().text();
  ASSERT_TRUE(there.ok() && there->context.run().ok()) << there.status().text();
  for (const PlanStep& step : there->plan().steps) EXPECT_TRUE(step.on_device || step.type == "Fence") << step.name << " is on the host";
  EXPECT_EQ(there->outputs(), host->outputs());
  EXPECT_EQ(broken(), "");
}

// Checks Pow of a base and an exponent whose dtypes differ, and its conversion to the base's dtype.
template <class Base, class Exponent>
void check_powers(DType base_dtype, const std::vector<Base>& bases, DType exponent_dtype, const std::vector<Exponent>& exponents) {
  const Shape shape{static_cast<int64_t>(bases.size())};
  NetBuilder b("powers");
  b.output(b.add1("Pow", "powers", {b.input("base", base_dtype, shape), b.input("exponent", exponent_dtype, shape)}));
  auto there = prepare(cuda_runtime(), b.finish(), on_cuda());
  ASSERT_TRUE(there.ok()) << there.status().text();
  for (const PlanStep& step : there->plan().steps) EXPECT_TRUE(step.on_device || step.type == "Fence") << step.name << " is on the host";
  ASSERT_TRUE(there->context.bind_input(0, bases.data()).ok() && there->context.bind_input(1, exponents.data()).ok());
  const Status status = there->context.run();
  ASSERT_TRUE(status.ok()) << status.text();
  const TensorView powers = there->context.output(0);
  ASSERT_EQ(powers.dtype, base_dtype);
  for (size_t i = 0; i < bases.size(); ++i) {
    const auto expected = static_cast<Base>(std::pow(static_cast<double>(bases[i]), static_cast<double>(exponents[i])));
    EXPECT_EQ(static_cast<const Base*>(powers.data)[i], expected) << +bases[i] << " ^ " << +exponents[i];
  }
}

TEST_F(CudaNets, PowersOfTwoDtypesHaveAKernelOfTheirOwn) {
  const std::vector<float> bases = {1.5f, -2, 0.25f, 3, -0.5f, 7, -0.0f, 2};
  check_powers<float, int32_t>(DType::f32, bases, DType::i32, {2, 3, -2, 0, 5, 1, 3, 100});
  check_powers<float, int64_t>(DType::f32, bases, DType::i64, {2, 3, -2, 0, 5, 1, 3, -140});
  // Computed in f64, and truncated for integers; 46340^2 and 3^19 are not exact in f32.
  check_powers<int32_t, float>(DType::i32, {2, 9, -3, 10, -2, 46340, 3, 5}, DType::f32, {3, 0.5f, 2, -1, 5, 2, 19, 2.5f});
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda

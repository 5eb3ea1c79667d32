// Devices that are not present: plans are made for them, and nothing runs on them. Each child is a separate process, because the plugin
// works with one description, or with none, for its whole process.
#include <unistd.h>

#include <cstdio>

#include "cuda/device/device_program.h"

namespace heddle::cuda::testing_standin {
namespace {

using CudaDescribed = StandinTest;

Result<Runtime> runtime_with(const std::string& description) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/cuda.so"};
  options.default_plugins = false;
  options.threads = 1;
  options.described_devices = {{"cuda", description}};
  return Runtime::create(options);
}

// Called in a child: ends it with 0 if there is no error.
[[noreturn]] void end(const char* wrong) {
  if (wrong) std::fprintf(stderr, "%s\n", wrong);
  ::_exit(wrong ? 1 : 0);
}

[[noreturn]] void plan_and_try_to_run() {
  const Result<Runtime> runtime = runtime_with("");
  if (!runtime.ok()) end(runtime.status().text().c_str());
  Result<Session> session = runtime->open(chain_net(4, Shape{3, 5}), on_cuda());
  if (!session.ok()) end(session.status().text().c_str());
  const auto plan = session->plan();
  if (!plan.ok()) end(plan.status().text().c_str());
  if ((*plan)->memory.size() != 2 || (*plan)->memory[1].described.empty()) end("the plan does not say that the device was described");
  const Result<Context> context = session->prepare();
  if (context.ok() || context.status().code() != Code::no_such_device) end("a context was made on a device that is not here");
  const auto x = small_numbers(DType::f32, Shape{3, 5}, 1);
  const auto ran = session->run({TensorView{DType::f32, Shape{3, 5}, const_cast<std::byte*>(x->data)}});
  if (ran.ok() || ran.status().code() != Code::no_such_device) end("a run was begun on a device that is not here");
  if (!runtime_with("").ok()) end("the same description was refused");
  if (runtime_with("{}").status().code() != Code::invalid_argument) end("another description was taken");
  end(nullptr);
}

[[noreturn]] void describe_too_late() {
  const Runtime real = cuda_runtime();
  Result<Session> session = real.open(chain_net(1, Shape{2}), on_cuda());
  if (!session.ok() || !session->plan().ok()) end("no plan was made for the device that is here");
  const Status late = runtime_with("").status();
  end(late.code() == Code::invalid_argument ? nullptr : "devices were described beside those that are here");
}

TEST_F(CudaDescribed, PlansAreMadeAndRunsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(plan_and_try_to_run(), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaDescribed, NotBesideThoseThatAreHere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(describe_too_late(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::cuda::testing_standin

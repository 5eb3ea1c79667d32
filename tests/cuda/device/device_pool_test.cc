// The memory of a GPU comes from a pool of the plugin's own, besides which the embedding program may use the device's default pool.
#include "cuda/standin_tests/standin_program.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaPool = StandinTest;

TEST_F(CudaPool, TheDevicesDefaultPoolIsLeftAlone) {
  cuda.log(1);
  {
    const Runtime runtime = cuda_runtime();
    auto here = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:0");
    auto there = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:1");
    ASSERT_TRUE(here.ok() && there.ok());
    EXPECT_TRUE((*here)->reaches(**there));
    auto prepared = prepare(runtime, mixed_net(), on_cuda(2));
    ASSERT_TRUE(prepared.ok() && prepared->context.run().ok()) << prepared.status().text();
  }
  const std::string calls = cuda.logged();
  cuda.log(0);
  for (const char* of_the_default_pool : {"cudaMallocAsync", "cudaDeviceGetMemPool", "cudaDeviceSetMemPool"})
    EXPECT_EQ(calls.find(of_the_default_pool), std::string::npos) << of_the_default_pool;
  EXPECT_NE(calls.find("cudaMallocFromPoolAsync"), std::string::npos);
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "") << "each device's pool went with it";
}

// Opening the plugin's memory to another device does not open the embedding program's allocations.
TEST_F(CudaPool, TheProgramsMemoryIsNotOpenedToOtherDevices) {
  const Runtime runtime = cuda_runtime();
  auto here = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:0");
  auto there = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:1");
  ASSERT_TRUE(here.ok() && there.ok() && (*here)->reaches(**there));
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t own = make_stream(cuda), others = make_stream(cuda, 1);
  void* const from = make_memory(cuda, 128, others);
  void* const to = make_memory(cuda, 128, own);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), own, AddOne{from, to}), cudaSuccess);
  EXPECT_EQ(broken(), "memory_of_other_device: cudaLaunchKernelExC: add_one");
}

// Memory that the pool keeps is returned to the driver with the last piece of memory.
TEST_F(CudaPool, IsTrimmedWhenNothingOfItIsUsed) {
  const Runtime runtime = cuda_runtime();
  auto device = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:0");
  ASSERT_TRUE(device.ok());
  auto one = (*device)->allocate(1000), other = (*device)->allocate(1000);
  ASSERT_TRUE(one.ok() && other.ok());
  const auto calls_of = [&](auto& memory) {
    cuda.log(1);
    *memory = {};
    const std::string calls = cuda.logged();
    cuda.log(0);
    return calls;
  };
  EXPECT_EQ(calls_of(one).find("cudaMemPoolTrimTo"), std::string::npos);
  EXPECT_NE(calls_of(other).find("cudaFreeAsync,cudaStreamSynchronize,cudaMemPoolTrimTo"), std::string::npos);
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaPool, ASizeThatIsNoneIsAnError) {
  ::setenv("HEDDLE_CUDA_POOL_BYTES", "much", 1);
  const Runtime runtime = cuda_runtime();
  const Status status = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:0").status();
  ::unsetenv("HEDDLE_CUDA_POOL_BYTES");
  EXPECT_NE(status.text().find("HEDDLE_CUDA_POOL_BYTES is \"much\", which is no number of bytes"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace heddle::cuda

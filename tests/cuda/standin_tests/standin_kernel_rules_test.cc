// The rules of the stand-in for kernels, their libraries and programs; standin_rules_test.cc has the others.
#include <cstring>

#include "standin_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using StandinRule = StandinTest;

TEST_F(StandinRule, wrong_device) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t there = make_stream(cuda, 1);
  char* const memory = static_cast<char*>(make_memory(cuda, 256, there));
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 256, there), cudaSuccess) << "copies and fills go to a stream of any device";
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), there, AddOne{memory, memory + 128}), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "wrong_device: cudaLaunchKernelExC");
}

TEST_F(StandinRule, launch_configuration) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 256, stream));
  const AddOne parameters{memory, memory + 128};
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, parameters), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, parameters, 1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(broken(), "launch_configuration: cudaLaunchKernelExC");
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, parameters, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(broken(), "launch_configuration: cudaLaunchKernelExC");
}

TEST_F(StandinRule, launch_parameters) {
  struct Large {
    char bytes[4104];
  };
  const Kernels kernels(cuda, R"(
struct Large { u8 bytes[4104]; };
struct Small { u8 bytes[4096]; };
HEDDLE_KERNEL(large, Large, p) {}
HEDDLE_KERNEL(small, Small, p) {}
)");
  const cudaStream_t stream = make_stream(cuda);
  const Large parameters = {};
  EXPECT_EQ(launch(cuda, kernels.get("small"), stream, parameters), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(launch(cuda, kernels.get("large"), stream, parameters), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "launch_parameters: cudaLaunchKernelExC");
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  EXPECT_EQ(cuda.cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernels.get("small")), nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "launch_parameters: cudaLaunchKernelExC");
}

TEST_F(StandinRule, unknown_kernel) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 256, stream));
  const cudaKernel_t kernel = kernels.get("add_one");
  EXPECT_EQ(cuda.cudaLibraryUnload(kernels.library), cudaSuccess);
  EXPECT_EQ(launch(cuda, kernel, stream, AddOne{memory, memory + 128}), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(broken(), "unknown_kernel: cudaLaunchKernelExC");
}

TEST_F(StandinRule, unknown_library) {
  const Kernels kernels(cuda, add_one_source);
  EXPECT_EQ(cuda.cudaLibraryUnload(kernels.library), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaLibraryUnload(kernels.library), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "unknown_library: cudaLibraryUnload");
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(cuda.cudaLibraryGetKernel(&kernel, kernels.library, "add_one"), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "unknown_library: cudaLibraryGetKernel");
}

TEST_F(StandinRule, unknown_program) {
  nvrtcProgram program = nullptr, stale = nullptr;
  ASSERT_EQ(cuda.nvrtcCreateProgram(&program, "", "a.cu", 0, nullptr, nullptr), NVRTC_SUCCESS);
  stale = program;
  EXPECT_EQ(cuda.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.nvrtcDestroyProgram(&stale), NVRTC_ERROR_INVALID_PROGRAM);
  EXPECT_EQ(broken(), "unknown_program: nvrtcDestroyProgram");
}

TEST_F(StandinRule, host_memory_of_kernel) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 128, stream));
  char* const pinned = make_pinned(cuda, 128);
  std::memset(pinned, 0, 128);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, AddOne{pinned, memory}), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  const std::vector<float> pageable(32);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, AddOne{pageable.data(), memory}), cudaSuccess);
  EXPECT_EQ(broken(), "host_memory_of_kernel: cudaLaunchKernelExC: add_one");
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

TEST_F(StandinRule, memory_of_other_device) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t here = make_stream(cuda), there = make_stream(cuda, 1);
  void* const from = make_memory(cuda, 128, there);
  void* const to = make_memory(cuda, 128, here);
  // Access to allocated memory, and access to a pool's memory, are granted separately.
  void* allocated = nullptr;
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cuda.cudaMalloc(&allocated, 128), cudaSuccess);
  EXPECT_EQ(cuda.cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cuda.cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), here, AddOne{allocated, to}), cudaSuccess);
  EXPECT_EQ(broken(), "");
  cudaMemPool_t pool = nullptr;
  cudaMemAccessDesc access = {};
  access.location = {cudaMemLocationTypeDevice, 0};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  EXPECT_EQ(cuda.cudaDeviceGetMemPool(&pool, 1), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), here, AddOne{from, to}), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(here), cudaSuccess);
  EXPECT_EQ(broken(), "");
  // In one direction only.
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), there, AddOne{from, to}), cudaSuccess);
  EXPECT_EQ(broken(), "memory_of_other_device: cudaLaunchKernelExC: add_one");
  EXPECT_EQ(cuda.cudaStreamSynchronize(there), cudaErrorIllegalAddress);
}

TEST_F(StandinRule, barrier) {
  struct None {
    uint64_t nothing;
  };
  const Kernels kernels(cuda, R"(
struct None { u64 nothing; };
HEDDLE_BLOCK_KERNEL(all, None, p) { __syncthreads(); }
HEDDLE_BLOCK_KERNEL(some, None, p) { if (threadIdx.x % 2 == 0) __syncthreads(); else __shfl_sync(0xffffffffu, 1, 0); }
)");
  const cudaStream_t stream = make_stream(cuda);
  EXPECT_EQ(launch(cuda, kernels.get("all"), stream, None{}), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(launch(cuda, kernels.get("some"), stream, None{}), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  EXPECT_EQ(broken(), "barrier: cudaLaunchKernelExC: some: threads wait for others that have ended, or that wait elsewhere");
}

}  // namespace
}  // namespace heddle::cuda

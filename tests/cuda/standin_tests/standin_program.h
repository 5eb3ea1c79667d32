// Short forms for tiny programs of CUDA's calls: calls that must succeed are checked, so that the call under test is left.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "generate/texts.h"
#include "load/temporary_folder.h"
#include "standin_support.h"

namespace heddle::cuda::testing_standin {

inline cudaStream_t make_stream(const Standin& cuda, int device = 0, unsigned int flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cuda.cudaSetDevice(device), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamCreateWithPriority(&stream, flags, 0), cudaSuccess);
  EXPECT_EQ(cuda.cudaSetDevice(0), cudaSuccess);
  return stream;
}

inline cudaEvent_t make_event(const Standin& cuda, int device = 0) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cuda.cudaSetDevice(device), cudaSuccess);
  EXPECT_EQ(cuda.cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cuda.cudaSetDevice(0), cudaSuccess);
  return event;
}

// Allocates memory of the stream's device, which all streams may use.
inline void* make_memory(const Standin& cuda, size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  EXPECT_EQ(cuda.cudaMallocAsync(&memory, bytes, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  return memory;
}

inline char* make_pinned(const Standin& cuda, size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(cuda.cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), cudaSuccess);
  return static_cast<char*>(memory);
}

// Kernels that follow text/element.cuh, loaded.
class Kernels {
 public:
  Kernels(const Standin& cuda, const std::string& source) : cuda_(cuda) {
    const std::string text = std::string(texts().at("element")) + source;
    nvrtcProgram program = nullptr;
    const char* const options[] = {"--gpu-architecture=sm_90", "--fmad=false"};
    EXPECT_EQ(cuda.nvrtcCreateProgram(&program, text.c_str(), "test.cu", 0, nullptr, nullptr), NVRTC_SUCCESS);
    EXPECT_EQ(cuda.nvrtcCompileProgram(program, 2, options), NVRTC_SUCCESS);
    size_t bytes = 0;
    EXPECT_EQ(cuda.nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
    std::string cubin(bytes, '\0');
    EXPECT_EQ(cuda.nvrtcGetCUBIN(program, cubin.data()), NVRTC_SUCCESS);
    EXPECT_EQ(cuda.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
    EXPECT_EQ(cuda.cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
  }
  cudaKernel_t get(const char* name) const {
    cudaKernel_t kernel = nullptr;
    EXPECT_EQ(cuda_.cudaLibraryGetKernel(&kernel, library, name), cudaSuccess);
    return kernel;
  }
  cudaLibrary_t library = nullptr;

 private:
  const Standin& cuda_;
};

// Launches with one struct of parameters, and at most 1024 threads.
template <class Parameters>
cudaError_t launch(const Standin& cuda, cudaKernel_t kernel, cudaStream_t stream, const Parameters& parameters, unsigned int blocks = 1,
                   unsigned int threads = 32) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  void* arguments[] = {const_cast<Parameters*>(&parameters)};
  return cuda.cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments);
}

// Adds one to 32 floats.
struct AddOne {
  const void* from;
  void* to;
};
inline const char* const add_one_source = R"(
struct AddOne { const float* from; float* to; };
HEDDLE_KERNEL(add_one, AddOne, p) { p.to[threadIdx.x] = p.from[threadIdx.x] + 1.0f; }
)";

// While this is closed no work of the stand-in begins.
class Hold {
 public:
  explicit Hold(const Standin& cuda) : cuda_(cuda), setting_("HOLD", file_) {
    std::ofstream(file_) << "held";
    read_settings();
  }
  ~Hold() { open(); }
  void open() const { std::filesystem::remove(file_); }

 private:
  void read_settings() const {
    cudaDeviceProp properties = {};
    EXPECT_EQ(cuda_.cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  }
  const Standin& cuda_;
  const heddle::testing::TemporaryFolder folder_;
  const std::string file_ = (folder_.path() / "hold").string();
  const StandinSetting setting_;
};

}  // namespace heddle::cuda::testing_standin

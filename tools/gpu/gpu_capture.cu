// gpu_capture: what may be done while a stream is captured into a CUDA graph, on this machine: the plugin's own calls, and those that it
// has to keep out of a capture. tools/bundle.sh builds it, tools/gpu_test.sh runs it:
//
//   nvcc -O3 -std=c++17 -arch=all-major -cudart static gpu_capture.cu -lcublasLt -lcudnn -o gpu_capture
//
// A line for each call and mode of capture, with tabs between: the call, the mode, "allowed" or the error, and where it came from: the call
// itself, the end of the capture, or the launch of the graph. Ends with 1 where a call around them fails, with 2 where there is no device.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "checked_call.h"

namespace {

__global__ void add_one(float* x) {
  x[threadIdx.x] += 1;
}

constexpr size_t small_bytes = size_t{32} << 10, large_bytes = size_t{1} << 20;

// The calls work with these objects, made before any capture.
struct Objects {
  cudaStream_t other = nullptr;
  cudaEvent_t captured = nullptr, outside = nullptr;
  float *device = nullptr, *target = nullptr;
  void* pinned = nullptr;
  std::vector<char> pageable = std::vector<char>(large_bytes, 1);
  cudaMemPool_t pool = nullptr;

  Objects() {
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (cudaEvent_t* const event : {&captured, &outside}) MUST(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    MUST(cudaMalloc(&device, large_bytes));
    MUST(cudaMalloc(&target, large_bytes));
    MUST(cudaMemset(device, 0, large_bytes));
    MUST(cudaMallocHost(&pinned, large_bytes));
    MUST(cudaEventRecord(outside, other));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    MUST(cudaMemPoolCreate(&pool, &properties));
    MUST(cudaDeviceSynchronize());
  }
};

std::string name_of(cudaError_t error) {
  return error == cudaSuccess ? "" : cudaGetErrorName(error);
}
std::string elsewhere(const std::function<cudaError_t()>& call) {
  cudaError_t error = cudaSuccess;
  std::thread([&] {
    error = call();
    cudaGetLastError();
  }).join();
  return name_of(error);
}

// Returns the name of the error, or an empty text.
using Call = std::function<std::string(cudaStream_t)>;

const char* name_of(cudaStreamCaptureMode mode) {
  switch (mode) {
    case cudaStreamCaptureModeGlobal:
      return "global";
    case cudaStreamCaptureModeThreadLocal:
      return "thread-local";
    default:
      return "relaxed";
  }
}

// Each in a stream of its own, which stays: cuDNN's handle may look back at the one before.
void ask(const char* name, const Call& call, cudaStreamCaptureMode mode) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaStreamBeginCapture(stream, mode));
  std::string error = call(stream), where = "the call";
  cudaGetLastError();
  const std::string ended = name_of(cudaStreamEndCapture(stream, &graph));
  if (error.empty() && !ended.empty()) error = ended, where = "the end of the capture";
  // A call that is refused may still leave the capture whole.
  if (!error.empty() && where == "the call" && ended.empty()) where += ", and the capture went on";
  if (error.empty()) {
    where = "launching the graph";
    error = name_of(cudaGraphInstantiate(&exec, graph, 0));
    for (int run = 0; run < 2 && error.empty(); ++run) error = name_of(cudaGraphLaunch(exec, stream));
    if (error.empty()) error = name_of(cudaStreamSynchronize(stream));
  }
  if (error.empty())
    std::printf("%s\t%s\tallowed\t-\n", name, name_of(mode));
  else
    std::printf("%s\t%s\t%s\t%s\n", name, name_of(mode), error.c_str(), where.c_str());
  std::fflush(stdout);
  if (exec) MUST(cudaGraphExecDestroy(exec));
  if (graph) MUST(cudaGraphDestroy(graph));
  cudaGetLastError();
  MUST(cudaDeviceSynchronize());
}

void ask_all_modes(const char* name, const Call& call) {
  for (const cudaStreamCaptureMode mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed})
    ask(name, call, mode);
}

void ask_copies(Objects& o) {
  const auto copy = [](void* to, const void* from, size_t bytes) {
    return [=](cudaStream_t s) { return name_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s)); };
  };
  ask_all_modes("launch of a kernel", [&](cudaStream_t s) {
    add_one<<<1, 32, 0, s>>>(o.device);
    return name_of(cudaGetLastError());
  });
  ask_all_modes("copy of 32 KiB, pageable to device", copy(o.device, o.pageable.data(), small_bytes));
  ask_all_modes("copy of 1 MiB, pageable to device", copy(o.device, o.pageable.data(), large_bytes));
  ask_all_modes("copy of 1 MiB, device to pageable", copy(o.pageable.data(), o.device, large_bytes));
  ask_all_modes("copy of 1 MiB, pinned to device", copy(o.device, o.pinned, large_bytes));
  ask_all_modes("copy of 1 MiB, device to pinned", copy(o.pinned, o.device, large_bytes));
  ask_all_modes("copy of 1 MiB, device to device", copy(o.target, o.device, large_bytes));
  ask_all_modes("memset", [&](cudaStream_t s) { return name_of(cudaMemsetAsync(o.device, 0, large_bytes, s)); });
  ask_all_modes("host function", [](cudaStream_t s) {
    return name_of(cudaLaunchHostFunc(
        s, [](void*) {}, nullptr));
  });
}

void ask_events(Objects& o) {
  ask_all_modes("event recorded and waited for across two streams", [&](cudaStream_t s) {
    std::string error = name_of(cudaEventRecord(o.captured, s));
    if (error.empty()) error = name_of(cudaStreamWaitEvent(o.other, o.captured, 0));
    if (error.empty()) {
      add_one<<<1, 32, 0, o.other>>>(o.device);
      error = name_of(cudaEventRecord(o.captured, o.other));
    }
    return error.empty() ? name_of(cudaStreamWaitEvent(s, o.captured, 0)) : error;
  });
  ask_all_modes("wait for an event from before the capture", [&](cudaStream_t s) { return name_of(cudaStreamWaitEvent(s, o.outside, 0)); });
  ask_all_modes("query of an event from before the capture", [&](cudaStream_t) { return name_of(cudaEventQuery(o.outside)); });
  ask_all_modes("the same by another thread", [&](cudaStream_t) { return elsewhere([&] { return cudaEventQuery(o.outside); }); });
  const auto recorded = [&](cudaStream_t s, const std::function<std::string()>& then) {
    const std::string error = name_of(cudaEventRecord(o.captured, s));
    return error.empty() ? then() : error;
  };
  ask_all_modes("query of an event that was recorded in the capture",
                [&](cudaStream_t s) { return recorded(s, [&] { return name_of(cudaEventQuery(o.captured)); }); });
  ask_all_modes("the same by another thread, of such an event",
                [&](cudaStream_t s) { return recorded(s, [&] { return elsewhere([&] { return cudaEventQuery(o.captured); }); }); });
  ask_all_modes("query of the stream itself", [](cudaStream_t s) { return name_of(cudaStreamQuery(s)); });
  ask_all_modes("wait of the host for another stream", [&](cudaStream_t) { return name_of(cudaStreamSynchronize(o.other)); });
}

void ask_memory(Objects& o) {
  void* memory = nullptr;
  const auto freed = [&](cudaError_t allocated, cudaStream_t s) {
    return allocated == cudaSuccess ? name_of(cudaFreeAsync(memory, s)) : name_of(allocated);
  };
  ask_all_modes("cudaMallocAsync and cudaFreeAsync", [&](cudaStream_t s) { return freed(cudaMallocAsync(&memory, large_bytes, s), s); });
  ask_all_modes("cudaMallocFromPoolAsync and cudaFreeAsync",
                [&](cudaStream_t s) { return freed(cudaMallocFromPoolAsync(&memory, large_bytes, o.pool, s), s); });
  ask_all_modes("cudaMalloc", [&](cudaStream_t) {
    const std::string error = name_of(cudaMalloc(&memory, large_bytes));
    if (error.empty()) cudaFree(memory);
    return error;
  });
  ask_all_modes("cudaMalloc by another thread", [&](cudaStream_t) {
    return elsewhere([&] {
      const cudaError_t error = cudaMalloc(&memory, large_bytes);
      if (error == cudaSuccess) cudaFree(memory);
      return error;
    });
  });
  ask_all_modes("cudaHostAlloc", [&](cudaStream_t) {
    const std::string error = name_of(cudaHostAlloc(&memory, large_bytes, cudaHostAllocDefault));
    if (error.empty()) cudaFreeHost(memory);
    return error;
  });
  ask_all_modes("cudaSetDevice", [](cudaStream_t) { return name_of(cudaSetDevice(0)); });
}

void ask_cublaslt(Objects& o) {
  constexpr int side = 128;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  MUST_BLAS(cublasLtCreate(&handle));
  MUST_BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  MUST_BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, side, side, side));
  const float one = 1, zero = 0;
  ask_all_modes("product by cuBLASLt", [&](cudaStream_t s) -> std::string {
    const cublasStatus_t status = cublasLtMatmul(handle, operation, &one, o.device, layout, o.device, layout, &zero, o.target, layout,
                                                 o.target, layout, nullptr, nullptr, 0, s);
    return status == CUBLAS_STATUS_SUCCESS ? "" : cublasLtGetStatusName(status);
  });
  cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(operation);
  cublasLtDestroy(handle);
}

void ask_cudnn(Objects& o) {
  constexpr int channels = 8, side = 32;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  MUST_DNN(cudnnCreate(&handle));
  MUST_DNN(cudnnCreateTensorDescriptor(&tensor));
  MUST_DNN(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, channels, side, side));
  MUST_DNN(cudnnCreateFilterDescriptor(&filter));
  MUST_DNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, channels, channels, 3, 3));
  MUST_DNN(cudnnCreateConvolutionDescriptor(&convolution));
  MUST_DNN(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  constexpr cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  size_t bytes = 0;
  MUST_DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, tensor, filter, convolution, tensor, algorithm, &bytes));
  void* workspace = nullptr;
  MUST(cudaMalloc(&workspace, bytes + 1));
  const float one = 1, zero = 0;
  const float* const weights = o.device + large_bytes / 2 / sizeof(float);
  const auto run = [&](cudaStream_t s) -> std::string {
    cudnnStatus_t status = cudnnSetStream(handle, s);
    if (status == CUDNN_STATUS_SUCCESS)
      status = cudnnConvolutionForward(handle, &one, tensor, o.device, filter, weights, convolution, algorithm, workspace, bytes, &zero,
                                       tensor, o.target);
    return status == CUDNN_STATUS_SUCCESS ? "" : cudnnGetErrorString(status);
  };
  // The first execution loads kernels, which is asked on its own.
  ask("convolution by cuDNN, the first of its shape", run, cudaStreamCaptureModeThreadLocal);
  must(run(o.other).empty(), "cudnnConvolutionForward", "outside of a capture");
  MUST(cudaStreamSynchronize(o.other));
  ask_all_modes("convolution by cuDNN", run);
  MUST(cudaFree(workspace));
  cudnnDestroyConvolutionDescriptor(convolution);
  cudnnDestroyFilterDescriptor(filter);
  cudnnDestroyTensorDescriptor(tensor);
  cudnnDestroy(handle);
}

}  // namespace

int main() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    std::printf("no device: %s\n", cudaGetErrorName(counted));
    return 2;
  }
  Objects objects;
  ask_copies(objects);
  ask_events(objects);
  ask_memory(objects);
  ask_cublaslt(objects);
  ask_cudnn(objects);
  return 0;
}

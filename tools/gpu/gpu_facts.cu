// gpu_facts: what the design of the CUDA plugin rests on, measured on this machine in under two minutes: launches, graphs, how soon the
// host sees that work is done, memory and copies, products of matrices, and what an error leaves behind. tools/bundle.sh builds it,
// tools/gpu_test.sh runs it:
//
//   nvcc -O3 -std=c++17 -arch=all-major -cudart static gpu_facts.cu -lcublasLt -lcudnn -o gpu_facts
//
// One fact a line. With --short: launches, one graph, completion, copies, and none of products or errors. Ends with 1 where a call fails,
// and with 2 where there is no device.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "checked_call.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}
double since(Clock::time_point begin) {
  return microseconds(begin, Clock::now());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void fact(const char* name, double value, const char* unit) {
  std::printf("%-58s %12.3f %s\n", name, value, unit);
}

__global__ void nothing() {}

__global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

__global__ void trap() {
  asm("trap;");
}

__global__ void triad(float4* y, const float4* a, const float4* b, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    const float4 p = a[i], q = b[i];
    y[i] = make_float4(p.x + 2 * q.x, p.y + 2 * q.y, p.z + 2 * q.z, p.w + 2 * q.w);
  }
}

void launches(cudaStream_t stream) {
  for (const int count : {1000, 10000}) {
    MUST(cudaStreamSynchronize(stream));
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) nothing<<<1, 32, 0, stream>>>();
    const double host = since(begin);
    MUST(cudaStreamSynchronize(stream));
    std::printf("launch of an empty kernel, %5d in a row: host %.3f us each, device included %.3f us each\n", count, host / count,
                since(begin) / count);
  }
}

void graph_of(int nodes, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < nodes; ++i) nothing<<<1, 32, 0, stream>>>();
  MUST(cudaStreamEndCapture(stream, &graph));
  auto begin = Clock::now();
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  const double instantiate = since(begin);
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  std::vector<double> host, whole;
  for (int run = 0; run < 50; ++run) {
    begin = Clock::now();
    MUST(cudaGraphLaunch(exec, stream));
    host.push_back(since(begin));
    MUST(cudaStreamSynchronize(stream));
    whole.push_back(since(begin));
  }
  cudaGraphExecUpdateResultInfo info;
  begin = Clock::now();
  MUST(cudaGraphExecUpdate(exec, graph, &info));
  std::printf("graph of %4d nodes: instantiate %.1f us, update %.1f us, launch %.2f us on the host, %.2f us until done\n", nodes,
              instantiate, since(begin), median(host), median(whole));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
}

// How soon the host knows that a kernel of some 10 us is done, by each of three ways.
void completion(cudaStream_t stream) {
  constexpr long long cycles = 20000;
  cudaEvent_t event = nullptr;
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  std::vector<double> record, query, polled, called, synchronised;
  for (int run = 0; run < 200; ++run) {
    spin<<<1, 1, 0, stream>>>(cycles);
    auto begin = Clock::now();
    MUST(cudaEventRecord(event, stream));
    record.push_back(since(begin));
    const auto asked = Clock::now();
    cudaEventQuery(event);
    query.push_back(since(asked));
    while (cudaEventQuery(event) == cudaErrorNotReady) {
    }
    polled.push_back(since(begin));
    MUST(cudaStreamSynchronize(stream));

    struct Done {
      std::atomic<bool> is{false};
      Clock::time_point at;
    } done;
    spin<<<1, 1, 0, stream>>>(cycles);
    begin = Clock::now();
    const auto tell = [](void* told) {
      auto* const its = static_cast<Done*>(told);
      its->at = Clock::now();
      its->is.store(true);
    };
    MUST(cudaLaunchHostFunc(stream, tell, &done));
    while (!done.is.load()) {
    }
    called.push_back(microseconds(begin, done.at));
    MUST(cudaStreamSynchronize(stream));

    spin<<<1, 1, 0, stream>>>(cycles);
    begin = Clock::now();
    MUST(cudaStreamSynchronize(stream));
    synchronised.push_back(since(begin));
  }
  fact("event record, host", median(record), "us");
  fact("event query that finds nothing, host", median(query), "us");
  fact("kernel of 20,000 cycles: seen by polling an event after", median(polled), "us");
  fact("the same: seen by a host function after", median(called), "us");
  fact("the same: seen by synchronising the stream after", median(synchronised), "us");
  MUST(cudaEventDestroy(event));
}

void allocations(cudaStream_t stream) {
  std::vector<double> pooled, plain;
  for (int run = 0; run < 100; ++run) {
    void* memory = nullptr;
    const auto begin = Clock::now();
    MUST(cudaMallocAsync(&memory, size_t{8} << 20, stream));
    MUST(cudaFreeAsync(memory, stream));
    pooled.push_back(since(begin));
  }
  for (int run = 0; run < 20; ++run) {
    void* memory = nullptr;
    const auto begin = Clock::now();
    MUST(cudaMalloc(&memory, size_t{64} << 20));
    MUST(cudaFree(memory));
    plain.push_back(since(begin));
  }
  fact("cudaMallocAsync + cudaFreeAsync, 8 MiB", median(pooled), "us");
  fact("cudaMalloc + cudaFree, 64 MiB", median(plain), "us");
}

// The second of two copies each way.
void copies(cudaStream_t stream) {
  constexpr size_t bytes = size_t{256} << 20;
  void *device = nullptr, *pinned = nullptr;
  MUST(cudaMalloc(&device, bytes));
  const auto begin = Clock::now();
  MUST(cudaMallocHost(&pinned, bytes));
  fact("cudaMallocHost of 256 MiB", since(begin) / 1000, "ms");
  std::vector<char> pageable(bytes, 1);
  const struct {
    const char* name;
    void* host;
    cudaMemcpyKind kind;
  } ways[] = {{"pinned to device", pinned, cudaMemcpyHostToDevice},
              {"device to pinned", pinned, cudaMemcpyDeviceToHost},
              {"pageable to device", pageable.data(), cudaMemcpyHostToDevice},
              {"device to pageable", pageable.data(), cudaMemcpyDeviceToHost}};
  for (const auto& way : ways) {
    const bool up = way.kind == cudaMemcpyHostToDevice;
    for (int run = 0; run < 2; ++run) {
      const auto start = Clock::now();
      MUST(cudaMemcpyAsync(up ? device : way.host, up ? way.host : device, bytes, way.kind, stream));
      const double call = since(start);
      MUST(cudaStreamSynchronize(stream));
      if (run == 1)
        std::printf("copy 256 MiB %-20s %8.2f GB/s, the call itself took %.1f us\n", way.name, bytes / since(start) / 1e3, call);
    }
  }
  MUST(cudaFree(device));
  MUST(cudaFreeHost(pinned));
}

// What memory can do: y = a + 2 b.
void bandwidth(cudaStream_t stream, int multiprocessors) {
  constexpr size_t bytes = size_t{256} << 20;
  constexpr int runs = 20;
  std::array<float4*, 3> arrays = {};
  for (float4*& array : arrays) MUST(cudaMalloc(&array, bytes));
  for (int pass = 0; pass < 2; ++pass) {
    const auto begin = Clock::now();
    for (int i = 0; i < runs; ++i) triad<<<multiprocessors * 8, 512, 0, stream>>>(arrays[0], arrays[1], arrays[2], bytes / sizeof(float4));
    MUST(cudaStreamSynchronize(stream));
    if (pass == 1) fact("triad, float4, 256 MiB arrays", runs * 3.0 * bytes / since(begin) / 1e3, "GB/s");
  }
  for (float4* const array : arrays) MUST(cudaFree(array));
}

// C[m, n] = A[m, k] B[k, n] in column-major order, on zeros: the time of one in a row of 50.
void product(cublasLtHandle_t handle, cudaStream_t stream, std::array<int, 3> sizes, cudaDataType type, cublasComputeType_t compute,
             const char* name) {
  const auto [m, n, k] = sizes;
  const size_t width = type == CUDA_R_32F ? 4 : 2, workspace_bytes = size_t{64} << 20;
  const size_t bytes[] = {width * m * k, width * k * n, width * m * n, workspace_bytes};
  void* memory[4] = {};
  for (int i = 0; i < 4; ++i) {
    MUST(cudaMalloc(&memory[i], bytes[i]));
    MUST(cudaMemset(memory[i], 0, bytes[i]));
  }
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  MUST_BLAS(cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F));
  MUST_BLAS(cublasLtMatrixLayoutCreate(&a, type, m, k, m));
  MUST_BLAS(cublasLtMatrixLayoutCreate(&b, type, k, n, k));
  MUST_BLAS(cublasLtMatrixLayoutCreate(&c, type, m, n, m));
  MUST_BLAS(cublasLtMatmulPreferenceCreate(&preference));
  MUST_BLAS(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes));
  cublasLtMatmulHeuristicResult_t algorithms[8];
  int found = 0;
  const auto asked = Clock::now();
  MUST_BLAS(cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, c, preference, 8, algorithms, &found));
  const double heuristic = since(asked);
  const float one = 1, zero = 0;
  double best = 1e30, first = 0;
  for (int i = 0; i < found; ++i) {
    const auto run = [&] {
      return cublasLtMatmul(handle, operation, &one, memory[0], a, memory[1], b, &zero, memory[2], c, memory[2], c, &algorithms[i].algo,
                            memory[3], workspace_bytes, stream);
    };
    if (run() != CUBLAS_STATUS_SUCCESS) continue;
    MUST(cudaStreamSynchronize(stream));
    const auto begin = Clock::now();
    for (int r = 0; r < 50; ++r) MUST_BLAS(run());
    MUST(cudaStreamSynchronize(stream));
    const double each = since(begin) / 50;
    if (i == 0) first = each;
    best = std::min(best, each);
  }
  std::printf("product %-5s %5d x %5d x %5d: heuristic's first %8.2f us, best of %d %8.2f us (%.1f TFLOP/s), heuristic call %.0f us\n",
              name, m, n, k, first, found, best, 2.0 * m * n * k / best / 1e6, heuristic);
  cublasLtMatmulPreferenceDestroy(preference);
  for (const cublasLtMatrixLayout_t layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(operation);
  for (void* const part : memory) MUST(cudaFree(part));
}

void products(cudaStream_t stream) {
  cublasLtHandle_t handle = nullptr;
  auto begin = Clock::now();
  MUST_BLAS(cublasLtCreate(&handle));
  fact("cublasLtCreate", since(begin) / 1000, "ms");
  begin = Clock::now();
  cudnnHandle_t cudnn = nullptr;
  must(cudnnCreate(&cudnn) == CUDNN_STATUS_SUCCESS, "cudnnCreate", "cuDNN");
  fact("cudnnCreate", since(begin) / 1000, "ms");
  constexpr std::array<int, 3> sizes[] = {{768, 128, 768}, {3072, 128, 768}, {768, 4096, 768}, {3072, 4096, 768}, {4096, 4096, 4096}};
  for (const auto& size : sizes) {
    product(handle, stream, size, CUDA_R_16BF, CUBLAS_COMPUTE_32F, "bf16");
    product(handle, stream, size, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, "tf32");
    product(handle, stream, size, CUDA_R_32F, CUBLAS_COMPUTE_32F, "f32");
  }
  cudnnDestroy(cudnn);
  cublasLtDestroy(handle);
}

// The context is lost behind it.
void after_an_error(cudaStream_t stream) {
  static std::atomic<int> called{0};
  trap<<<1, 1, 0, stream>>>();
  const cudaError_t enqueued = cudaLaunchHostFunc(
      stream, [](void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); }, &called);
  const cudaError_t synchronised = cudaStreamSynchronize(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  void* memory = nullptr;
  const cudaError_t again = cudaMalloc(&memory, 1024);
  std::printf("after a trap: host function enqueued: %s, called %d times; synchronize: %s; cudaMalloc afterwards: %s\n",
              cudaGetErrorName(enqueued), called.load(), cudaGetErrorName(synchronised), cudaGetErrorName(again));
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_short = argc > 1 && std::strcmp(argv[1], "--short") == 0;
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    std::printf("no device: %s\n", cudaGetErrorName(counted));
    return 2;
  }
  cudaDeviceProp properties;
  MUST(cudaGetDeviceProperties(&properties, 0));
  int driver = 0, runtime = 0;
  MUST(cudaDriverGetVersion(&driver));
  MUST(cudaRuntimeGetVersion(&runtime));
  std::printf("%s, %d SMs, compute %d.%d, %.1f GB, L2 %d MB, async engines %d; driver %d, runtime %d, cuDNN %zu, cuBLASLt %zu\n",
              properties.name, properties.multiProcessorCount, properties.major, properties.minor, properties.totalGlobalMem / 1e9,
              properties.l2CacheSize >> 20, properties.asyncEngineCount, driver, runtime, cudnnGetVersion(), cublasLtGetVersion());
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  launches(stream);
  if (is_short)
    graph_of(100, stream);
  else
    for (const int nodes : {10, 100, 1000}) graph_of(nodes, stream);
  completion(stream);
  copies(stream);
  if (is_short) return 0;
  allocations(stream);
  bandwidth(stream, properties.multiProcessorCount);
  products(stream);
  after_an_error(stream);
  return 0;
}

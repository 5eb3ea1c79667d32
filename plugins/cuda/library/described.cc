#include "library/described.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "generate/texts.h"
#include "library/api.h"

namespace heddle::cuda {

using plugin::Status;

// ---------------------------------------------------------------- reading

namespace {

using Json = nlohmann::json;

Status wrong(const char* key, const char* should) {
  return plugin::invalid(std::string("a description of devices has to have \"") + key + "\", " + should);
}

template <class Number>
Status read_number(const Json& from, const char* key, Number least, Number most, Number* number) {
  const std::string should = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (!from.is_object() || !from.contains(key) || !from[key].is_number_unsigned()) return wrong(key, should.c_str());
  const auto value = from[key].get<uint64_t>();
  if (value < static_cast<uint64_t>(least) || value > static_cast<uint64_t>(most)) return wrong(key, should.c_str());
  *number = static_cast<Number>(value);
  return {};
}

Status read_text(const Json& from, const char* key, std::string* text) {
  constexpr size_t most = 1000;
  const std::string given = from.contains(key) && from[key].is_string() ? from[key].get<std::string>() : std::string();
  const bool is_line = std::none_of(given.begin(), given.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
  if (given.empty() || given.size() > most || !is_line) return wrong(key, "a line of text");
  *text = given;
  return {};
}

}  // namespace

Status read_description(std::string_view text, DeviceDescription* description) {
  if (text.empty()) text = texts().at("h200");
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object()) return plugin::invalid("a description of devices is a JSON object, as docs/cuda.md shows");
  DeviceDescription d;
  std::string capability;
  HEDDLE_PLUGIN_CHECK(read_text(file, "name", &d.name));
  HEDDLE_PLUGIN_CHECK(read_number(file, "devices", 1, 64, &d.devices));
  HEDDLE_PLUGIN_CHECK(read_text(file, "compute_capability", &capability));
  int end = 0;
  const bool is_version = std::sscanf(capability.c_str(), "%2d.%1d%n", &d.major, &d.minor, &end) == 2;
  if (!is_version || static_cast<size_t>(end) != capability.size() || d.major < 5 || d.major > 20)
    return wrong("compute_capability", "as in \"9.0\"");
  HEDDLE_PLUGIN_CHECK(read_number(file, "multiprocessors", 1, 4096, &d.multiprocessors));
  HEDDLE_PLUGIN_CHECK(read_number<uint64_t>(file, "memory_bytes", 1, uint64_t{1} << 46, &d.memory_bytes));
  HEDDLE_PLUGIN_CHECK(read_number(file, "stream_priorities", 1, 64, &d.stream_priorities));
  if (!file.contains("workspace_bytes")) return wrong("workspace_bytes", "an object with \"cublaslt\" and \"cudnn\"");
  const Json& workspace = file["workspace_bytes"];
  HEDDLE_PLUGIN_CHECK(read_number<uint64_t>(workspace, "cublaslt", 0, uint64_t{1} << 32, &d.cublaslt_workspace_bytes));
  HEDDLE_PLUGIN_CHECK(read_number<uint64_t>(workspace, "cudnn", 0, uint64_t{1} << 32, &d.cudnn_workspace_bytes));
  HEDDLE_PLUGIN_CHECK(read_text(file, "source", &d.source));
  HEDDLE_PLUGIN_CHECK(read_text(file, "date", &d.date));
  *description = std::move(d);
  return {};
}

// ---------------------------------------------------------------- the table

namespace {

const DeviceDescription* device = nullptr;  // the device that the table describes

// Returns a function that succeeds without doing anything, as most functions of the table do.
template <class Function>
struct Nothing;
template <class Result, class... Arguments>
struct Nothing<Result (*)(Arguments...)> {
  static Result function(Arguments...) { return Result(); }
};

// Makes an object that is known only by its address, of a type whose content is never read.
template <class Handle>
Handle new_handle() {
  static std::atomic<uintptr_t> last{0};
  return reinterpret_cast<Handle>(last += 16);
}

// Gives out addresses without memory, far from the process's own.
class Addresses {
 public:
  static Addresses& all() {
    static Addresses& addresses = *new Addresses();
    return addresses;
  }
  cudaError_t take(void** memory, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > device->memory_bytes - used_) return cudaErrorMemoryAllocation;
    *memory = reinterpret_cast<void*>(next_);
    next_ += (bytes + 511) / 256 * 256;
    used_ += bytes;
    taken_[*memory] = bytes;
    return cudaSuccess;
  }
  cudaError_t give_back(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = taken_.find(memory);
    if (found == taken_.end()) return cudaErrorInvalidValue;
    used_ -= found->second;
    taken_.erase(found);
    return cudaSuccess;
  }
  size_t available() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device->memory_bytes - used_;
  }

 private:
  std::mutex mutex_;
  uintptr_t next_ = uintptr_t{1} << 56;
  size_t used_ = 0;
  std::map<void*, size_t> taken_;
};

void fill_cudart(Api& api) {
  api.cudaGetDeviceCount = [](int* count) { return *count = device->devices, cudaSuccess; };
  api.cudaGetDeviceProperties = [](cudaDeviceProp* properties, int) {
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "%s", device->name.c_str());
    properties->totalGlobalMem = device->memory_bytes;
    properties->major = device->major;
    properties->minor = device->minor;
    properties->multiProcessorCount = device->multiprocessors;
    return cudaSuccess;
  };
  api.cudaDeviceGetStreamPriorityRange = [](int* least, int* greatest) {
    return *least = 0, *greatest = 1 - device->stream_priorities, cudaSuccess;
  };
  api.cudaDeviceCanAccessPeer = [](int* can, int, int) { return *can = 1, cudaSuccess; };
  api.cudaGetErrorName = [](cudaError_t) { return "an error of a described device"; };
  api.cudaGetErrorString = [](cudaError_t error) { return error == cudaErrorMemoryAllocation ? "out of memory" : "it is not here"; };
  api.cudaMemGetInfo = [](size_t* available, size_t* total) {
    return *available = Addresses::all().available(), *total = device->memory_bytes, cudaSuccess;
  };
  api.cudaMemPoolCreate = [](cudaMemPool_t* pool, const cudaMemPoolProps*) { return *pool = new_handle<cudaMemPool_t>(), cudaSuccess; };
  api.cudaMallocFromPoolAsync = [](void** memory, size_t bytes, cudaMemPool_t, cudaStream_t) {
    return Addresses::all().take(memory, bytes);
  };
  api.cudaFreeAsync = [](void* memory, cudaStream_t) { return Addresses::all().give_back(memory); };
  api.cudaHostAlloc = [](void** memory, size_t bytes, unsigned int) {
    return (*memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64)) ? cudaSuccess : cudaErrorMemoryAllocation;
  };
  api.cudaFreeHost = [](void* memory) { return std::free(memory), cudaSuccess; };
  // Reports all memory as pinned, so that no copy needs staging.
  api.cudaPointerGetAttributes = [](cudaPointerAttributes* attributes, const void*) {
    return attributes->type = cudaMemoryTypeHost, cudaSuccess;
  };
  api.cudaStreamCreateWithPriority = [](cudaStream_t* stream, unsigned int, int) {
    return *stream = new_handle<cudaStream_t>(), cudaSuccess;
  };
  api.cudaEventCreateWithFlags = [](cudaEvent_t* event, unsigned int) { return *event = new_handle<cudaEvent_t>(), cudaSuccess; };
}

void fill_cublaslt(Api& api) {
  api.cublasLtGetStatusString = [](cublasStatus_t) { return "it is not here"; };
  api.cublasLtCreate = [](cublasLtHandle_t* handle) { return *handle = new_handle<cublasLtHandle_t>(), CUBLAS_STATUS_SUCCESS; };
  api.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
    return *made = new_handle<cublasLtMatmulDesc_t>(), CUBLAS_STATUS_SUCCESS;
  };
  api.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* made, cudaDataType, uint64_t, uint64_t, int64_t) {
    return *made = new_handle<cublasLtMatrixLayout_t>(), CUBLAS_STATUS_SUCCESS;
  };
  // Remembers the maximum number of workspace bytes.
  api.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* made) {
    return *made = new cublasLtMatmulPreferenceOpaque_t(), CUBLAS_STATUS_SUCCESS;
  };
  api.cublasLtMatmulPreferenceDestroy = [](cublasLtMatmulPreference_t preference) { return delete preference, CUBLAS_STATUS_SUCCESS; };
  api.cublasLtMatmulPreferenceSetAttribute = [](cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                const void* value, size_t) {
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) preference->data[0] = *static_cast<const uint64_t*>(value);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.cublasLtMatmulAlgoGetHeuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference, int,
                                          cublasLtMatmulHeuristicResult_t* results, int* count) {
    *results = {};
    results->workspaceSize = static_cast<size_t>(std::min(preference->data[0], device->cublaslt_workspace_bytes));
    results->state = CUBLAS_STATUS_SUCCESS;
    return *count = 1, CUBLAS_STATUS_SUCCESS;
  };
}

void fill_cudnn(Api& api) {
  api.cudnnGetErrorString = [](cudnnStatus_t) { return "it is not here"; };
  api.cudnnGetVersion = [] { return size_t{CUDNN_VERSION}; };
  api.cudnnCreate = [](cudnnHandle_t* handle) { return *handle = new_handle<cudnnHandle_t>(), CUDNN_STATUS_SUCCESS; };
  api.cudnnBackendCreateDescriptor = [](cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t* made) {
    return *made = new_handle<cudnnBackendDescriptor_t>(), CUDNN_STATUS_SUCCESS;
  };
  // Offers one engine for everything, without notes.
  api.cudnnBackendGetAttribute = [](cudnnBackendDescriptor_t, cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t, int64_t,
                                    int64_t* count, void* values) {
    *count = attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS || attribute == CUDNN_ATTR_ENGINECFG_ENGINE ||
                     attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE
                 ? 1
                 : 0;
    if (attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
      *static_cast<int64_t*>(values) = static_cast<int64_t>(device->cudnn_workspace_bytes);
    return CUDNN_STATUS_SUCCESS;
  };
}

}  // namespace

void fill(Api* api, const DeviceDescription& description) {
  device = &description;
  api->described = &description;
#define HEDDLE_CUDA_FUNCTION(library, name) api->name = Nothing<decltype(api->name)>::function;
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION
  fill_cudart(*api);
  fill_cublaslt(*api);
  fill_cudnn(*api);
}

}  // namespace heddle::cuda

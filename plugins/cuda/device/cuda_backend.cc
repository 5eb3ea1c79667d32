// The backend of CUDA's devices, function by function as heddle/device_plugin.h lists them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "device/cuda_device.h"
#include "device/errors.h"
#include "device/store_value.h"
#include "heddle/device_plugin.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

const heddle_host* host = nullptr;  // since the plugin was loaded

heddle_status answer(const heddle_call* call, const Status& status) {
  if (!status.ok() && status.code != HEDDLE_PENDING) host->set_error(call, status.code, status.text.data(), status.text.size());
  return status.code;
}

// A call for an open device, made current on this thread. What it answers of a sticky error makes the device lost.
template <class F>
heddle_status with(void* handle, const heddle_call* call, const F& body) {
  Device& device = device_of(handle);
  if (device.lost) return answer(call, {HEDDLE_ERROR_DEVICE_LOST, "the device is lost: end the process to use it again"});
  const Status status = [&]() -> Status {
    HEDDLE_CUDA_CALL(cudaSetDevice, device.index);
    return body(device);
  }();
  if (status.code == HEDDLE_ERROR_DEVICE_LOST) device.lost = true;
  return answer(call, status);
}

// ---------------------------------------------------------------- devices

heddle_status count(int32_t* devices, const heddle_call* call) {
  const Api& api = Api::get();
  *devices = 0;
  for (const std::string* missing : {&api.missing_cudart(), &api.missing_nvrtc()})
    if (!missing->empty()) return host->set_error(call, HEDDLE_OK, missing->data(), missing->size()), HEDDLE_OK;
  int number = 0;
  if (const cudaError_t error = api.cudaGetDeviceCount(&number); error != cudaSuccess) {
    const std::string why = error_text("cudaGetDeviceCount", error);
    host->set_error(call, HEDDLE_OK, why.data(), why.size());
    return HEDDLE_OK;
  }
  *devices = number;
  if (number == 0) host->set_error(call, HEDDLE_OK, "the driver knows of no device", 29);
  return HEDDLE_OK;
}

std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string describe(const Device& d) {
  const Api& api = Api::get();
  int driver = 0, runtime = 0;
  api.cudaDriverGetVersion(&driver);
  api.cudaRuntimeGetVersion(&runtime);
  std::string text = std::string(d.properties.name) + ", sm_" + std::to_string(d.major) + std::to_string(d.minor) + ", driver for CUDA " +
                     version_text(driver) + ", runtime " + version_text(runtime);
  text += api.missing_cublasLt().empty() ? ", cuBLASLt " + std::to_string(api.cublasLtGetVersion()) : ", no cuBLASLt";
  text += api.missing_cudnn().empty() ? ", cuDNN " + std::to_string(api.cudnnGetVersion()) : ", no cuDNN";
  return text;
}

heddle_status open(int32_t index, void** handle, const heddle_call* call) {
  auto made = std::make_unique<Device>(index);
  const Status status = [&]() -> Status {
    HEDDLE_CUDA_CALL(cudaSetDevice, index);
    HEDDLE_CUDA_CALL(cudaGetDeviceProperties, &made->properties, index);
    made->major = made->properties.major;
    made->minor = made->properties.minor;
    made->multiprocessors = made->properties.multiProcessorCount;
    HEDDLE_CUDA_CALL(cudaStreamCreateWithPriority, &made->memory_stream, cudaStreamNonBlocking, 0);
    return prepare_store_value(*made);
  }();
  if (!status.ok()) return answer(call, status);
  made->description = describe(*made);
  *handle = made.release();
  return HEDDLE_OK;
}

void close(void* handle) {
  Api::get().cudaStreamDestroy(device_of(handle).memory_stream);
  delete &device_of(handle);
}

const char* description(void* handle) {
  return device_of(handle).description.c_str();
}

heddle_status memory_info(void* handle, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call* call) {
  return with(handle, call, [&](Device&) -> Status {
    size_t available = 0, total = 0;
    HEDDLE_CUDA_CALL(cudaMemGetInfo, &available, &total);
    *free_bytes = available;
    *total_bytes = total;
    return {};
  });
}

heddle_status properties(void* handle, heddle_device_properties* p, const heddle_call* call) {
  return with(handle, call, [&](Device&) -> Status {
    int least = 0, greatest = 0;  // CUDA's lower numbers go first
    HEDDLE_CUDA_CALL(cudaDeviceGetStreamPriorityRange, &least, &greatest);
    p->flags = HEDDLE_DEVICE_SHARED_EVENTS;
    p->alignment = 256;
    p->stream_classes = 1u << HEDDLE_STREAM_COMPUTE | 1u << HEDDLE_STREAM_TO_DEVICE | 1u << HEDDLE_STREAM_FROM_DEVICE;
    p->lowest_priority = -least;
    p->highest_priority = -greatest;
    return {};
  });
}

// ---------------------------------------------------------------- memory

heddle_status allocate(void* handle, uint64_t bytes, void** memory, const heddle_call* call) {
  return with(handle, call, [&](Device& device) -> Status {
    HEDDLE_CUDA_CALL(cudaMallocAsync, memory, std::max<uint64_t>(bytes, 1), device.memory_stream);
    HEDDLE_CUDA_CALL(cudaStreamSynchronize, device.memory_stream);
    return {};
  });
}

void release(void* handle, void* memory) {
  const Api& api = Api::get();
  api.cudaSetDevice(device_of(handle).index);
  api.cudaFreeAsync(memory, device_of(handle).memory_stream);
}

heddle_status allocate_host(void* handle, uint64_t bytes, void** memory, const heddle_call* call) {
  return with(handle, call, [&](Device&) -> Status {
    HEDDLE_CUDA_CALL(cudaHostAlloc, memory, std::max<uint64_t>(bytes, 1), cudaHostAllocPortable);
    return {};
  });
}

void release_host(void*, void* memory) {
  Api::get().cudaFreeHost(memory);
}

heddle_status register_host(void* handle, void* memory, uint64_t bytes, const heddle_call* call) {
  return with(handle, call, [&](Device&) -> Status {
    HEDDLE_CUDA_CALL(cudaHostRegister, memory, bytes, cudaHostRegisterPortable);
    return {};
  });
}

void unregister_host(void*, void* memory) {
  Api::get().cudaHostUnregister(memory);
}

// Asked while plans are made: access is turned on where there is any.
int32_t reaches(void* handle, void* source) {
  const Api& api = Api::get();
  const int to = device_of(handle).index, from = device_of(source).index;
  int can = 0;
  if (api.cudaDeviceCanAccessPeer(&can, to, from) != cudaSuccess || can == 0) return 1;  // the driver copies by the host, in one call
  api.cudaSetDevice(to);
  const cudaError_t enabled = api.cudaDeviceEnablePeerAccess(from, 0);
  if (enabled == cudaErrorPeerAccessAlreadyEnabled) api.cudaGetLastError();
  return 1;
}

// ---------------------------------------------------------------- streams, events

// A stream that the embedding program made is worked with as it is.
heddle_status create_stream(void* handle, const heddle_stream_request* request, void** stream, const heddle_call* call) {
  return with(handle, call, [&](Device& device) -> Status {
    auto* made = static_cast<cudaStream_t>(request->adopted);
    if (!made) HEDDLE_CUDA_CALL(cudaStreamCreateWithPriority, &made, cudaStreamNonBlocking, -request->priority);
    const std::lock_guard<std::mutex> lock(device.mutex);
    device.labels[made] = UINT64_MAX;
    if (request->adopted) device.adopted.insert(made);
    *stream = made;
    return {};
  });
}

void destroy_stream(void* handle, void* stream) {
  Device& device = device_of(handle);
  auto* const s = static_cast<cudaStream_t>(stream);
  bool adopted = false;
  {
    const std::lock_guard<std::mutex> lock(device.mutex);
    device.labels.erase(s);
    adopted = device.adopted.erase(s) > 0;
  }
  device.poller.forget(s);
  if (adopted) return;
  Api::get().cudaSetDevice(device.index);
  Api::get().cudaStreamSynchronize(s);
  Api::get().cudaStreamDestroy(s);
}

heddle_status create_event(void* handle, void** event, const heddle_call* call) {
  return with(handle, call, [&](Device&) -> Status {
    cudaEvent_t made = nullptr;
    HEDDLE_CUDA_CALL(cudaEventCreateWithFlags, &made, cudaEventDisableTiming);
    *event = made;
    return {};
  });
}

void destroy_event(void*, void* event) {
  Api::get().cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

// ---------------------------------------------------------------- work

Status copy(Device& device, cudaStream_t stream, const heddle_copy& asked) {
  switch (asked.kind) {
    case HEDDLE_COPY_VALUE_TO_DEVICE:
      return store_value(device, stream, asked.destination, asked.source, asked.bytes);
    case HEDDLE_COPY_HOST_TO_DEVICE:
      HEDDLE_CUDA_CALL(cudaMemcpyAsync, asked.destination, asked.source, asked.bytes, cudaMemcpyHostToDevice, stream);
      return {};
    case HEDDLE_COPY_DEVICE_TO_HOST:
      HEDDLE_CUDA_CALL(cudaMemcpyAsync, asked.destination, asked.source, asked.bytes, cudaMemcpyDeviceToHost, stream);
      return {};
    case HEDDLE_COPY_DEVICE_TO_DEVICE:
      if (asked.source_device && asked.source_device != &device) {
        HEDDLE_CUDA_CALL(cudaMemcpyPeerAsync, asked.destination, device.index, asked.source, device_of(asked.source_device).index,
                         asked.bytes, stream);
      } else {
        HEDDLE_CUDA_CALL(cudaMemcpyAsync, asked.destination, asked.source, asked.bytes, cudaMemcpyDeviceToDevice, stream);
      }
      return {};
    default:
      return plugin::invalid("a copy of kind " + std::to_string(asked.kind));
  }
}

heddle_status enqueue(void* handle, void* stream, const heddle_work* work, const heddle_call* call) {
  return with(handle, call, [&](Device& device) -> Status {
    auto* const s = static_cast<cudaStream_t>(stream);
    {
      const std::lock_guard<std::mutex> lock(device.mutex);
      device.labels[s] = work->label;
    }
    for (uint32_t i = 0; i < work->wait_count; ++i) HEDDLE_CUDA_CALL(cudaStreamWaitEvent, s, static_cast<cudaEvent_t>(work->waits[i]), 0);
    if (work->copy && work->copy->bytes > 0) HEDDLE_PLUGIN_CHECK(copy(device, s, *work->copy));
    if (work->launch) return plugin::unsupported("a GPU runs no kernels of another kind");
    if (work->record) HEDDLE_CUDA_CALL(cudaEventRecord, static_cast<cudaEvent_t>(work->record), s);
    return work->callback ? device.poller.notify(s, work->callback, work->user) : Status();
  });
}

heddle_status synchronize(void* handle, void* stream, const heddle_call* call) {
  return with(handle, call, [&](Device& device) -> Status {
    auto* const s = static_cast<cudaStream_t>(stream);
    const cudaError_t state = Api::get().cudaStreamSynchronize(s);
    device.poller.drain(s);
    if (state != cudaSuccess) return {status_of(state), error_text("cudaStreamSynchronize", state)};
    return {};
  });
}

heddle_status query(void* handle, void* stream, const heddle_call* call) {
  return with(handle, call, [&](Device& device) -> Status {
    auto* const s = static_cast<cudaStream_t>(stream);
    const cudaError_t state = Api::get().cudaStreamQuery(s);
    if (state == cudaErrorNotReady || device.poller.pending(s)) return {HEDDLE_PENDING, {}};
    if (state != cudaSuccess) return {status_of(state), error_text("the stream", state)};
    return {};
  });
}

}  // namespace

heddle_device_backend backend(const heddle_host* plugins_host) {
  host = plugins_host;
  heddle_device_backend b = {};
  b.struct_size = sizeof(b);
  b.kind = "cuda";
  b.count = count;
  b.open = open;
  b.close = close;
  b.description = description;
  b.memory_info = memory_info;
  b.properties = properties;
  b.allocate = allocate;
  b.release = release;
  b.create_stream = create_stream;
  b.destroy_stream = destroy_stream;
  b.create_event = create_event;
  b.destroy_event = destroy_event;
  b.enqueue = enqueue;
  b.synchronize = synchronize;
  b.query = query;
  b.allocate_host = allocate_host;
  b.release_host = release_host;
  b.register_host = register_host;
  b.unregister_host = unregister_host;
  b.reaches = reaches;
  return b;
}

}  // namespace heddle::cuda

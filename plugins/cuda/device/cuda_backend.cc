// Implements the functions of the CUDA devices' backend, in the order in which heddle/device_plugin.h lists them.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "device/cuda_device.h"
#include "device/current_device.h"
#include "device/errors.h"
#include "device/store_value.h"
#include "device/trace_range.h"
#include "heddle/device_plugin.h"
#include "heddle/op/device_backend.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

const heddle_host* host = nullptr;  // since the plugin was loaded

heddle_status answer(const heddle_call* call, const Status& status) {
  if (!status.ok() && status.code != HEDDLE_PENDING) host->set_error(call, status.code, status.text.data(), status.text.size());
  return status.code;
}

// Runs `body` for an open device and answers the call with its status. A sticky error makes the device lost.
template <class F>
heddle_status with(void* handle, const heddle_call* call, const F& body) {
  Device& device = device_of(handle);
  if (device.loss) return answer(call, {HEDDLE_ERROR_DEVICE_LOST, device.loss.text()});
  const Status status = body(device);
  if (status.code != HEDDLE_ERROR_DEVICE_LOST) return answer(call, status);
  device.loss.happened(status.text);
  return answer(call, {HEDDLE_ERROR_DEVICE_LOST, device.loss.text()});
}

// Does the same as with(), with the device made current on this thread.
template <class F>
heddle_status with_current(void* handle, const heddle_call* call, const F& body) {
  return with(handle, call, [&](Device& device) -> Status {
    const CurrentDevice current(device.index);
    HEDDLE_PLUGIN_CHECK(current.status());
    return body(device);
  });
}

// ---------------------------------------------------------------- devices

// The process that opened CUDA; 0 if nothing was opened yet. CUDA does not work in forked children of that process: each call fails there
// without saying why.
std::atomic<pid_t> opened_in{0};

bool is_forked_child() {
  const pid_t opener = opened_in.load(std::memory_order_relaxed);
  return opener != 0 && opener != ::getpid();
}
constexpr std::string_view forked_text =
    "this process was forked from one that had opened CUDA, which does not work in it; fork before devices are asked for, or start the "
    "process anew (Python's multiprocessing: \"spawn\")";

struct Backend {
  static heddle_status count(int32_t* devices, const heddle_call* call) {
    const Api& api = Api::get();
    *devices = 0;
    for (const std::string* missing : {&api.missing_cudart(), &api.missing_nvrtc()})
      if (!missing->empty()) return host->set_error(call, HEDDLE_OK, missing->data(), missing->size()), HEDDLE_OK;
    if (is_forked_child()) return host->set_error(call, HEDDLE_OK, forked_text.data(), forked_text.size()), HEDDLE_OK;
    int number = 0;
    if (const cudaError_t error = api.cudaGetDeviceCount(&number); error != cudaSuccess) {
      const std::string why = failed("cudaGetDeviceCount", error).text;
      host->set_error(call, HEDDLE_OK, why.data(), why.size());
      return HEDDLE_OK;
    }
    if (!api.described) opened_in.store(::getpid(), std::memory_order_relaxed);
    *devices = number;
    if (number == 0) host->set_error(call, HEDDLE_OK, "the driver knows of no device", 29);
    return HEDDLE_OK;
  }

  static bool is_on(const char* variable) {
    const char* const value = std::getenv(variable);
    return value && std::string(value) == "1";
  }

  static heddle_status open(int32_t index, void** handle, const heddle_call* call) {
    if (is_forked_child()) return answer(call, {HEDDLE_ERROR_DEVICE, std::string(forked_text)});
    TraceRange::prepare();
    auto made = std::make_unique<Device>(index);
    const Status status = [&]() -> Status {
      const CurrentDevice current(index);
      HEDDLE_PLUGIN_CHECK(current.status());
      HEDDLE_CUDA_CALL(cudaGetDeviceProperties, &made->properties, index);
      made->major = made->properties.major;
      made->minor = made->properties.minor;
      made->multiprocessors = made->properties.multiProcessorCount;
      made->blocking = is_on("HEDDLE_CUDA_BLOCKING");
      made->tf32 = is_on("HEDDLE_CUDA_TF32");
      HEDDLE_PLUGIN_CHECK(made->memory.open(index));
      return prepare_store_value(*made);
    }();
    if (!status.ok()) {
      return answer(call, status);
    }
    made->description = describe_device(*made);
    *handle = made.release();
    return HEDDLE_OK;
  }

  // Frees nothing on a lost device: every call fails, and CUDA reclaims everything when the process ends.
  static void close(void* handle) { delete &device_of(handle); }

  static const char* description(void* handle) { return device_of(handle).description.c_str(); }

  static heddle_status memory_info(void* handle, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call* call) {
    return with_current(handle, call, [&](Device&) -> Status {
      size_t available = 0, total = 0;
      HEDDLE_CUDA_CALL(cudaMemGetInfo, &available, &total);
      *free_bytes = available;
      *total_bytes = total;
      return {};
    });
  }

  static heddle_status properties(void* handle, heddle_device_properties* p, const heddle_call* call) {
    return with_current(handle, call, [&](Device&) -> Status {
      int least = 0, greatest = 0;  // CUDA runs lower numbers first
      HEDDLE_CUDA_CALL(cudaDeviceGetStreamPriorityRange, &least, &greatest);
      p->flags = HEDDLE_DEVICE_SHARED_EVENTS;
      if (Api::get().described) p->flags |= HEDDLE_DEVICE_DESCRIBED;
      p->alignment = 256;
      p->stream_classes =
          1u << HEDDLE_STREAM_COMPUTE | 1u << HEDDLE_STREAM_TO_DEVICE | 1u << HEDDLE_STREAM_FROM_DEVICE | 1u << HEDDLE_STREAM_COMMUNICATION;
      p->lowest_priority = -least;
      p->highest_priority = -greatest;
      return {};
    });
  }

  // ---------------------------------------------------------------- memory

  static heddle_status allocate(void* handle, uint64_t bytes, void** memory, const heddle_call* call) {
    return with_current(handle, call, [&](Device& device) { return device.memory.allocate(bytes, memory); });
  }

  static void release(void* handle, void* memory) {
    Device& device = device_of(handle);
    if (device.loss) return;
    const CurrentDevice current(device.index);
    device.memory.release(memory);
  }

  static heddle_status allocate_host(void* handle, uint64_t bytes, void** memory, const heddle_call* call) {
    return with_current(handle, call, [&](Device&) -> Status {
      HEDDLE_CUDA_CALL(cudaHostAlloc, memory, std::max<uint64_t>(bytes, 1), cudaHostAllocPortable);
      PinnedMemory::all().add_allocated(*memory, bytes);
      return {};
    });
  }

  static void release_host(void* handle, void* memory) {
    PinnedMemory::all().remove_allocated(memory);
    if (!device_of(handle).loss) Api::get().cudaFreeHost(memory);
  }

  static heddle_status register_host(void* handle, void* memory, uint64_t bytes, const heddle_call* call) {
    return with_current(handle, call, [&](Device&) { return PinnedMemory::all().enter(memory, bytes); });
  }

  static void unregister_host(void* handle, void* memory) { PinnedMemory::all().leave(memory, static_cast<bool>(device_of(handle).loss)); }

  // Called while plans are made: turns on peer access where the hardware has it, to memory of both kinds.
  static int32_t reaches(void* handle, void* source) {
    const Api& api = Api::get();
    const int to = device_of(handle).index, from = device_of(source).index;
    int can = 0;
    if (device_of(handle).loss) return 0;
    const CurrentDevice current(to);
    if (!current.status().ok()) return 0;
    const bool direct = api.cudaDeviceCanAccessPeer(&can, to, from) == cudaSuccess && can != 0;
    // Without direct access, or where access is on already, the error is cleared so that no one else sees it: the driver then copies
    // through the host, in one call.
    if (!direct || !device_of(source).memory.open_to(to)) api.cudaGetLastError();
    if (direct && api.cudaDeviceEnablePeerAccess(from, 0) != cudaSuccess) api.cudaGetLastError();
    return 1;
  }

  // ---------------------------------------------------------------- streams, events

  // Reserves events for callbacks. A user of callbacks mostly records events too, or requests a callback at the end of a stream. A run that
  // requests more at once creates the events that it needs, and they stay.
  static Status reserve_callbacks(Device& device) {
    constexpr size_t at_once = 4;  // for each stream
    size_t callbacks = 0;
    {
      const std::lock_guard<std::mutex> lock(device.mutex);
      callbacks = device.events + at_once * (device.streams.size() + 1);  // and the stream that is created now
    }
    return device.poller.reserve(callbacks);
  }

  // A stream that the embedding program created is used unchanged.
  static heddle_status create_stream(void* handle, const heddle_stream_request* request, void** stream, const heddle_call* call) {
    return with_current(handle, call, [&](Device& device) -> Status {
      HEDDLE_PLUGIN_CHECK(reserve_callbacks(device));
      auto* made = static_cast<cudaStream_t>(request->adopted);
      if (!made) HEDDLE_CUDA_CALL(cudaStreamCreateWithPriority, &made, cudaStreamNonBlocking, -request->priority);
      device.know(made, request->adopted != nullptr);
      *stream = made;
      return {};
    });
  }

  static void destroy_stream(void* handle, void* stream) {
    Device& device = device_of(handle);
    auto* const s = static_cast<cudaStream_t>(stream);
    device.poller.forget(s);
    // The staging buffers of its copies are in use until the stream has passed them, and are freed with `known`.
    const std::optional<Device::Stream> known = device.let_go(s);
    if (!known || device.loss || (!known->made && !known->staging)) return;
    const CurrentDevice current(device.index);
    Api::get().cudaStreamSynchronize(s);
    if (known->made) Api::get().cudaStreamDestroy(s);
  }

  static heddle_status create_event(void* handle, void** event, const heddle_call* call) {
    return with_current(handle, call, [&](Device& device) -> Status {
      cudaEvent_t made = nullptr;
      HEDDLE_CUDA_CALL(cudaEventCreateWithFlags, &made, cudaEventDisableTiming);
      *event = made;
      {
        const std::lock_guard<std::mutex> lock(device.mutex);
        ++device.events;
      }
      return reserve_callbacks(device);
    });
  }

  static void destroy_event(void* handle, void* event) {
    Device& device = device_of(handle);
    if (!device.loss) Api::get().cudaEventDestroy(static_cast<cudaEvent_t>(event));
    const std::lock_guard<std::mutex> lock(device.mutex);
    --device.events;
  }

  // ---------------------------------------------------------------- work

  static Staging& staging_of(Device& device, cudaStream_t stream) {
    std::unique_ptr<Staging>& staging = device.stream_of(stream).staging;
    if (!staging) staging = std::make_unique<Staging>(device.loss);
    return *staging;
  }

  static Status copy(Device& device, cudaStream_t stream, const heddle_copy& asked) {
    constexpr uint64_t taken_during_the_call = uint64_t{64} << 10;  // for pageable memory, by CUDA itself (device/pinned_staging.h)
    const bool is_between = asked.kind == HEDDLE_COPY_DEVICE_TO_DEVICE && asked.source_device && asked.source_device != &device;
    switch (asked.kind) {
      case HEDDLE_COPY_VALUE_TO_DEVICE:
        return store_value(device, stream, asked.destination, asked.source, asked.bytes);
      case HEDDLE_COPY_HOST_TO_DEVICE:
        if (asked.bytes > taken_during_the_call && !PinnedMemory::all().is_pinned(asked.source, asked.bytes))
          return staging_of(device, stream).from_host(stream, asked.destination, asked.source, asked.bytes);
        HEDDLE_CUDA_CALL(cudaMemcpyAsync, asked.destination, asked.source, asked.bytes, cudaMemcpyHostToDevice, stream);
        return {};
      case HEDDLE_COPY_DEVICE_TO_HOST:
        if (!PinnedMemory::all().is_pinned(asked.destination, asked.bytes))
          return staging_of(device, stream).to_host(stream, asked.destination, asked.source, asked.bytes);
        HEDDLE_CUDA_CALL(cudaMemcpyAsync, asked.destination, asked.source, asked.bytes, cudaMemcpyDeviceToHost, stream);
        return {};
      case HEDDLE_COPY_DEVICE_TO_DEVICE:
        if (is_between) {
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

  static Status enqueue_now(Device& device, cudaStream_t stream, const heddle_work& work) {
    for (uint32_t i = 0; i < work.wait_count; ++i)
      HEDDLE_CUDA_CALL(cudaStreamWaitEvent, stream, static_cast<cudaEvent_t>(work.waits[i]), 0);
    if (work.copy && work.copy->bytes > 0) HEDDLE_PLUGIN_CHECK(copy(device, stream, *work.copy));
    if (work.launch) return plugin::unsupported("a GPU runs no kernels of another kind");
    if (work.record) HEDDLE_CUDA_CALL(cudaEventRecord, static_cast<cudaEvent_t>(work.record), stream);
    return {};
  }

  // Launches require that the device of their stream is current (Programming Guide, Multi-Device System: Stream and Event Behavior), and so
  // do copies: "Any async memcpy involving memory from cudaMallocAsync should be done using the specified stream's context as the calling
  // thread's current context. This is not necessary for cudaMemcpyPeerAsync" (Stream Ordered Memory Allocator: cudaMemcpyAsync Current
  // Context/Device Sensitivity). The device is made current where the host reports that it may not be; kernels, which run between two of
  // these calls, keep it current.
  static heddle_status enqueue(void* handle, void* stream, const heddle_work* work, const heddle_call* call) {
    return with(handle, call, [&](Device& device) -> Status {
      auto* const s = static_cast<cudaStream_t>(stream);
      if ((work->flags & HEDDLE_WORK_ENTERS) != 0) HEDDLE_PLUGIN_CHECK(EnteredDevice::enter(device.index));
      if (device.blocking) device.stream_of(s).label = work->label;
      HEDDLE_PLUGIN_CHECK(enqueue_on(device, s, [&] { return enqueue_now(device, s, *work); }));
      return work->callback ? device.poller.notify(s, work->callback, work->user) : Status();
    });
  }

  static void leave(void*) { EnteredDevice::leave(); }

  static heddle_status synchronize(void* handle, void* stream, const heddle_call* call) {
    return with(handle, call, [&](Device& device) -> Status {
      auto* const s = static_cast<cudaStream_t>(stream);
      const cudaError_t state = Api::get().cudaStreamSynchronize(s);
      device.poller.drain(s);
      if (state != cudaSuccess) return failed("cudaStreamSynchronize", state);
      const std::lock_guard<std::recursive_mutex> alone(device.one_at_a_time);
      device.has_failed = false;
      return {};
    });
  }

  static heddle_status query(void* handle, void* stream, const heddle_call* call) {
    return with(handle, call, [&](Device& device) -> Status {
      auto* const s = static_cast<cudaStream_t>(stream);
      const cudaError_t state = Api::get().cudaStreamQuery(s);
      if (state == cudaErrorNotReady) Api::get().cudaGetLastError();
      if (state == cudaErrorNotReady || device.poller.pending(s)) return {HEDDLE_PENDING, {}};
      if (state != cudaSuccess) return failed("the stream", state);
      return {};
    });
  }

  // Returns the label of the work that failed. CUDA does not report it, so it is known only with HEDDLE_CUDA_BLOCKING, where one piece of
  // work is in progress at a time.
  static uint64_t failed_label(void* handle, void* stream) {
    Device& device = device_of(handle);
    // The poller may have seen the failure before the thread that waits for the work.
    const std::lock_guard<std::recursive_mutex> alone(device.one_at_a_time);
    return std::exchange(device.stream_of(static_cast<cudaStream_t>(stream)).failed, UINT64_MAX);
  }

  static heddle_status describe(const char* text, uint64_t length, const heddle_call* call) {
    return answer(call, Api::describe({text, length}));
  }
};

}  // namespace

heddle_device_backend backend(const heddle_host* plugins_host) {
  host = plugins_host;
  return plugin::make_device_backend<Backend>("cuda");
}

}  // namespace heddle::cuda

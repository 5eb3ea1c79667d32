// Implements cudart: streams and events.
#include "process.h"

namespace standin = heddle::cuda::standin;
using standin::CallKind;
using standin::Event;
using standin::Lock;
using standin::Process;
using standin::Rule;
using standin::Stream;
using standin::this_thread;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned int flags, int) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *handle = process.streams.add(process.engine.make_stream(this_thread().device, flags == cudaStreamDefault, false));
    return cudaSuccess;
  });
}

// The plugin does not make its streams so, but embedding programs do.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned int flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

// "In case the device is still doing work in the stream stream when cudaStreamDestroy() is called, the function will return immediately and
// the resources associated with stream will be released automatically once the device has completed all work in stream."
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaStreamDestroy");
    if (!stream || stream->is_default) return cudaErrorInvalidResourceHandle;
    process.streams.remove(handle);
    return process.engine.let_go(stream), cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock& lock) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaStreamSynchronize");
    if (!stream) return cudaErrorInvalidResourceHandle;
    return process.wait_on_host(lock, *stream, "cudaStreamSynchronize"), cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaStreamQuery");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (stream->done < stream->enqueued) return cudaErrorNotReady;
    return process.engine.known(stream->before), cudaSuccess;
  });
}

// "event may be from a different device than stream."
cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned int flags) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(stream_handle, "cudaStreamWaitEvent");
    const std::shared_ptr<Event> event = process.event_of(event_handle, "cudaStreamWaitEvent");
    if (!stream || !event) return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    if (event->stream) process.engine.wait(*stream, event->stream, event->sequence, event->before);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned int flags) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if ((flags & ~(cudaEventBlockingSync | cudaEventDisableTiming)) != 0) return cudaErrorInvalidValue;
    auto event = std::make_shared<Event>();
    event->device = this_thread().device;
    return *handle = process.events.add(std::move(event)), cudaSuccess;
  });
}

// "An event may be destroyed before it is complete [...]. In this case, the call does not block on completion of the event"
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!process.event_of(handle, "cudaEventDestroy")) return cudaErrorInvalidResourceHandle;
    return process.events.remove(handle), cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t stream_handle) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(stream_handle, "cudaEventRecord");
    const std::shared_ptr<Event> event = process.event_of(event_handle, "cudaEventRecord");
    if (!stream || !event) return cudaErrorInvalidResourceHandle;
    if (event->device != stream->device)
      return process.rules.add(Rule::event_of_other_device, "cudaEventRecord"), cudaErrorInvalidResourceHandle;
    return process.engine.record(stream, *event), cudaSuccess;
  });
}

// "Returns cudaSuccess if all captured work has been completed, or cudaErrorNotReady if any captured work is incomplete."
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Event> event = process.event_of(handle, "cudaEventQuery");
    if (!event) return cudaErrorInvalidResourceHandle;
    if (!event->passed()) return cudaErrorNotReady;
    return process.engine.known(event->before), cudaSuccess;
  });
}

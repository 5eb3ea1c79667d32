// One GPU, as the table of the backend and the kernels see it. Its address is heddle_create_context::device_handle.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "device/device_loss.h"
#include "device/device_memory_pool.h"
#include "device/errors.h"
#include "device/pinned_staging.h"
#include "device/poller.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

class Program;

struct Device {
  explicit Device(int at) : index(at) {}
  const int index;
  cudaDeviceProp properties = {};
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::string description;
  const std::shared_ptr<DeviceLoss> shared_loss = std::make_shared<DeviceLoss>();  // what outlives this asks it too
  DeviceLoss& loss = *shared_loss;
  DeviceMemoryPool memory{loss};
  Poller poller{index, loss};
  std::shared_ptr<const Program> store_program;  // store_value.h
  cudaKernel_t store_kernel = nullptr;
  // HEDDLE_CUDA_TF32=1: products of f32 numbers, in matrices and convolutions, are of their first 10 bits, with sums in f32 (tensor cores).
  bool tf32 = false;
  // HEDDLE_CUDA_BLOCKING=1: work is enqueued and waited for, one piece at a time, so that it is known which failed.
  bool blocking = false;
  std::recursive_mutex one_at_a_time;  // then
  bool has_failed = false;             // then: what fails now follows from what failed before. Under one_at_a_time

  // What a stream is worked with. Calls for one stream never overlap.
  struct Stream {
    bool made = false;                 // by this plugin, which destroys it
    int adopted = 0;                   // by so many contexts, as the embedding program's. Both: CUDA gives addresses again
    uint64_t label = UINT64_MAX;       // of what is enqueued now, while `blocking`
    uint64_t failed = UINT64_MAX;      // of what failed
    std::unique_ptr<Staging> staging;  // where memory of the host's was not pinned
  };
  std::mutex mutex;  // of what follows; entries of the map stay where they are
  size_t events = 0;
  std::map<cudaStream_t, Stream> streams;

  Stream& stream_of(cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    return streams[stream];
  }
  void know(cudaStream_t stream, bool adopted) {
    const std::lock_guard<std::mutex> lock(mutex);
    Stream& known = streams[stream];
    adopted ? void(++known.adopted) : void(known.made = true);
  }
  // One who knows it is gone. Where nobody does any more, what was known of it: to be kept until the stream has passed its copies.
  std::optional<Stream> let_go(cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = streams.find(stream);
    if (found == streams.end()) return {};
    if (found->second.adopted > 0 && (--found->second.adopted > 0 || found->second.made)) return {};
    return std::move(streams.extract(found).mapped());
  }
};

// One line for people, of an open device.
std::string describe_device(const Device& device);

// What work for the stream failed with. On a device that had a fault each library fails in its own way: the runtime knows what is behind
// it. It may have been told, and else the stream tells it. From then on the device is lost.
plugin::Status noted(Device& device, cudaStream_t stream, plugin::Status status);

// Enqueues by `work`, and waits for it where the device is `blocking`.
template <class Work>
plugin::Status enqueue_on(Device& device, cudaStream_t stream, const Work& work) {
  if (!device.blocking) return noted(device, stream, work());
  const std::lock_guard<std::recursive_mutex> alone(device.one_at_a_time);
  plugin::Status status = noted(device, stream, work());
  if (!status.ok()) return status;
  const cudaError_t error = Api::get().cudaStreamSynchronize(stream);
  if (error == cudaSuccess) return {};
  if (!std::exchange(device.has_failed, true)) device.stream_of(stream).failed = device.stream_of(stream).label;
  return noted(device, stream, failed("cudaStreamSynchronize", error));
}

inline Device& device_of(void* handle) {
  return *static_cast<Device*>(handle);
}

// What the backend's functions are (heddle/device_plugin.h); `host` stays.
heddle_device_backend backend(const heddle_host* host);

}  // namespace heddle::cuda

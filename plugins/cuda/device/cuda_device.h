// The state of one GPU for the backend table and the kernels. Its address is heddle_create_context::device_handle.
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
  const std::shared_ptr<DeviceLoss> shared_loss = std::make_shared<DeviceLoss>();  // shared with objects that outlive this and check it too
  DeviceLoss& loss = *shared_loss;
  DeviceMemoryPool memory{loss};
  Poller poller{index, loss};
  std::shared_ptr<const Program> store_program;  // see store_value.h
  cudaKernel_t store_kernel = nullptr;
  // HEDDLE_CUDA_TF32=1: products of f32 numbers, in matrices and convolutions, use only their first 10 bits, with sums in f32 (tensor
  // cores).
  bool tf32 = false;
  // HEDDLE_CUDA_BLOCKING=1: work is enqueued and waited for one piece at a time, so that the piece that failed is known.
  bool blocking = false;
  std::recursive_mutex one_at_a_time;  // used if `blocking`
  bool has_failed = false;             // if `blocking`: later failures follow from the first. Guarded by one_at_a_time

  // The state kept for a stream. Calls for one stream never overlap.
  struct Stream {
    bool made = false;             // created by this plugin, which destroys it
    int adopted = 0;               // number of contexts that adopted it from the embedding program. Both may hold: CUDA reuses addresses
    uint64_t label = UINT64_MAX;   // of the work being enqueued, while `blocking`
    uint64_t failed = UINT64_MAX;  // label of the work that failed
    std::unique_ptr<Staging> staging;  // for host memory that is not pinned
  };
  std::mutex mutex;  // guards the members below; entries of the map do not move
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
  // Called when one user of the stream is gone. If it was the last, returns the stream's state, which the caller must keep until the stream
  // has passed its copies.
  std::optional<Stream> let_go(cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = streams.find(stream);
    if (found == streams.end()) return {};
    if (found->second.adopted > 0 && (--found->second.adopted > 0 || found->second.made)) return {};
    return std::move(streams.extract(found).mapped());
  }
};

// Returns a one-line description of an open device for users.
std::string describe_device(const Device& device);

// Returns the status to report for work that failed on the stream. After a device fault each library fails in its own way, and only the
// runtime knows the cause: it is recorded already, or is read from the stream. The device is lost from then on.
plugin::Status noted(Device& device, cudaStream_t stream, plugin::Status status);

// Enqueues work by calling `work`, and waits for it if the device is `blocking`.
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

// Returns the backend's functions (heddle/device_plugin.h). `host` must stay valid.
heddle_device_backend backend(const heddle_host* host);

}  // namespace heddle::cuda

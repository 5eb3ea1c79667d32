// One GPU, as the table of the backend and the kernels see it. Its address is heddle_create_context::device_handle.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "device/poller.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

class Program;

struct Device {
  explicit Device(int at) : index(at), poller(at) {}
  const int index;
  cudaDeviceProp properties = {};
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::string description;
  cudaStream_t memory_stream = nullptr;  // of allocations, which are waited for
  Poller poller;
  std::atomic<bool> lost{false};
  std::shared_ptr<const Program> store_program;  // store_value.h
  cudaKernel_t store_kernel = nullptr;

  // By stream: the label of what is enqueued now.
  std::mutex mutex;
  std::map<cudaStream_t, uint64_t> labels;
  std::set<cudaStream_t> adopted;  // streams that are the embedding program's
};

inline Device& device_of(void* handle) {
  return *static_cast<Device*>(handle);
}

// What the backend's functions are (heddle/device_plugin.h); `host` stays.
heddle_device_backend backend(const heddle_host* host);

}  // namespace heddle::cuda

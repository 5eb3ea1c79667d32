// DeviceMemoryPool: the memory of one GPU, in a pool of the plugin's own. The device's default pool is left alone: the embedding program
// may work with it (PyTorch's cudaMallocAsync backend does), and what is set for a pool holds for all who use it.
//
// The pool keeps up to HEDDLE_CUDA_POOL_BYTES of what was released (64 MiB without it), so that memory which is released and allocated in
// turns is not asked of the driver each time; all of it goes back when the last piece is released.
#pragma once

#include <cstdint>
#include <mutex>

#include "device/device_loss.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

// Its device is current in all calls but the destructor. Thread-safe.
class DeviceMemoryPool {
 public:
  // `loss` is the device's and outlives this.
  explicit DeviceMemoryPool(const DeviceLoss& loss) : loss_(loss) {}
  ~DeviceMemoryPool();
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  // Once, before anything else. Errors: those of CUDA; invalid, when HEDDLE_CUDA_POOL_BYTES is no number of bytes.
  plugin::Status open(int device);
  // The memory is there for all streams when this returns. Errors: out of memory, with what is free.
  plugin::Status allocate(uint64_t bytes, void** memory);
  void release(void* memory);
  // Kernels of `device` may use this memory: "memory pool allocation accessibility does not follow cudaDeviceEnablePeerAccess" (Programming
  // Guide, Stream Ordered Memory Allocator: Device Accessibility for Multi-GPU Support). False: CUDA does not let them.
  bool open_to(int device);

 private:
  const DeviceLoss& loss_;
  cudaStream_t stream_ = nullptr;  // of allocations, which are waited for
  cudaMemPool_t pool_ = nullptr;
  std::mutex mutex_;
  uint64_t pieces_ = 0;  // allocated and not released
};

}  // namespace heddle::cuda

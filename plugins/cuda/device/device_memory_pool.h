// DeviceMemoryPool: the memory of one GPU, in a pool of the plugin's own. The device's default pool is not used: the embedding program may
// use it (PyTorch's cudaMallocAsync backend does), and a setting of a pool applies to all its users.
//
// The pool keeps up to HEDDLE_CUDA_POOL_BYTES of released memory (64 MiB by default), so that memory which is released and allocated in
// turns is not requested from the driver each time; all of it is returned when the last piece is released.
#pragma once

#include <cstdint>
#include <mutex>

#include "device/device_loss.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

// Thread-safe. The device must be current in all calls but the destructor.
class DeviceMemoryPool {
 public:
  // `loss` is the device's and must outlive this.
  explicit DeviceMemoryPool(const DeviceLoss& loss) : loss_(loss) {}
  ~DeviceMemoryPool();
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  // Must be called once, before anything else. Errors: those of CUDA; invalid, when HEDDLE_CUDA_POOL_BYTES is no number of bytes.
  plugin::Status open(int device);
  // Allocates memory that all streams may use when this returns. Errors: out of memory, with the number of free bytes.
  plugin::Status allocate(uint64_t bytes, void** memory);
  void release(void* memory);
  // Lets kernels of `device` access this memory: "memory pool allocation accessibility does not follow cudaDeviceEnablePeerAccess"
  // (Programming Guide, Stream Ordered Memory Allocator: Device Accessibility for Multi-GPU Support). Returns false if CUDA refuses.
  bool open_to(int device);

 private:
  const DeviceLoss& loss_;
  cudaStream_t stream_ = nullptr;  // for allocations, which are waited for
  cudaMemPool_t pool_ = nullptr;
  std::mutex mutex_;
  uint64_t pieces_ = 0;  // number of pieces allocated and not released
};

}  // namespace heddle::cuda

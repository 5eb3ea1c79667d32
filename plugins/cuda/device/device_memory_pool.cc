#include "device/device_memory_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "device/errors.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

Status read_kept_bytes(uint64_t* bytes) {
  *bytes = uint64_t{64} << 20;
  const char* const text = std::getenv("HEDDLE_CUDA_POOL_BYTES");
  if (!text || !*text) return {};
  char* end = nullptr;
  errno = 0;
  *bytes = std::strtoull(text, &end, 10);
  if (*end == '\0' && errno == 0 && *text != '-') return {};
  return plugin::invalid("HEDDLE_CUDA_POOL_BYTES is \"" + std::string(text) + "\", which is no number of bytes");
}

Status no_memory(uint64_t bytes) {
  Status status = failed("cudaMallocFromPoolAsync", cudaErrorMemoryAllocation);
  size_t available = 0, total = 0;
  if (Api::get().cudaMemGetInfo(&available, &total) == cudaSuccess)
    status.text +=
        ", " + std::to_string(bytes) + " bytes asked for, " + std::to_string(available) + " of " + std::to_string(total) + " free";
  return status;
}

}  // namespace

DeviceMemoryPool::~DeviceMemoryPool() {
  if (loss_) return;
  if (pool_) Api::get().cudaMemPoolDestroy(pool_);
  if (stream_) Api::get().cudaStreamDestroy(stream_);
}

Status DeviceMemoryPool::open(int device) {
  uint64_t kept = 0;
  HEDDLE_PLUGIN_CHECK(read_kept_bytes(&kept));
  HEDDLE_CUDA_CALL(cudaStreamCreateWithPriority, &stream_, cudaStreamNonBlocking, 0);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  HEDDLE_CUDA_CALL(cudaMemPoolCreate, &pool_, &properties);
  HEDDLE_CUDA_CALL(cudaMemPoolSetAttribute, pool_, cudaMemPoolAttrReleaseThreshold, &kept);
  return {};
}

Status DeviceMemoryPool::allocate(uint64_t bytes, void** memory) {
  const Api& api = Api::get();
  const cudaError_t error = api.cudaMallocFromPoolAsync(memory, std::max<uint64_t>(bytes, 1), pool_, stream_);
  if (error == cudaErrorMemoryAllocation) return no_memory(bytes);
  if (error != cudaSuccess) return failed("cudaMallocFromPoolAsync", error);
  const cudaError_t there = api.cudaStreamSynchronize(stream_);
  if (there == cudaSuccess) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++pieces_;
    return {};
  }
  Status status = failed("cudaStreamSynchronize", there);
  if (!is_sticky(there)) api.cudaFreeAsync(*memory, stream_);
  *memory = nullptr;
  return status;
}

void DeviceMemoryPool::release(void* memory) {
  const Api& api = Api::get();
  api.cudaFreeAsync(memory, stream_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--pieces_ > 0) return;
  // Memory that is not freed yet cannot be returned to the driver, so the stream is waited for first.
  if (api.cudaStreamSynchronize(stream_) == cudaSuccess) api.cudaMemPoolTrimTo(pool_, 0);
}

bool DeviceMemoryPool::open_to(int device) {
  cudaMemAccessDesc access = {};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = device;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  return Api::get().cudaMemPoolSetAccess(pool_, &access, 1) == cudaSuccess;
}

}  // namespace heddle::cuda

// Implements cudart: memory of devices and pinned memory of the host.
#include <algorithm>
#include <string>

#include "process.h"

namespace standin = heddle::cuda::standin;
using standin::Block;
using standin::CallKind;
using standin::HostBlock;
using standin::Job;
using standin::Lock;
using standin::NcclGroup;
using standin::Pool;
using standin::Process;
using standin::Rule;
using standin::Stream;
using standin::this_thread;

namespace {

bool has_several_devices(const NcclGroup& group) {
  return std::any_of(group.calls.begin(), group.calls.end(), [&](const auto& p) { return p.comm->device != group.calls[0].comm->device; });
}

// Memory is allocated, registered or let go.
void note_allocation(Process& process, const char* call) {
  process.run.note(Rule::allocates, call);
  for (const NcclGroup* const group : standin::open_nccl_groups())
    if (group != &standin::this_nccl_group() && has_several_devices(*group)) process.rules.add(Rule::nccl_allocation, call);
}

}  // namespace

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    *total = process.settings.memory_bytes;
    *available = *total - std::min<size_t>(*total, process.memory.bytes_on(this_thread().device));
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -1;
    if (const Block* const block = process.memory.block_at(pointer)) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = block->device;
      attributes->devicePointer = const_cast<void*>(pointer);
    } else if (process.memory.host_block_at(pointer)) {
      attributes->type = cudaMemoryTypeHost;
      attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
    }
    return cudaSuccess;
  });
}

namespace {

cudaError_t allocate_from(Process& process, void** pointer, size_t bytes, cudaMemPool_t handle, const Stream* stream, const char* call) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  const std::shared_ptr<Pool> pool = process.pool_of(handle);
  if (!pool) return process.rules.add(Rule::unknown_pool, call), cudaErrorInvalidValue;
  note_allocation(process, call);
  if (process.faults.strikes(process.faults.allocation)) return cudaErrorMemoryAllocation;
  Block* const block = process.memory.allocate(pool->device, bytes, process.settings.memory_bytes);
  if (!block) return cudaErrorMemoryAllocation;
  block->pool = handle;
  return *pointer = block->data, cudaSuccess;
}

}  // namespace

// "Inserts an allocation operation into hStream. A pointer to the allocated memory is returned immediately in *dptr. The allocation must
// not be accessed until the allocation operation completes. The allocation comes from the memory pool associated with the stream's device."
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t handle) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaMallocAsync");
    const cudaMemPool_t pool = stream ? process.default_pool(stream->device) : nullptr;
    const cudaError_t made = allocate_from(process, pointer, bytes, pool, stream.get(), "cudaMallocAsync");
    if (made == cudaSuccess) process.memory.block_at(*pointer)->allocated = process.engine.enqueue(*stream, Job::Kind::memory, nullptr);
    return made;
  });
}

// "The allocation comes from the specified memory pool."
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t handle) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaMallocFromPoolAsync");
    const cudaError_t made = allocate_from(process, pointer, bytes, pool, stream.get(), "cudaMallocFromPoolAsync");
    if (made == cudaSuccess) process.memory.block_at(*pointer)->allocated = process.engine.enqueue(*stream, Job::Kind::memory, nullptr);
    return made;
  });
}

// "Inserts a free operation into hStream. The allocation must not be accessed after stream execution reaches the free. After this API
// returns, accessing the memory from any subsequent work launched on the GPU [...] results in undefined behavior."
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock& lock) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaFreeAsync");
    if (!stream) return cudaErrorInvalidResourceHandle;
    note_allocation(process, "cudaFreeAsync");
    const Block* const block = process.memory.block_at(pointer);
    if (!block || block->data != pointer) return process.rules.add(Rule::free_unknown, "cudaFreeAsync"), cudaErrorInvalidValue;
    if (!block->uses.within(stream->before, process.engine.known_to_host())) {
      process.rules.add(Rule::free_in_use, "cudaFreeAsync");
      process.engine.settle(lock);  // the broken rule is reported, and does no harm
    }
    process.engine.enqueue(*stream, Job::Kind::memory, [storage = process.memory.release(*block)] { return cudaSuccess; });
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (device < 0 || device >= process.settings.devices) return cudaErrorInvalidDevice;
    return *pool = process.default_pool(device), cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const cudaMemLocation& location = properties->location;
    if (properties->allocType != cudaMemAllocationTypePinned || location.type != cudaMemLocationTypeDevice || location.id < 0 ||
        location.id >= process.settings.devices)
      return cudaErrorInvalidValue;
    auto made = std::make_shared<Pool>();
    made->device = location.id;
    return *pool = process.pools.add(std::move(made)), cudaSuccess;
  });
}

// "If any pointers obtained from this pool haven't been freed [...] the pool will be destroyed when the last is": here they are reported as
// left over.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!process.pools.find(pool)) return process.rules.add(Rule::unknown_pool, "cudaMemPoolDestroy"), cudaErrorInvalidValue;
    return process.pools.remove(pool), cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Pool> pool = process.pool_of(handle);
    if (!pool) return process.rules.add(Rule::unknown_pool, "cudaMemPoolSetAttribute"), cudaErrorInvalidValue;
    if (attribute != cudaMemPoolAttrReleaseThreshold) return cudaErrorNotSupported;
    return pool->kept_bytes = *static_cast<const uint64_t*>(value), cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Pool> pool = process.pool_of(handle);
    if (!pool) return process.rules.add(Rule::unknown_pool, "cudaMemPoolTrimTo"), cudaErrorInvalidValue;
    return ++pool->trims, cudaSuccess;
  });
}

// "cudaMemPoolSetAccess affects all allocations from the memory pool, not just future ones" (Programming Guide, Stream Ordered Memory
// Allocator).
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* accesses, size_t count) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Pool> pool = process.pool_of(handle);
    if (!pool) return process.rules.add(Rule::unknown_pool, "cudaMemPoolSetAccess"), cudaErrorInvalidValue;
    if (!accesses) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      const cudaMemLocation& location = accesses[i].location;
      if (location.type != cudaMemLocationTypeDevice || location.id < 0 || location.id >= process.settings.devices)
        return cudaErrorInvalidDevice;
      accesses[i].flags == cudaMemAccessFlagsProtReadWrite ? void(pool->devices.insert(location.id))
                                                           : void(pool->devices.erase(location.id));
    }
    return cudaSuccess;
  });
}

// Allocates for embedding programs: all streams may use the memory when the call returns.
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    note_allocation(process, "cudaMalloc");
    if (process.faults.strikes(process.faults.allocation)) return cudaErrorMemoryAllocation;
    Block* const block = process.memory.allocate(this_thread().device, bytes, process.settings.memory_bytes);
    if (!block) return cudaErrorMemoryAllocation;
    process.engine.known(block->allocated);
    return *pointer = block->data, cudaSuccess;
  });
}

// "If devPtr is 0, no operation is performed." Work that may still use it must be known to be done: the documentation does not say that
// this call waits.
cudaError_t cudaFree(void* pointer) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock& lock) {
    if (!pointer) return cudaSuccess;
    note_allocation(process, "cudaFree");
    const Block* const block = process.memory.block_at(pointer);
    if (!block || block->data != pointer) return process.rules.add(Rule::free_unknown, "cudaFree"), cudaErrorInvalidValue;
    if (!block->uses.within({}, process.engine.known_to_host())) {
      process.rules.add(Rule::free_in_use, "cudaFree");
      process.engine.settle(lock);  // the broken rule is reported, and does no harm
    }
    return process.memory.release(*block), cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if ((flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)) != 0) return cudaErrorInvalidValue;
    note_allocation(process, "cudaHostAlloc");
    if (process.faults.strikes(process.faults.allocation)) return cudaErrorMemoryAllocation;
    const HostBlock* const block = process.memory.allocate_host(bytes);
    if (!block) return cudaErrorMemoryAllocation;
    return *pointer = block->data, cudaSuccess;
  });
}

// "Frees the memory space pointed to by hostPtr, which must have been returned by a previous call to cudaMallocHost() or cudaHostAlloc()."
cudaError_t cudaFreeHost(void* pointer) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    note_allocation(process, "cudaFreeHost");
    const HostBlock* const block = process.memory.host_block_at(pointer);
    if (!block || block->data != pointer || block->registered)
      return process.rules.add(Rule::free_unknown, "cudaFreeHost"), cudaErrorInvalidValue;
    if (!block->uses.within({}, process.engine.known_to_host())) process.rules.add(Rule::host_freed_in_use, "cudaFreeHost");
    return process.memory.release_host(*block), cudaSuccess;
  });
}

// Registers by bytes, not by pages: other memory on the same page may be registered too.
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!pointer || bytes == 0 || (flags & ~(cudaHostRegisterPortable | cudaHostRegisterMapped)) != 0) return cudaErrorInvalidValue;
    note_allocation(process, "cudaHostRegister");
    if (process.memory.overlaps_host(pointer, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    return process.memory.register_host(pointer, bytes), cudaSuccess;
  });
}

// "The base address must be the same one specified to cudaHostRegister()." Memory of cudaHostAlloc is no valid argument.
cudaError_t cudaHostUnregister(void* pointer) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    note_allocation(process, "cudaHostUnregister");
    const HostBlock* const block = process.memory.host_block_at(pointer);
    if (!block || block->data != pointer || !block->registered) {
      process.rules.add(Rule::host_unregistered, "cudaHostUnregister");
      return block ? cudaErrorInvalidValue : cudaErrorHostMemoryNotRegistered;
    }
    if (!block->uses.within({}, process.engine.known_to_host())) process.rules.add(Rule::host_freed_in_use, "cudaHostUnregister");
    return process.memory.release_host(*block), cudaSuccess;
  });
}

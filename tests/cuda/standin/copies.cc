// Implements cudart: copies, fills and host functions in a stream.
//
// When a copy reads and writes the host's bytes (Runtime API, API synchronization behavior, and the Programming Guide where it is quoted):
//  - From pinned memory, and to it: when the stream comes to it. "For all other transfers, the function is fully asynchronous."
//  - From pageable memory: during the call. "The function will return once the pageable buffer has been copied to the staging memory for
//  DMA
//    transfer to device memory, but the DMA to final destination may not have completed." Up to 64 KB without waiting ("Memory copies from
//    host to device of a memory block of 64 KB or less" are asynchronous, Programming Guide, Concurrent Execution between Host and Device);
//    more waits for what is on the stream first ("a stream sync is performed before the copy is initiated"; of the Async form: "the driver
//    may synchronize with the stream and stage the copy into pinned memory").
//  - To pageable memory: "the function will return only once the copy has completed".
#include <cstring>
#include <string>

#include "process.h"

namespace standin = heddle::cuda::standin;
using standin::Block;
using standin::CallKind;
using standin::HostBlock;
using standin::Job;
using standin::Lock;
using standin::Process;
using standin::Rule;
using standin::Stream;
using standin::this_thread;

namespace {

constexpr size_t staged_without_waiting = 64 * 1024;

// The memory at an address: at most one is not null.
struct At {
  Block* block = nullptr;
  HostBlock* pinned = nullptr;
};

std::string where(const Block& block, const void* address, size_t bytes) {
  return std::to_string(bytes) + " bytes at offset " + std::to_string(static_cast<const std::byte*>(address) - block.data) + " of " +
         std::to_string(block.bytes);
}

template <class AnyBlock>
bool is_beyond(const AnyBlock& block, const void* address, size_t bytes) {
  const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(address) - block.data);
  return bytes > block.bytes - offset;
}

At at(Process& process, const void* address, size_t bytes) {
  At found;
  found.block = process.memory.block_at(address);
  found.pinned = process.memory.host_block_at(address);
  // Memory of which only a part is registered counts as pageable in a copy.
  if (found.pinned && is_beyond(*found.pinned, address, bytes)) found.pinned = nullptr;
  return found;
}

// Returns true if `address` is device memory as `kind` says; otherwise reports the rule that is broken.
bool is_as_said(Process& process, const At& found, bool of_device, const void* address, size_t bytes, const std::string& call) {
  if (!of_device) {
    if (found.block) process.rules.add(Rule::copy_direction, call);
    return !found.block;
  }
  if (!found.block) {
    process.rules.add(found.pinned ? Rule::copy_direction : Rule::not_device_memory, call);
    return false;
  }
  if (!is_beyond(*found.block, address, bytes)) return true;
  process.rules.add(Rule::copy_beyond, call + ": " + where(*found.block, address, bytes));
  return false;
}

bool overlap(const void* a, const void* b, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first < second ? second - first < bytes : first - second < bytes;
}

void use_both(Process& process, const At& to, const At& from, const Stream& stream, const char* call) {
  for (const At& side : {to, from}) {
    if (side.block) process.use(*side.block, stream, call);
    if (side.pinned) side.pinned->uses.add(stream.place());
  }
}

// A word may be set or read by the host meanwhile: it is copied as a whole.
void copy_bytes(void* destination, const void* source, size_t bytes) {
  const auto is_word = [&](const void* address) { return bytes == sizeof(uint64_t) && reinterpret_cast<uintptr_t>(address) % bytes == 0; };
  if (is_word(destination) && is_word(source))
    __atomic_store_n(static_cast<uint64_t*>(destination), __atomic_load_n(static_cast<const uint64_t*>(source), __ATOMIC_RELAXED),
                     __ATOMIC_RELEASE);
  else
    std::memcpy(destination, source, bytes);
}

// Enqueues a copy whose sides were checked. `to_host`: the destination is the host's, `from_host`: the source.
cudaError_t enqueue_copy(Process& process, Lock& lock, Stream& stream, void* destination, const void* source, size_t bytes, bool to_host,
                         bool from_host, const char* call) {
  const At to = at(process, destination, bytes), from = at(process, source, bytes);
  if (!is_as_said(process, to, !to_host, destination, bytes, call) || !is_as_said(process, from, !from_host, source, bytes, call))
    return cudaErrorInvalidValue;
  if (overlap(destination, source, bytes)) return process.rules.add(Rule::copy_overlap, call), cudaErrorInvalidValue;
  std::function<cudaError_t()> move = [=] { return copy_bytes(destination, source, bytes), cudaSuccess; };
  if (from_host && !from.pinned) {
    if (bytes > staged_without_waiting) process.wait_on_host(lock, stream, call);
    std::shared_ptr<std::byte[]> staged(new std::byte[bytes]);
    std::memcpy(staged.get(), source, bytes);
    move = [=] { return std::memcpy(destination, staged.get(), bytes), cudaSuccess; };
  }
  process.engine.enqueue(stream, Job::Kind::transfer, std::move(move));
  use_both(process, to, from, stream, call);
  if (to_host && !to.pinned) process.wait_on_host(lock, stream, call);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock& lock) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaMemcpyAsync");
    if (!stream) return cudaErrorInvalidResourceHandle;
    int direction = 0;  // read as a number: a value outside of the enumeration must not be read as one
    std::memcpy(&direction, &kind, sizeof(direction));
    if (direction < cudaMemcpyHostToHost || direction > cudaMemcpyDefault)
      return process.rules.add(Rule::copy_direction, "cudaMemcpyAsync"), cudaErrorInvalidMemcpyDirection;
    if (bytes == 0) return cudaSuccess;
    const bool inferred = kind == cudaMemcpyDefault;
    const bool to_host = inferred ? !process.memory.block_at(destination) : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
    const bool from_host = inferred ? !process.memory.block_at(source) : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
    for (const void* const address : {static_cast<const void*>(destination), source})
      if (const Block* const block = process.memory.block_at(address); block && block->pool && stream->device != this_thread().device)
        process.rules.add(Rule::copy_device, "cudaMemcpyAsync");
    return enqueue_copy(process, lock, *stream, destination, source, bytes, to_host, from_host, "cudaMemcpyAsync");
  });
}

cudaError_t cudaMemcpyPeerAsync(void* destination, int to, const void* source, int from, size_t bytes, cudaStream_t handle) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock& lock) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaMemcpyPeerAsync");
    if (!stream) return cudaErrorInvalidResourceHandle;
    for (const int device : {to, from})
      if (device < 0 || device >= process.settings.devices) return cudaErrorInvalidDevice;
    if (bytes == 0) return cudaSuccess;
    const auto is_elsewhere = [&](const void* address, int device) {
      const Block* const block = process.memory.block_at(address);
      return block && block->device != device;
    };
    if (is_elsewhere(destination, to) || is_elsewhere(source, from))
      return process.rules.add(Rule::not_device_memory, "cudaMemcpyPeerAsync: memory of another device than was said"),
             cudaErrorInvalidValue;
    return enqueue_copy(process, lock, *stream, destination, source, bytes, false, false, "cudaMemcpyPeerAsync");
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t handle) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaMemsetAsync");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    const At to = at(process, memory, bytes);
    if (!is_as_said(process, to, true, memory, bytes, "cudaMemsetAsync")) return cudaErrorInvalidValue;
    process.engine.enqueue(*stream, Job::Kind::work, [=] { return std::memset(memory, value, bytes), cudaSuccess; });
    process.use(*to.block, *stream, "cudaMemsetAsync");
    return cudaSuccess;
  });
}

// "Note that, in contrast to cuStreamAddCallback, the function will not be called in the event of an error in the CUDA context."
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* user) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    const std::shared_ptr<Stream> stream = process.stream_of(handle, "cudaLaunchHostFunc");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!function) return cudaErrorInvalidValue;
    process.engine.enqueue(*stream, Job::Kind::work, [=, &process] { return function(user), ++process.host_functions, cudaSuccess; });
    return cudaSuccess;
  });
}

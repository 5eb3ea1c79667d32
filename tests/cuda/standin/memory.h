// The memory that CUDA allocated or registered, of devices and of the host. Each piece of device memory is a separate block on the heap,
// with the requested size, so that AddressSanitizer knows its end; it holds 0xff, NaN in any float, until it is written.
//
// Everything is guarded by the lock of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "engine.h"

namespace heddle::cuda::standin {

struct Block {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  int device = 0;
  cudaMemPool_t pool = nullptr;  // that it comes from; null: it is cudaMalloc's
  Place allocated;               // where the stream allocates it
  Clock uses;                    // work that reads or writes it
  std::shared_ptr<void> storage;
};

// Pinned memory: allocated by CUDA, or registered.
struct HostBlock {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  bool registered = false;
  Clock uses;
  std::shared_ptr<void> storage;
};

class Memory {
 public:
  // Returns null if there is no memory left.
  Block* allocate(int device, uint64_t bytes, uint64_t limit);
  // Removes the block at once, since later work on the stream may reuse it; the memory is freed with the returned pointer.
  std::shared_ptr<void> release(const Block& block);
  HostBlock* allocate_host(uint64_t bytes);
  HostBlock* register_host(void* data, uint64_t bytes);
  void release_host(const HostBlock& block);

  // Returns the block that contains the address; null if there is none.
  Block* block_at(const void* address);
  HostBlock* host_block_at(const void* address);
  // Returns true if some of the range is in a host block already.
  bool overlaps_host(const void* address, uint64_t bytes) const;

  uint64_t bytes_on(int device) const;
  size_t blocks() const { return blocks_.size(); }
  size_t host_blocks() const { return host_blocks_.size(); }
  void clear();

 private:
  std::map<uintptr_t, Block> blocks_;           // by address
  std::map<uintptr_t, HostBlock> host_blocks_;  // by address
  std::map<int, uint64_t> bytes_;
};

}  // namespace heddle::cuda::standin

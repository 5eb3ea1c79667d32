// Memory that CUDA gave out or was told of: of devices, and of the host. Each piece of a device's is a block of its own on the heap, as
// long as was asked for, so that AddressSanitizer knows its end; it holds 0xff, NaN as any float, until somebody writes it.
//
// All under the lock of the process.
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
  Place allocated;               // where the stream has it
  Clock uses;                    // work that reads or writes it
  std::shared_ptr<void> storage;
};

// Pinned: allocated by CUDA, or registered.
struct HostBlock {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  bool registered = false;
  Clock uses;
  std::shared_ptr<void> storage;
};

class Memory {
 public:
  // Null: there is none left.
  Block* allocate(int device, uint64_t bytes, uint64_t limit);
  // Out of the books at once, as later work on the stream may have it again; the bytes go with what is returned.
  std::shared_ptr<void> release(const Block& block);
  HostBlock* allocate_host(uint64_t bytes);
  HostBlock* register_host(void* data, uint64_t bytes);
  void release_host(const HostBlock& block);

  // In which the address lies; null: none.
  Block* block_at(const void* address);
  HostBlock* host_block_at(const void* address);
  // Whether some of that is in a block of the host's already.
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

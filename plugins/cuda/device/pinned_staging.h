// Copies from and to host memory that is not pinned, without keeping the caller waiting: CUDA's own wait for the stream ("If pageable
// memory must first be staged to pinned memory, the driver may synchronize with the stream and stage the copy into pinned memory", and to
// pageable memory "the function will return only once the copy has completed", Runtime API, API synchronization behavior). Here the stream
// itself copies between the host's memory and a pinned buffer, piece by piece, in functions that it calls on the host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

// Host memory that CUDA knows to be pinned, for all devices. Thread-safe.
class PinnedMemory {
 public:
  static PinnedMemory& all();
  void add(const void* memory, uint64_t bytes);
  // False: it was not among them.
  bool remove(const void* memory);
  // Whether all of that is.
  bool holds(const void* memory, uint64_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<uintptr_t, uint64_t> bytes_;
};

// Of one stream: in its order one buffer serves all copies.
class Staging {
 public:
  Staging() = default;
  // The stream has passed all copies, or never will.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  plugin::Status to_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);
  plugin::Status from_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);

 private:
  // What a function on the host copies. It stands in no list while the stream has yet to come to it.
  struct Piece {
    Staging* staging;
    void* destination;
    const void* source;
    uint64_t bytes;
  };
  plugin::Status reserve(uint64_t bytes);
  plugin::Status call(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);
  static void copy(void* piece);

  std::vector<void*> buffers_;  // the last is in use; earlier ones were too small, and may be in use by copies that were enqueued before
  uint64_t buffer_bytes_ = 0;
  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<Piece*> idle_;
};

}  // namespace heddle::cuda

// Copies from and to host memory that is not pinned, without blocking the caller: CUDA's own wait for the stream ("If pageable memory must
// first be staged to pinned memory, the driver may synchronize with the stream and stage the copy into pinned memory", and to pageable
// memory "the function will return only once the copy has completed", Runtime API, API synchronization behavior). Here host functions that
// CUDA calls copy between the host's memory and a pinned buffer, piece by piece. Copies of more than one piece use the two halves of the
// buffer in turn, and the functions are enqueued on a second stream beside the copies': the host fills or empties one half while the device
// copies the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "device/device_loss.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

// The host memory that CUDA knows to be pinned, for all devices: allocated as pinned, or registered. CUDA registers a byte only once: an
// entry that lies within a registration shares it, and the registration ends when its last user leaves. Memory that only overlaps with a
// registration, or with memory that the embedding program has pinned, is left unchanged. Thread-safe.
class PinnedMemory {
 public:
  static PinnedMemory& all();
  void add_allocated(const void* memory, uint64_t bytes);
  void remove_allocated(const void* memory);
  // Registers the memory with CUDA, or shares the registration that contains all of it. Errors: those of cudaHostRegister.
  plugin::Status enter(void* memory, uint64_t bytes);
  // Must be called once for each enter() of that address. If `lost`, CUDA is not called any more.
  void leave(void* memory, bool lost);
  // Returns true if the stream alone can copy the memory: all of it is in one pinned piece, either known here or pinned by the embedding
  // program.
  bool is_pinned(const void* memory, uint64_t bytes);

 private:
  struct Piece {
    uint64_t bytes = 0;
    uint64_t users = 0;  // entries that contain it or a part of it; 0: it was allocated
  };
  std::map<uintptr_t, Piece>::iterator piece_of(uintptr_t first, uint64_t bytes);
  bool overlaps(uintptr_t first, uint64_t bytes) const;

  std::mutex entering_;                // serialises registrations and their ends; locked before mutex_
  std::mutex mutex_;                   // guards the members below
  std::map<uintptr_t, Piece> pieces_;  // by address
  // Maps each entered address to the address of its piece; 0: CUDA had part of the memory already, and no piece is owned here.
  std::multimap<uintptr_t, uintptr_t> entered_;
  // Memory of the embedding program of which every page was found pinned. Its ends are checked again in each copy.
  std::set<std::pair<uintptr_t, uint64_t>> seen_;
};

// Copies for one stream, in whose order one buffer serves all copies. Calls for one stream never overlap, and its device is current in
// them.
class Staging {
 public:
  // `loss` is the device's and must outlive this.
  explicit Staging(const DeviceLoss& loss) : loss_(loss) {}
  // The stream must have passed all copies, or never pass them.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  plugin::Status to_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);
  plugin::Status from_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);

 private:
  // One copy by a host function. A piece is not in idle_ until the stream has passed it.
  struct Piece {
    Staging* staging;
    void* destination;
    const void* source;
    uint64_t bytes;
  };
  // Resources for copies of more than one piece, created with the first such copy.
  struct Beside {
    cudaStream_t stream = nullptr;                 // runs the host functions
    cudaEvent_t copied[2] = {}, moved[2] = {};     // for each half: the device's copy is done; the host's copy is done
    cudaEvent_t begun = nullptr, ended = nullptr;  // earlier work of the copies' stream is done; the last host function is done
  };
  plugin::Status reserve(uint64_t bytes);
  plugin::Status make_beside();
  template <class EnqueuePieces>
  plugin::Status in_pieces(cudaStream_t stream, const EnqueuePieces& enqueue_pieces);
  plugin::Status call(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);
  static void copy(void* piece);

  const DeviceLoss& loss_;
  std::vector<void*> buffers_;  // the last is in use; earlier ones were too small, and copies enqueued before may still use them
  uint64_t buffer_bytes_ = 0;
  Beside beside_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<Piece*> idle_;
};

}  // namespace heddle::cuda

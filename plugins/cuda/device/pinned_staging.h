// Copies from and to host memory that is not pinned, without keeping the caller waiting: CUDA's own wait for the stream ("If pageable
// memory must first be staged to pinned memory, the driver may synchronize with the stream and stage the copy into pinned memory", and to
// pageable memory "the function will return only once the copy has completed", Runtime API, API synchronization behavior). Here functions
// that CUDA calls on the host copy between the host's memory and a pinned buffer, piece by piece. Copies of more than one piece use the two
// halves of the buffer in turn, and the functions are enqueued on a stream beside the copies': the host fills or empties one half while
// the device copies the other.
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

// Host memory that CUDA knows to be pinned, for all devices: what was allocated so, and what was registered. CUDA registers a byte once:
// who asks for what lies within a registration shares it, and it stays until the last of them lets go. What only overlaps with one, or with
// memory that the embedding program has pinned, stays as it is. Thread-safe.
class PinnedMemory {
 public:
  static PinnedMemory& all();
  void add_allocated(const void* memory, uint64_t bytes);
  void remove_allocated(const void* memory);
  // Registers it with CUDA, or shares the registration that all of it lies in. Errors: those of cudaHostRegister.
  plugin::Status enter(void* memory, uint64_t bytes);
  // Once for each enter of that address. `lost`: CUDA is not to be called any more.
  void leave(void* memory, bool lost);
  // Whether a copy of it is done by the stream alone: all of it is one piece, of these or of the embedding program's.
  bool is_pinned(const void* memory, uint64_t bytes);

 private:
  struct Piece {
    uint64_t bytes = 0;
    uint64_t users = 0;  // that have entered it or a part of it; 0: it was allocated
  };
  std::map<uintptr_t, Piece>::iterator piece_of(uintptr_t first, uint64_t bytes);
  bool overlaps(uintptr_t first, uint64_t bytes) const;

  std::mutex entering_;                // so that registrations and their opposite do not overlap; before mutex_
  std::mutex mutex_;                   // of what follows
  std::map<uintptr_t, Piece> pieces_;  // by address
  // By the address that was entered: that of the piece; 0: CUDA had part of it already, and it is nobody's here.
  std::multimap<uintptr_t, uintptr_t> entered_;
  // Memory of the embedding program's of which every page was seen to be pinned. Its ends are looked at again in each copy.
  std::set<std::pair<uintptr_t, uint64_t>> seen_;
};

// Of one stream: in its order one buffer serves all copies. Calls for one stream never overlap, and its device is current in them.
class Staging {
 public:
  // `loss` is the device's and outlives this.
  explicit Staging(const DeviceLoss& loss) : loss_(loss) {}
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
  // What is needed for copies of more than one piece, made with the first.
  struct Beside {
    cudaStream_t stream = nullptr;                 // of the functions on the host
    cudaEvent_t copied[2] = {}, moved[2] = {};     // of each half: the device's copy is done; the host's is
    cudaEvent_t begun = nullptr, ended = nullptr;  // what the copies' stream had before; the last function
  };
  plugin::Status reserve(uint64_t bytes);
  plugin::Status make_beside();
  template <class EnqueuePieces>
  plugin::Status in_pieces(cudaStream_t stream, const EnqueuePieces& enqueue_pieces);
  plugin::Status call(cudaStream_t stream, void* destination, const void* source, uint64_t bytes);
  static void copy(void* piece);

  const DeviceLoss& loss_;
  std::vector<void*> buffers_;  // the last is in use; earlier ones were too small, and may be in use by copies that were enqueued before
  uint64_t buffer_bytes_ = 0;
  Beside beside_;
  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<Piece*> idle_;
};

}  // namespace heddle::cuda

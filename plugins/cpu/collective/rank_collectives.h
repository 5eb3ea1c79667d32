// Collectives between processes: what each rank sends, receives and computes. All ranks have the same bits, and elements are combined in
// one order, whichever way they go: those of the devices of each rank, and then those of the ranks, each as in one process
// (collective/reductions.h). This is the order of one process with all devices where ranks have 1, 2, 4, ... of them.
//   - short ones go from all ranks to all, or with many ranks along a tree;
//   - of long ones each rank gets a part from all others, combines it, and gives the result to all: as many bytes over each link as in a
//     ring, in two steps instead of 2(n - 1). They go in chunks, so that one chunk is combined while the next is under way.
// 16-bit floats of the devices of one rank are combined in f32, and go to the other ranks as that.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/message_sizes.h"
#include "collective/reductions.h"
#include "shared/collective_parts.h"
#include "shared/ranks/rank_connections.h"

namespace heddle::cpu {

using operators::Parts;
using operators::RankClock;
using operators::RankConnections;
using operators::RankMemory;

// The collectives of one rank, one after another. One thread uses it. The participants are the ranks' parts: those of rank 0 first. Each
// rank has as many. Errors of all functions: those of RankConnections::wait().
class RankCollectives {
 public:
  RankCollectives(RankConnections& connections, int32_t rank, int32_t size);
  // Begins a collective, which fails at `until`.
  void begin(RankClock::time_point until);
  // The number of collectives that have begun.
  uint64_t number() const { return number_; }
  size_t participants(Parts mine) const { return mine.size() * static_cast<size_t>(size_); }

  // Do the work of the operators of these names for all tensors of the parts.
  Status all_reduce(Parts mine, Reduction reduction);
  Status reduce(Parts mine, Reduction reduction, int64_t root);
  Status reduce_scatter(Parts mine, Reduction reduction);
  Status all_gather(Parts mine);
  Status all_to_all(Parts mine);
  Status broadcast(Parts mine, int64_t root);
  Status barrier();
  // Gives `bytes` bytes to all, and fills `all` by rank.
  Status exchange(const void* mine, uint64_t bytes, void* all);

 private:
  // Elements of which all ranks have some: `in` in the dtype in which they go, `out` in that of the tensor. They may be the same.
  struct Elements {
    const char* in;
    char* out;
    int64_t count;
    heddle_dtype sent, dtype;
    Reduction reduction;
    int64_t divisor;
  };
  struct Range {
    int64_t first, count;
  };
  // Where the chunks go that a rank has combined.
  enum class Result : uint8_t { to_all, to_root, kept };

  template <class RangeOf>
  class Chunks;

  Status all_reduce_elements(const Elements& x);
  Status exchange_whole(const Elements& x);
  Status along_tree(const Elements& x);
  template <class RangeOf>
  Status in_chunks(const Elements& x, int64_t chunks, const RangeOf& range, Result result, int32_t root, char* kept);
  Status broadcast_bytes(char* data, uint64_t bytes, int32_t root);
  Status along_tree(char* data, uint64_t bytes, int32_t root);
  Status reduce_whole(Parts mine, uint32_t tensor, Reduction reduction, Elements* x);

  int64_t chunk_bytes() const;
  uint64_t tag(int64_t step, uint64_t bytes) const;
  Status send(int32_t peer, const char* data, uint64_t place_bytes, uint64_t offset, uint64_t bytes, int64_t step);
  Status receive(int32_t peer, char* data, uint64_t place_bytes, uint64_t offset, uint64_t bytes, int64_t step);
  // Long messages go in several, from step `step` on.
  Status send_all(int32_t peer, const char* data, uint64_t bytes, int64_t step);
  Status receive_all(int32_t peer, char* data, uint64_t bytes, int64_t step);
  template <class Given, class Taken>
  Status swap(uint64_t bytes, const Given& given, const Taken& taken);
  Status wait(int32_t peer, const void* data, uint64_t place_bytes);
  static char* sized(std::vector<char>& buffer, uint64_t bytes);

  RankConnections& connections_;
  const int32_t rank_, size_;
  uint64_t number_ = 0;    // of the collective
  uint64_t sequence_ = 0;  // of what goes together: a collective may have several tensors
  RankClock::time_point until_;
  std::vector<char> slots_, packed_, result_, sum_;  // allocated by the first collective that needs as much
};

}  // namespace heddle::cpu

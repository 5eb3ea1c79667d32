// Collectives between processes: what each rank sends, receives and computes. All ranks have the same bits, and elements are combined in
// one order, whichever way they go: those of the devices of each rank, and then those of the ranks, each as in one process
// (collective/reductions.h). This is the order of one process with all devices where ranks have 1, 2, 4, ... of them.
//   - short ones go from all ranks to all, or with many ranks along a tree;
//   - of long ones each rank gets a part from all others, combines it, and gives the result to all: as many bytes over each link as in a
//     ring, in two steps instead of 2(n - 1). They go in chunks, so that one chunk is combined while the next is under way.
// 16-bit floats of the devices of one rank are combined in f32, and go to the other ranks as that.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/rank_messages.h"
#include "collective/reductions.h"
#include "shared/collective_parts.h"

namespace heddle::cpu {

using operators::Parts;

// The collectives of one rank, one after another. One thread uses it. The participants are the ranks' parts: those of rank 0 first. Each
// rank has as many. Errors of all functions: those of RankConnections::wait().
class RankCollectives : private RankMessages {
 public:
  using RankMessages::begin, RankMessages::number, RankMessages::barrier, RankMessages::exchange;
  using RankMessages::RankMessages;
  size_t participants(Parts mine) const { return mine.size() * static_cast<size_t>(size_); }

  // Do the work of the operators of these names for all tensors of the parts.
  Status all_reduce(Parts mine, Reduction reduction);
  Status reduce(Parts mine, Reduction reduction, int64_t root);
  Status reduce_scatter(Parts mine, Reduction reduction);
  Status all_gather(Parts mine);
  Status all_to_all(Parts mine);
  Status broadcast(Parts mine, int64_t root);

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
  // Where the chunks go that a rank has combined.
  enum class Result : uint8_t { to_all, to_root, kept };

  template <class RangeOf>
  class Chunks;

  Status all_reduce_elements(const Elements& x);
  Status exchange_whole(const Elements& x);
  Status along_tree(const Elements& x);
  template <class RangeOf>
  Status in_chunks(const Elements& x, int64_t chunks, const RangeOf& range, Result result, int32_t root, char* kept);
  Status reduce_whole(Parts mine, uint32_t tensor, Reduction reduction, Elements* x);

  int64_t chunk_bytes() const;
  static char* sized(std::vector<char>& buffer, uint64_t bytes);

  std::vector<char> slots_, packed_, result_, sum_;  // allocated by the first collective that needs as much
};

}  // namespace heddle::cpu

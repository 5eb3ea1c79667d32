// The messages of one rank's collectives, and what ranks do with bytes alone: give them to all, exchange them, wait for each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "collective/message_sizes.h"
#include "heddle/op.h"
#include "shared/ranks/rank_connections.h"

namespace heddle::cpu {

using operators::RankClock;
using operators::RankConnections;
using operators::RankMemory;
using plugin::Status;

// Elements of a tensor, or bytes.
struct ElementRange {
  int64_t first, count;
};

// The part of one rank in `count` elements from `first` on, which are divided among all: the first ranks have one more.
inline ElementRange share_of_rank(int64_t first, int64_t count, int32_t rank, int32_t size) {
  const int64_t each = count / size, rest = count % size;
  return {first + rank * each + std::min<int64_t>(rank, rest), each + (rank < rest ? 1 : 0)};
}

// One thread uses it. A step is a message's place among those of a collective; both sides name the same ones. Messages may come and go
// until wait() for the place in memory that they are of: `data`, of `place_bytes` bytes. Errors of all functions: those of
// RankConnections::wait().
class RankMessages {
 public:
  RankMessages(RankConnections& connections, int32_t rank, int32_t size);
  // Begins a collective, which fails at `until`.
  void begin(RankClock::time_point until);
  // The number of collectives that have begun.
  uint64_t number() const { return number_; }

  // Returns when all ranks have come as far.
  Status barrier();
  // Gives `bytes` bytes to all, and fills `all` by rank.
  Status exchange(const void* mine, uint64_t bytes, void* all);

 protected:
  // Begins what goes together next: a collective may have several tensors.
  void next() { ++sequence_; }
  Status send(int32_t peer, const char* data, uint64_t place_bytes, uint64_t offset, uint64_t bytes, int64_t step);
  Status receive(int32_t peer, char* data, uint64_t place_bytes, uint64_t offset, uint64_t bytes, int64_t step);
  // Long messages go in several, from step `step` on.
  Status send_all(int32_t peer, const char* data, uint64_t bytes, int64_t step);
  Status receive_all(int32_t peer, char* data, uint64_t bytes, int64_t step);
  Status wait(int32_t peer, const void* data, uint64_t place_bytes);
  // Gives each peer the bytes at given(peer), and fills those at taken(peer) with what it gives.
  template <class Given, class Taken>
  Status swap(uint64_t bytes, const Given& given, const Taken& taken);
  // Give the root's bytes to all: along a tree, or in the way that is best for so many.
  Status give_along_tree(char* data, uint64_t bytes, int32_t root);
  Status broadcast_bytes(char* data, uint64_t bytes, int32_t root);

  const int32_t rank_, size_;

 private:
  uint64_t tag(int64_t step, uint64_t bytes) const;

  RankConnections& connections_;
  uint64_t number_ = 0;    // of the collective
  uint64_t sequence_ = 0;  // of what goes together
  RankClock::time_point until_;
  std::array<char, 2> token_ = {};  // of barriers: what is sent, what is received
};

template <class Given, class Taken>
Status RankMessages::swap(uint64_t bytes, const Given& given, const Taken& taken) {
  for (int32_t peer = 0; peer < size_; ++peer)
    if (peer != rank_) HEDDLE_PLUGIN_CHECK(receive_all(peer, taken(peer), bytes, 0));
  for (int32_t peer = 0; peer < size_; ++peer)
    if (peer != rank_) HEDDLE_PLUGIN_CHECK(send_all(peer, given(peer), bytes, 0));
  for (int32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    HEDDLE_PLUGIN_CHECK(wait(peer, taken(peer), bytes));
    HEDDLE_PLUGIN_CHECK(wait(peer, given(peer), bytes));
  }
  return {};
}

}  // namespace heddle::cpu

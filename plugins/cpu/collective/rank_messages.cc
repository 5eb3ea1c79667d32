#include "collective/rank_messages.h"

#include <algorithm>
#include <cstring>

namespace heddle::cpu {

RankMessages::RankMessages(RankConnections& connections, int32_t rank, int32_t size)
    : rank_(rank), size_(size), connections_(connections) {}

void RankMessages::begin(RankClock::time_point until) {
  until_ = until;
  connections_.begin();
  ++sequence_;
  ++number_;
}

// The number of what goes together (23 bits), the step in it (16) and the number of bytes (24): ranks that disagree about a size never take
// each other's bytes.
uint64_t RankMessages::tag(int64_t step, uint64_t bytes) const {
  return (sequence_ & 0x7fffff) << 40 | (static_cast<uint64_t>(step) & 0xffff) << 24 | (bytes & 0xffffff);
}

Status RankMessages::send(int32_t peer, const char* data, uint64_t place_bytes, uint64_t offset, uint64_t bytes, int64_t step) {
  if (bytes == 0) return {};
  RankMemory* const place = connections_.memory(peer, const_cast<char*>(data), place_bytes);
  if (!place) return {HEDDLE_ERROR_OUT_OF_MEMORY, "a place to send from"};
  return connections_.send(*place, tag(step, bytes), offset, bytes);
}

Status RankMessages::receive(int32_t peer, char* data, uint64_t place_bytes, uint64_t offset, uint64_t bytes, int64_t step) {
  if (bytes == 0) return {};
  RankMemory* const place = connections_.memory(peer, data, place_bytes);
  if (!place) return {HEDDLE_ERROR_OUT_OF_MEMORY, "a place to receive into"};
  return connections_.receive(*place, tag(step, bytes), offset, bytes);
}

Status RankMessages::send_all(int32_t peer, const char* data, uint64_t bytes, int64_t step) {
  const auto chunk = static_cast<uint64_t>(min_chunk_bytes);
  for (uint64_t at = 0; at < bytes; at += chunk) HEDDLE_PLUGIN_CHECK(send(peer, data, bytes, at, std::min(chunk, bytes - at), step++));
  return {};
}

Status RankMessages::receive_all(int32_t peer, char* data, uint64_t bytes, int64_t step) {
  const auto chunk = static_cast<uint64_t>(min_chunk_bytes);
  for (uint64_t at = 0; at < bytes; at += chunk) HEDDLE_PLUGIN_CHECK(receive(peer, data, bytes, at, std::min(chunk, bytes - at), step++));
  return {};
}

Status RankMessages::wait(int32_t peer, const void* data, uint64_t place_bytes) {
  if (place_bytes == 0) return {};
  RankMemory* const place = connections_.memory(peer, const_cast<void*>(data), place_bytes);
  if (!place) return {HEDDLE_ERROR_OUT_OF_MEMORY, "a place to wait for"};
  return connections_.wait(*place, until_);
}

// ---------------------------------------------------------------- bytes

// From the root to all: each rank that has the bytes gives them to the one `step` ranks after it, the longest step first.
Status RankMessages::give_along_tree(char* data, uint64_t bytes, int32_t root) {
  const int32_t place = (rank_ - root + size_) % size_;
  int32_t step = 1;
  while (step < size_) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (place % step != 0) continue;
    const bool gives = place % (2 * step) == 0;
    if (gives && place + step >= size_) continue;
    const int32_t peer = ((gives ? place + step : place - step) + root) % size_;
    HEDDLE_PLUGIN_CHECK(gives ? send_all(peer, data, bytes, 1) : receive_all(peer, data, bytes, 1));
    HEDDLE_PLUGIN_CHECK(wait(peer, data, bytes));
  }
  return {};
}

// If there are many bytes, the root gives each rank a part, which that gives to the others.
Status RankMessages::broadcast_bytes(char* data, uint64_t bytes, int32_t root) {
  if (size_ == 2 || bytes <= static_cast<uint64_t>(short_bytes)) return give_along_tree(data, bytes, root);
  const auto part = [&](int32_t rank) { return share_of_rank(0, static_cast<int64_t>(bytes), rank, size_); };
  const auto at = [&](int32_t rank) { return data + part(rank).first; };
  const auto length = [&](int32_t rank) { return static_cast<uint64_t>(part(rank).count); };
  constexpr int64_t second = 1 << 15;  // the number of the first step after that in which the root gives
  for (int32_t peer = 0; peer < size_; ++peer)
    if (peer != rank_ && rank_ != root)
      HEDDLE_PLUGIN_CHECK(
          receive_all(peer, at(peer == root ? rank_ : peer), length(peer == root ? rank_ : peer), peer == root ? 0 : second));
  if (rank_ != root) {
    HEDDLE_PLUGIN_CHECK(receive_all(root, at(root), length(root), second));
    HEDDLE_PLUGIN_CHECK(wait(root, at(rank_), length(rank_)));
  }
  for (int32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    if (rank_ == root) HEDDLE_PLUGIN_CHECK(send_all(peer, at(peer), length(peer), 0));
    if (peer != root) HEDDLE_PLUGIN_CHECK(send_all(peer, at(rank_), length(rank_), second));
  }
  for (int32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    HEDDLE_PLUGIN_CHECK(wait(peer, at(peer), length(peer)));
    HEDDLE_PLUGIN_CHECK(wait(peer, at(rank_), length(rank_)));
  }
  return {};
}

// In round k each rank hears of the one 2^k ranks before it, and so of all that this one has heard of.
Status RankMessages::barrier() {
  int64_t round = 0;
  for (int32_t step = 1; step < size_; step *= 2, ++round) {
    const int32_t to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
    HEDDLE_PLUGIN_CHECK(receive(from, &token_[1], 1, 0, 1, round));
    HEDDLE_PLUGIN_CHECK(send(to, &token_[0], 1, 0, 1, round));
    HEDDLE_PLUGIN_CHECK(wait(from, &token_[1], 1));
    HEDDLE_PLUGIN_CHECK(wait(to, &token_[0], 1));
  }
  return {};
}

Status RankMessages::exchange(const void* mine, uint64_t bytes, void* all) {
  const auto of = [&](int32_t rank) { return static_cast<char*>(all) + static_cast<uint64_t>(rank) * bytes; };
  std::memcpy(of(rank_), mine, bytes);
  return swap(
      bytes, [&](int32_t) { return of(rank_); }, of);
}

}  // namespace heddle::cpu

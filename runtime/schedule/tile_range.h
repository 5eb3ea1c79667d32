// The tiles of one step that are not claimed yet: [front, back) in one 64-bit atomic. The thread that owns the step takes ranges from
// the front, helpers from the back, so that each works on neighbouring tiles.
//
// Counted in units (32 bits) of one tile or more. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace heddle {

enum class TileEnd { front, back };

class TileRange {
 public:
  struct Claim {
    uint32_t begin = 0;
    uint32_t end = 0;
    uint32_t size() const { return end - begin; }
  };

  // Opens the range. Writes of the caller before this are visible to threads that claim a range.
  void open(uint32_t units) noexcept { word_.store(pack(0, units), std::memory_order_release); }
  bool empty() const noexcept {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    return front(word) == back(word);
  }

  // Takes `choose(unclaimed)` units from one end; an empty claim when none is left. `choose` gets and returns at least 1.
  template <class Choose>
  Claim claim(TileEnd from, Choose&& choose) noexcept {
    uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      const uint32_t first = front(word);
      const uint32_t last = back(word);
      if (first == last) return {};
      const uint32_t n = std::min(last - first, choose(last - first));
      const uint64_t rest = from == TileEnd::front ? pack(first + n, last) : pack(first, last - n);
      if (word_.compare_exchange_weak(word, rest, std::memory_order_acq_rel, std::memory_order_acquire))
        return from == TileEnd::front ? Claim{first, first + n} : Claim{last - n, last};
    }
  }
  Claim claim_all() noexcept {
    return claim(TileEnd::front, [](uint32_t unclaimed) { return unclaimed; });
  }

 private:
  static uint64_t pack(uint32_t first, uint32_t last) { return first | (static_cast<uint64_t>(last) << 32); }
  static uint32_t front(uint64_t word) { return static_cast<uint32_t>(word); }
  static uint32_t back(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

  std::atomic<uint64_t> word_{0};
};

// Returns how many of `unclaimed` units to take: a share with which all of `threads` finish together, but at least `least`; a rest smaller
// than that is taken too.
inline uint32_t fair_share(uint32_t unclaimed, uint32_t threads, uint32_t least) noexcept {
  const uint32_t share = std::max(least, unclaimed / std::max(1u, threads) + (unclaimed % std::max(1u, threads) != 0 ? 1 : 0));
  return unclaimed <= share || unclaimed - share < least ? unclaimed : share;
}

}  // namespace heddle

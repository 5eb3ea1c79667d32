// An offer: the work that a thread shows to others, in one word so that it is shown and taken atomically. It is a chain of ready steps and
// the length of the path from its first one (the upper bits of its rank, so that takers can choose without reading anything of the run).
#pragma once

#include <bit>
#include <cstdint>

#include "schedule/ready_list.h"

namespace heddle {

struct Offer {
  static constexpr uint32_t max_steps = 64;

  // 0 < chain.count <= max_steps; rank_ns >= 0, whose float then sorts like its bits.
  static uint64_t pack(StepChain chain, float rank_ns) {
    return chain.head | (static_cast<uint64_t>(chain.count) << 32) | (static_cast<uint64_t>(std::bit_cast<uint32_t>(rank_ns) >> 7) << 40);
  }
  static StepChain chain(uint64_t word) { return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32) & 0xff}; }
  // Returns the rank of its first step, rounded down; 0 for no offer.
  static float rank_ns(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word >> 40) << 7); }
};

}  // namespace heddle

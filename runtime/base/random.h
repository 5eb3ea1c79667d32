// SplitMix64 (Steele, Lea, Flood 2014): the same seeded numbers on every machine, for shuffles, searches, invented inputs and the weights
// of recipes. Operators of a net draw from Philox.
#pragma once

#include <cstdint>

namespace heddle {

inline uint64_t next_random(uint64_t& state) noexcept {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace heddle

// Pseudo-random numbers from a constant seed: the same on every machine, which std's distributions are not. Private to the planner.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::offsets {

class Dice {
 public:
  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;  // splitmix64 (Steele, Lea, Flood 2014)
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  // Uniform in [1 - spread, 1 + spread).
  double around_one(double spread) { return 1 + spread * (static_cast<double>(next() >> 11) * 0x1p-52 - 1); }

 private:
  uint64_t state_ = 0x48454444u;
};

}  // namespace heddle::offsets

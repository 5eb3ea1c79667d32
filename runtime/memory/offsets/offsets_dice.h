// Pseudo-random numbers from a constant seed: the same on every machine, which std's distributions are not. Private to the planner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace heddle::offsets {

class Dice {
 public:
  uint64_t next() { return next_random(state_); }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  // Uniform in [1 - spread, 1 + spread).
  double around_one(double spread) { return 1 + spread * (static_cast<double>(next() >> 11) * 0x1p-52 - 1); }

 private:
  uint64_t state_ = 0x48454444u;
};

}  // namespace heddle::offsets

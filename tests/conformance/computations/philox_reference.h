// Philox4x32-10 once more, from "Parallel Random Numbers: As Easy as 1, 2, 3" (Salmon, Moraes, Dror, Shaw; SC 2011), section 3.3, and the
// way that docs/operators.md says it is keyed.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

using Words = std::vector<uint32_t>;

// Ten rounds of four words under a key of two.
Words philox_4x32_10(Words counter, Words key);

// Where the numbers of a step come from.
struct Randomness {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint64_t step = 0, trip = 0;

  // Four words for each number of a block.
  Words block(uint64_t number) const;
  // Word `i` of all blocks, one behind the other.
  uint32_t word(uint64_t i) const { return block(i / 4)[i % 4]; }
  // 32 and 53 bits as a number in [0, 1); of 53 bits number `i` is words 2i and 2i + 1.
  Number unit_32(uint64_t i) const;
  Number unit_53(uint64_t i) const;
  // The leading 24 bits.
  Number unit_24(uint64_t i) const;
};

}  // namespace heddle::conformance

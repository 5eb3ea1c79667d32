// A second implementation of Philox4x32-10, from "Parallel Random Numbers: As Easy as 1, 2, 3" (Salmon, Moraes, Dror, Shaw; SC 2011),
// section 3.3, keyed as docs/operators.md describes.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

using Words = std::vector<uint32_t>;

// Applies ten rounds to four words under a key of two.
Words philox_4x32_10(Words counter, Words key);

// The source of the numbers of a step.
struct Randomness {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint64_t step = 0, trip = 0;

  // Returns the four words of a numbered block.
  Words block(uint64_t number) const;
  // Returns word `i` of all blocks, one after the other.
  uint32_t word(uint64_t i) const { return block(i / 4)[i % 4]; }
  // Return 32 and 53 bits as a number in [0, 1); number `i` of 53 bits is made of words 2i and 2i + 1.
  Number unit_32(uint64_t i) const;
  Number unit_53(uint64_t i) const;
  // Returns the leading 24 bits as a number in [0, 1).
  Number unit_24(uint64_t i) const;
};

}  // namespace heddle::conformance

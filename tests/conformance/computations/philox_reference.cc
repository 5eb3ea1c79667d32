#include "conformance/computations/philox_reference.h"

#include <cmath>

namespace heddle::conformance {
namespace {

// The halves of a product of 64 bits.
uint32_t high_half(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
uint32_t low_half(uint32_t a, uint32_t b) {
  return a * b;
}

// The paper writes the words of a block as pairs (L, R): L' = mullo(R, M), R' = mulhi(R, M) xor k xor L, and swaps the pairs' R.
Words philox_round(const Words& x, const Words& key) {
  constexpr uint32_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
  return {high_half(x[2], m1) ^ x[1] ^ key[0], low_half(x[2], m1), high_half(x[0], m0) ^ x[3] ^ key[1], low_half(x[0], m0)};
}

// Returns the output of SplitMix64 (Steele, Lea, Flood; OOPSLA 2014) for a state.
uint64_t splitmix_output(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
  return state ^ (state >> 31);
}

}  // namespace

Words philox_4x32_10(Words counter, Words key) {
  constexpr uint32_t golden_ratio = 0x9E3779B9, root_of_three = 0xBB67AE85;  // the key's Weyl sequences
  for (uint32_t round = 0; round < 10; ++round)
    counter = philox_round(counter, {key[0] + round * golden_ratio, key[1] + round * root_of_three});
  return counter;
}

Words Randomness::block(uint64_t number) const {
  const uint64_t key = trip == 0 ? seed : splitmix_output(seed + trip * 0x9E3779B97F4A7C15u);
  const auto word = [](uint64_t bits) { return static_cast<uint32_t>(bits % (uint64_t{1} << 32)); };
  const uint64_t upper = (number >> 32) % (1u << 16) + (step >> 32 << 16);
  return philox_4x32_10({word(number), word(upper), word(step), stream}, {word(key), word(key >> 32)});
}

Number Randomness::unit_24(uint64_t i) const {
  return std::ldexp(std::floor(std::ldexp(static_cast<Number>(word(i)), -8)), -24);
}
Number Randomness::unit_32(uint64_t i) const {
  return std::ldexp(static_cast<Number>(word(i)), -32);
}
Number Randomness::unit_53(uint64_t i) const {
  const Number all = std::ldexp(static_cast<Number>(word(2 * i)), 32) + static_cast<Number>(word(2 * i + 1));
  return std::ldexp(std::floor(std::ldexp(all, -11)), -53);
}

}  // namespace heddle::conformance

// Philox4x32-10, the counter-based random generator of Salmon et al. (SC 2011), and the keys that Heddle uses for it. The random numbers of
// an element depend on (seed, stream, step, trip, element) only: they are the same for any number of threads and when computed again. All
// functions are pure.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  // `stream`: the operator's constant id; `step`: the net's step counter, below 2^48; `trip`: heddle_run_state::trip, 0 outside subnets.
  Philox(uint64_t seed, uint32_t stream, uint64_t step, uint64_t trip = 0)
      : seed_(trip == 0 ? seed : mixed(seed, trip)), stream_(stream), step_(step) {}
  // `state` must be in memory that the calling code can read: on the host, the state of a step on the host; on a device, the state of a
  // step on that device.
  Philox(const heddle_run_state& state, uint32_t stream) : Philox(state.seed, stream, state.step, state.trip) {}

  // Returns the four random words of block `number`, which must be below 2^48.
  Block block(uint64_t number) const {
    const Block counter = {static_cast<uint32_t>(number),
                           static_cast<uint32_t>((number >> 32) & 0xffff) | static_cast<uint32_t>(step_ >> 32) << 16,
                           static_cast<uint32_t>(step_), stream_};
    return rounds(counter, {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  }

  // Runs the generator itself: ten rounds of `counter` under `key`.
  static Block rounds(Block c, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1],
           static_cast<uint32_t>(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return c;
  }

 private:
  // Returns output number `trip` of SplitMix64 started with `seed`, so that the keys of different trips are unrelated.
  static uint64_t mixed(uint64_t seed, uint64_t trip) {
    uint64_t z = seed + uint64_t{0x9e3779b97f4a7c15} * trip;
    z = (z ^ (z >> 30)) * uint64_t{0xbf58476d1ce4e5b9};
    z = (z ^ (z >> 27)) * uint64_t{0x94d049bb133111eb};
    return z ^ (z >> 31);
  }
  uint64_t seed_;
  uint32_t stream_;
  uint64_t step_;
};

// Converts a random word to a float in [0, 1). The result has 24 random bits and is exact. Round it down to convert it to a 16-bit float,
// which has fewer bits: rounded to nearest, it may become 1.
inline float unit_float(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
// Converts two random words to a double in [0, 1) with 53 random bits.
inline double unit_double(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53;
}
// Returns two random numbers with standard normal distribution, made from two with uniform distribution in [0, 1) (Box and Muller).
inline std::array<double, 2> normal_pair(double u, double v) {
  const double radius = std::sqrt(-2.0 * std::log1p(-u)), angle = 6.283185307179586476925286766559 * v;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace plugin
}  // namespace heddle

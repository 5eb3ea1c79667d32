// Tests the suite's own Philox against the published answers, and the runtime's header against it for keys that no call of an operator has.
#include "conformance/computations/philox_reference.h"

#include <gtest/gtest.h>

#include "heddle/op/philox.h"

namespace heddle::conformance {
namespace {

// The answers are from kat_vectors in Random123, the authors' distribution.
TEST(PhiloxReference, GivesTheKnownAnswers) {
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox_4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_4x32_10({ones, ones, ones, ones}, {ones, ones}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxReference, KeysAsTheRuntimeDoes) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{11}, uint64_t{0xfedcba9876543210}})
    for (const uint32_t stream : {0u, 3u, 0xfffffff0u})
      for (const uint64_t step : {uint64_t{0}, uint64_t{5}, uint64_t{0xabcd12345678}})
        for (const uint64_t trip : {uint64_t{0}, uint64_t{1}, uint64_t{0x123456789abcdef0}})
          for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{0x7654fedcba98}}) {
            const plugin::Philox::Block words = plugin::Philox(seed, stream, step, trip).block(number);
            EXPECT_EQ((Randomness{seed, stream, step, trip}.block(number)), Words(words.begin(), words.end()))
                << seed << " " << stream << " " << step << " " << trip << " " << number;
          }
}

TEST(PhiloxReference, NumbersHaveTheBitsTheySay) {
  const Randomness random{7, 0, 0, 0};
  const plugin::Philox philox(7, 0, 0);
  for (uint64_t block = 0; block < 100; ++block) {
    const plugin::Philox::Block words = philox.block(block);
    for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(random.unit_24(4 * block + i), static_cast<Number>(plugin::unit_float(words[i])));
    for (uint64_t i = 0; i < 2; ++i)
      EXPECT_EQ(random.unit_53(2 * block + i), static_cast<Number>(plugin::unit_double(words[2 * i], words[2 * i + 1])));
  }
}

}  // namespace
}  // namespace heddle::conformance

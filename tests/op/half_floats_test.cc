// The conversions of op/half_floats.h, which authors use, against those of base/half.h, which the tools use.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "heddle/op/dtypes.h"

namespace heddle {
namespace {

using plugin::bf16;
using plugin::f16;

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Half, EveryPatternIsTheSameNumberAsForTheTools) {
  for (uint32_t pattern = 0; pattern <= 0xFFFF; ++pattern) {
    const auto bits = static_cast<uint16_t>(pattern);
    EXPECT_EQ(std::bit_cast<uint32_t>(plugin::to_float(f16::from_bits(bits))), std::bit_cast<uint32_t>(float_of_f16(bits))) << pattern;
    EXPECT_EQ(std::bit_cast<uint32_t>(plugin::to_float(bf16::from_bits(bits))), std::bit_cast<uint32_t>(float_of_bf16(bits))) << pattern;
  }
}

TEST(Half, EveryPatternComesBack) {
  for (uint32_t pattern = 0; pattern <= 0xFFFF; ++pattern) {
    const auto bits = static_cast<uint16_t>(pattern);
    const float half = f16::from_bits(bits), brain = bf16::from_bits(bits);
    const auto quiet = [&](float value, uint16_t bit) { return static_cast<uint16_t>(std::isnan(value) ? bits | bit : bits); };
    EXPECT_EQ(f16(half).bits, quiet(half, 0x0200));
    EXPECT_EQ(f16(static_cast<double>(half)).bits, quiet(half, 0x0200));
    EXPECT_EQ(bf16(brain).bits, quiet(brain, 0x0040));
    EXPECT_EQ(bf16(static_cast<double>(brain)).bits, quiet(brain, 0x0040));
  }
}

// Between each two neighbours, as a float and as a double: the middle goes to the even one, the numbers next to it to the nearer one.
template <class T>
void check_ties(uint16_t last_finite, double beyond) {
  for (uint32_t pattern = 0; pattern <= last_finite; ++pattern) {
    const auto low = static_cast<uint16_t>(pattern), high = static_cast<uint16_t>(pattern + 1), even = low & 1 ? high : low;
    const double below = plugin::to_float(T::from_bits(low));
    const double above = pattern == last_finite ? beyond : plugin::to_float(T::from_bits(high));
    const double middle = below + (above - below) / 2;
    for (const double sign : {1.0, -1.0}) {
      const auto signed_bits = [&](uint16_t bits) { return static_cast<uint16_t>(bits | (sign < 0 ? 0x8000 : 0)); };
      const auto float_middle = static_cast<float>(middle);
      if (static_cast<double>(float_middle) == middle) {  // not among bf16's subnormals
        EXPECT_EQ(T(static_cast<float>(sign) * float_middle).bits, signed_bits(even)) << pattern;
        EXPECT_EQ(T(static_cast<float>(sign) * std::nextafter(float_middle, 0.0F)).bits, signed_bits(low)) << pattern;
        EXPECT_EQ(T(static_cast<float>(sign) * std::nextafter(float_middle, infinity)).bits, signed_bits(high)) << pattern;
      }
      EXPECT_EQ(T(sign * middle).bits, signed_bits(even)) << pattern;
      EXPECT_EQ(T(sign * std::nextafter(middle, 0.0)).bits, signed_bits(low)) << pattern;
      EXPECT_EQ(T(sign * std::nextafter(middle, std::numeric_limits<double>::infinity())).bits, signed_bits(high)) << pattern;
    }
  }
}
TEST(Half, TiesGoToTheEvenNeighbourAndOverflowToInfinity) {
  check_ties<f16>(0x7BFF, 0x1p16);
  check_ties<bf16>(0x7F7F, 0x1p128);
  EXPECT_EQ(f16(65519.996F).bits, 0x7BFF);
  EXPECT_EQ(f16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(f16(-1e300).bits, 0xFC00);
  EXPECT_EQ(bf16(-1e300).bits, 0xFF80);
  EXPECT_EQ(f16(1e-300).bits, 0);
  EXPECT_EQ(f16(-1e-300).bits, 0x8000);
}

// All upper halves of floats, with lower halves that are ties or next to one.
TEST(Half, FloatsRoundAsForTheTools) {
  for (uint32_t high = 0; high <= 0xFFFF; ++high)
    for (const uint32_t low :
         {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u, 0x3001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const auto value = std::bit_cast<float>(high << 16 | low);
      ASSERT_EQ(f16(value).bits, f16_of_float(value)) << std::hex << (high << 16 | low);
      ASSERT_EQ(bf16(value).bits, bf16_of_float(value)) << std::hex << (high << 16 | low);
    }
}

TEST(Half, KernelsComputeWithThemAsWithFloats) {
  const f16 a(1.5F), b(-2.0);
  EXPECT_EQ(a + b, -0.5F);
  EXPECT_TRUE(b < a);
  EXPECT_EQ(static_cast<double>(a), 1.5);
  EXPECT_EQ(static_cast<int64_t>(bf16(-3.0F)), -3);
  EXPECT_NE(f16(std::nanf("")), f16(std::nanf("")));
  static_assert(!std::is_constructible_v<f16, int> && !std::is_constructible_v<bf16, uint16_t>, "bits or a number?");
  static_assert(!std::is_convertible_v<float, f16> && std::is_convertible_v<f16, float>, "digits are not lost by the way");
}

}  // namespace
}  // namespace heddle

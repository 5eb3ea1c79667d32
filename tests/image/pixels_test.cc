// Pixels are resized and coloured to the bit as Pillow does it; the tables are what pillow_checksums.py prints
// (Pillow 9.4 to 12.0; 13.0 sometimes resizes columns before rows).
#include <gtest/gtest.h>

#include "picture_files.h"
#include "pixels/color.h"
#include "pixels/crop.h"
#include "pixels/normalize.h"
#include "pixels/resize.h"

namespace heddle::pictures {
namespace {

// FNV-1a of 64 bits.
uint64_t checksum(const std::vector<uint8_t>& bytes) {
  uint64_t value = 0xCBF29CE484222325u;
  for (const uint8_t byte : bytes) value = (value ^ byte) * 0x100000001B3u;
  return value;
}

struct Resized {
  int64_t height, width, channels;
  Box box;
  int64_t to_height, to_width;
  uint64_t expected;
};
constexpr Resized resized[] = {
    {37, 53, 3, {0, 0, 37, 53}, 16, 16, 0x0d6e05dac99326ee},
    {37, 53, 3, {0, 0, 37, 53}, 37, 20, 0xcbdb46366dc2e632},
    {37, 53, 3, {0, 0, 37, 53}, 12, 53, 0x990c2f14e3d9bae1},
    {37, 53, 3, {0, 0, 37, 53}, 90, 131, 0xc21e3b6ea0ce66fa},
    {37, 53, 3, {0, 0, 37, 53}, 37, 53, 0x3048fb089c0024e2},
    {64, 64, 1, {0, 0, 64, 64}, 7, 5, 0x6f51b8b62a040b78},
    {5, 3, 1, {0, 0, 5, 3}, 1, 1, 0xaf63f24c860211ee},
    {1, 1, 3, {0, 0, 1, 1}, 4, 4, 0x1d3f5649a2627b75},
    {300, 200, 3, {0, 0, 300, 200}, 224, 224, 0xbc23575a4d4106e1},
    {37, 53, 3, {5, 10, 28, 31}, 16, 16, 0x603e9ac4df17c5d8},
    {300, 200, 3, {17, 3, 282, 177}, 224, 224, 0x6f4429c028206706},
    {37, 53, 3, {5, 10, 20, 20}, 20, 20, 0x1997d2b9891d77ea},
};

TEST(Resizing, MakesWhatPillowMakes) {
  Resizing plan;
  for (const Resized& of : resized) {
    const std::vector<uint8_t> bytes = random_bytes(of.height * of.width * of.channels);
    const Pixels from = {bytes.data(), of.height, of.width, of.channels};
    plan.plan(of.height, of.width, of.box, of.to_height, of.to_width);
    std::vector<uint8_t> to(static_cast<size_t>(of.to_height * of.to_width * of.channels));
    for (const int64_t rows : {of.to_height, int64_t{1}, int64_t{7}}) {  // all at once, or in parts
      std::fill(to.begin(), to.end(), uint8_t{0});
      std::vector<uint8_t> memory(static_cast<size_t>(plan.memory_bytes(rows, of.channels)));
      for (int64_t first = 0; first < of.to_height; first += rows)
        plan.run(from, first, std::min(of.to_height, first + rows), memory.data(), to.data());
      EXPECT_EQ(checksum(to), of.expected) << of.height << " x " << of.width << " to " << of.to_height << " x " << of.to_width << ", "
                                           << rows << " rows at a time";
    }
  }
}

struct Colored {
  ColorFactors factors;
  uint64_t expected;
};
constexpr Colored colored[] = {
    {{1.4f, 1.0f, 1.0f}, 0xec7685bbecad4236},  {{0.3f, 1.0f, 1.0f}, 0xe89164b5ff3df328}, {{1.0f, 1.7f, 1.0f}, 0xad18eb560c885d96},
    {{1.0f, 0.25f, 1.0f}, 0x54902086b3ea956d}, {{1.0f, 1.0f, 1.5f}, 0x577a9a35021c6385}, {{1.0f, 1.0f, 0.0f}, 0xacc8d22d44d6b8f6},
    {{0.8f, 1.3f, 0.6f}, 0xdd837063256893a2},
};

TEST(Colors, AreChangedAsPillowChangesThem) {
  const std::vector<uint8_t> bytes = random_bytes(37 * 53 * 3);
  for (const Colored& of : colored) {
    std::vector<uint8_t> to(bytes.size());
    change_colors({bytes.data(), 37, 53, 3}, of.factors, to.data());
    EXPECT_EQ(checksum(to), of.expected) << of.factors.brightness << " " << of.factors.contrast << " " << of.factors.saturation;
    std::vector<uint8_t> in_place = bytes;
    change_colors({in_place.data(), 37, 53, 3}, of.factors, in_place.data());
    EXPECT_EQ(in_place, to);
  }
}

TEST(Crop, TakesTheMiddleAndEveryPlaceAlike) {
  EXPECT_EQ(begin_of_middle(256, 224), 16);
  EXPECT_EQ(begin_of_middle(7, 4), 2);  // as round() of Python has it
  EXPECT_EQ(begin_of_middle(5, 4), 0);
  for (int64_t i = 0; i <= 6; ++i) EXPECT_EQ(begin_of_part(10, 4, (static_cast<double>(i) + 0.5) / 7), i);
  EXPECT_EQ(begin_of_part(10, 4, 1), 6);
  const std::vector<uint8_t> bytes = random_bytes(4 * 5 * 3);
  std::vector<uint8_t> part(2 * 3 * 3), mirrored(bytes.size());
  crop({bytes.data(), 4, 5, 3}, 1, 2, 2, 3, part.data());
  EXPECT_EQ(part[0], bytes[(1 * 5 + 2) * 3]);
  EXPECT_EQ(part[17], bytes[(2 * 5 + 4) * 3 + 2]);
  mirror({bytes.data(), 4, 5, 3}, mirrored.data());
  EXPECT_EQ(mirrored[0], bytes[4 * 3]);
  EXPECT_EQ(mirrored[(3 * 5 + 4) * 3 + 1], bytes[3 * 5 * 3 + 1]);
}

TEST(Normalization, HasAPlaneForEachChannel) {
  const uint8_t bytes[] = {0, 51, 255, 102, 204, 153};
  const Normalization numbers(1.0f / 255, {0.5f, 0.0f, 0.25f}, {0.5f, 1.0f, 2.0f});
  float to[6] = {};
  numbers.write({bytes, 2, 1, 3}, 0, 1, to);
  numbers.write({bytes, 2, 1, 3}, 1, 2, to);
  const float expected[] = {-1.0f, -0.2f, 0.2f, 0.8f, 0.375f, 0.175f};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(to[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace heddle::pictures

// The eight orientations of EXIF, and segments that are malformed.
#include "codec/exif_orientation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heddle::pictures {
namespace {

std::string number(uint32_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i) & 255);
  return text;
}

// An APP1 segment whose directory has another entry first.
std::string segment(int orientation, bool big_endian) {
  const auto n = [&](uint32_t value, int bytes) { return number(value, bytes, big_endian); };
  return std::string("Exif\0\0", 6) + (big_endian ? "MM" : "II") + n(42, 2) + n(8, 4) + n(2, 2) + n(0x0100, 2) + n(4, 2) + n(1, 4) +
         n(640, 4) + n(0x0112, 2) + n(3, 2) + n(1, 4) + n(static_cast<uint32_t>(orientation), 2) + n(0, 2) + n(0, 4);
}

int orientation_of(const std::string& text) {
  const auto* const segment = reinterpret_cast<const unsigned char*>(text.data());
  return has_exif(segment, text.size()) ? exif_orientation(segment + exif_identifier, text.size() - exif_identifier) : 1;
}

TEST(ExifOrientation, IsReadInEitherOrderOfBytes) {
  for (const bool big_endian : {false, true})
    for (int orientation = 1; orientation <= 8; ++orientation) EXPECT_EQ(orientation_of(segment(orientation, big_endian)), orientation);
}

// A segment that is cut off anywhere, or has any byte changed, is read within its bounds, and gives one of the eight orientations.
TEST(ExifOrientation, MalformedSegmentsSayUpright) {
  const std::string whole = segment(6, false);
  for (size_t size = 0; size + 6 < whole.size(); ++size) {
    const std::string cut(whole, 0, size);  // of its own, so that AddressSanitizer knows its end
    const int read = orientation_of(cut);
    EXPECT_TRUE(read == 1 || read == 6) << size;
  }
  EXPECT_EQ(orientation_of(whole.substr(0, 20)), 1);
  EXPECT_EQ(orientation_of(segment(0, true)), 1);
  EXPECT_EQ(orientation_of(segment(9, true)), 1);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = '\xff';
    const int read = orientation_of(changed);
    EXPECT_TRUE(read >= 1 && read <= 8) << at;
  }
}

// The pixels 0 1 2 / 3 4 5 of an upright view as each orientation stores them (EXIF 2.3, figure of tag Orientation: which side of the
// stored picture row 0 and column 0 are).
TEST(ExifOrientation, TurnsAllEightUpright) {
  struct Stored {
    int orientation;
    const char* pixels;
  };
  for (const Stored& stored :
       {Stored{1, "012345"}, {2, "210543"}, {3, "543210"}, {4, "345012"}, {5, "031425"}, {6, "251403"}, {7, "524130"}, {8, "304152"}}) {
    for (const int64_t channels : {1, 3}) {
      std::vector<uint8_t> pixels, upright(static_cast<size_t>(6 * channels));
      for (const char* pixel = stored.pixels; *pixel; ++pixel)
        pixels.insert(pixels.end(), static_cast<size_t>(channels), static_cast<uint8_t>(*pixel));
      turn_upright(stored.orientation, pixels.data(), channels, 2, 3, upright.data());
      std::string seen;
      for (size_t i = 0; i < upright.size(); i += static_cast<size_t>(channels)) seen += static_cast<char>(upright[i]);
      EXPECT_EQ(seen, "012345") << stored.orientation;
    }
  }
}

}  // namespace
}  // namespace heddle::pictures

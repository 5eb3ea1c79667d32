// Pictures are decoded to the right pixels, whatever form they are stored in; damaged files are errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "picture_files.h"

namespace heddle::pictures {
namespace {

// Colours that change slowly, as those of photographs: JPEG keeps them nearly.
std::vector<uint8_t> smooth(int64_t height, int64_t width, int64_t channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) pixels.push_back(static_cast<uint8_t>(40 + c * 30 + 2 * y + x));
  return pixels;
}

int largest_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  if (a.size() != b.size()) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(Codec, PngHasThePixelsThatWereStored) {
  const std::vector<uint8_t> pixels = random_bytes(5 * 7 * 3);
  for (const bool interlaced : {false, true}) {
    const Decoded rgb = decoded(png_of(pixels, 5, 7, PNG_COLOR_TYPE_RGB, interlaced));
    ASSERT_TRUE(rgb.status.ok()) << rgb.status.text;
    EXPECT_EQ(rgb.header.height, 5);
    EXPECT_EQ(rgb.header.width, 7);
    EXPECT_EQ(rgb.pixels, pixels);
    std::vector<uint8_t> exchanged = pixels;
    for (size_t i = 0; i < exchanged.size(); i += 3) std::swap(exchanged[i], exchanged[i + 2]);
    EXPECT_EQ(decoded(png_of(pixels, 5, 7, PNG_COLOR_TYPE_RGB, interlaced), PixelFormat::bgr).pixels, exchanged);
  }
}

TEST(Codec, PngOfOtherColoursBecomesTheseChannels) {
  const std::vector<uint8_t> grey = random_bytes(4 * 6), with_alpha = random_bytes(4 * 6 * 4);
  std::vector<uint8_t> thrice, without_alpha;
  for (const uint8_t byte : grey) thrice.insert(thrice.end(), 3, byte);
  for (size_t i = 0; i < with_alpha.size(); ++i)
    if (i % 4 != 3) without_alpha.push_back(with_alpha[i]);
  EXPECT_EQ(decoded(png_of(grey, 4, 6, PNG_COLOR_TYPE_GRAY)).pixels, thrice);
  EXPECT_EQ(decoded(png_of(grey, 4, 6, PNG_COLOR_TYPE_GRAY), PixelFormat::grayscale).pixels, grey);
  EXPECT_EQ(decoded(png_of(with_alpha, 4, 6, PNG_COLOR_TYPE_RGB_ALPHA)).pixels, without_alpha);
  const Decoded luma = decoded(png_of({255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 10, 10}, 1, 4), PixelFormat::grayscale);
  EXPECT_LE(largest_difference(luma.pixels, {76, 150, 29, 10}), 1);  // of ITU-R BT.601
}

TEST(Codec, JpegHasNearlyThePixelsThatWereStored) {
  for (const Coding coding : {Coding::sequential, Coding::progressive, Coding::scan_by_scan}) {
    const std::vector<uint8_t> pixels = smooth(33, 47, 3), grey = smooth(33, 47, 1);
    const Decoded rgb = decoded(jpeg_of(pixels, 33, 47, 3, coding));
    ASSERT_TRUE(rgb.status.ok()) << rgb.status.text;
    EXPECT_LE(largest_difference(rgb.pixels, pixels), 6);
    EXPECT_LE(largest_difference(decoded(jpeg_of(grey, 33, 47, 1, coding), PixelFormat::grayscale).pixels, grey), 4);
    const std::vector<uint8_t> bgr = decoded(jpeg_of(pixels, 33, 47, 3, coding), PixelFormat::bgr).pixels;
    EXPECT_EQ(bgr[0], rgb.pixels[2]);
    EXPECT_EQ(bgr[2], rgb.pixels[0]);
  }
}

// Inks as Adobe's programs store them: 255 is none.
TEST(Codec, JpegOfInksBecomesColours) {
  std::vector<uint8_t> inks;
  for (int i = 0; i < 16 * 16; ++i) inks.insert(inks.end(), {200, 100, 50, 255});
  const Decoded rgb = decoded(jpeg_of(inks, 16, 16, 4));
  ASSERT_TRUE(rgb.status.ok()) << rgb.status.text;
  EXPECT_NEAR(rgb.pixels[0], 200, 3);
  EXPECT_NEAR(rgb.pixels[1], 100, 3);
  EXPECT_NEAR(rgb.pixels[2], 50, 3);
  for (size_t i = 3; i < inks.size(); i += 4) inks[i] = 51;  // a fifth of the light is left
  EXPECT_NEAR(decoded(jpeg_of(inks, 16, 16, 4)).pixels[0], 40, 3);
}

TEST(Codec, OrientationOfACameraIsApplied) {
  const std::string exif("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 32);  // a quarter turn to the right
  const std::vector<uint8_t> pixels = smooth(16, 24, 3);
  for (const bool is_png : {false, true}) {
    const Decoded upright = decoded(is_png ? png_of(pixels, 16, 24, PNG_COLOR_TYPE_RGB, false, exif.substr(6))
                                           : jpeg_of(pixels, 16, 24, 3, Coding::sequential, exif));
    const Decoded stored = decoded(is_png ? png_of(pixels, 16, 24) : jpeg_of(pixels, 16, 24));
    ASSERT_TRUE(upright.status.ok()) << upright.status.text;
    EXPECT_EQ(upright.header.orientation, 6);
    EXPECT_EQ(upright.header.height, 24);
    EXPECT_EQ(upright.header.width, 16);
    for (int64_t y = 0; y < 24; ++y)
      for (int64_t x = 0; x < 16; ++x)
        ASSERT_EQ(upright.pixels[static_cast<size_t>((y * 16 + x) * 3)], stored.pixels[static_cast<size_t>(((15 - x) * 24 + y) * 3)]);
  }
}

// A picture that lacks its end, wherever it is cut, is an error and not a picture with a grey rest.
TEST(Codec, EveryPrefixIsAnError) {
  const std::vector<uint8_t> pixels = smooth(24, 20, 3);
  for (const std::string& file : {jpeg_of(pixels, 24, 20), jpeg_of(pixels, 24, 20, 3, Coding::progressive), png_of(pixels, 24, 20),
                                  png_of(pixels, 24, 20, PNG_COLOR_TYPE_RGB, true)})
    for (size_t size = 0; size < file.size(); ++size) {
      const std::string cut(file, 0, size);  // of its own, so that AddressSanitizer knows its end
      const Decoded read = decoded(cut);
      ASSERT_FALSE(read.status.ok()) << size << " of " << file.size();
      ASSERT_FALSE(read.status.text.empty());
    }
}

// A channel that is in no scan would be uniformly grey, and a file of arithmetic codes may be short for any picture.
TEST(Codec, PicturesWithoutAllOfTheirChannelsAreAnError) {
  const std::string whole = jpeg_of(smooth(24, 20, 3), 24, 20, 3, Coding::scan_by_scan);
  ASSERT_TRUE(decoded(whole).status.ok());
  const size_t first = whole.find("\xFF\xDA"), second = whole.find("\xFF\xDA", first + 2), third = whole.find("\xFF\xDA", second + 2);
  ASSERT_NE(third, std::string::npos);
  for (const size_t cut : {second, third}) {
    const Decoded read = decoded(whole.substr(0, cut) + "\xFF\xD9");
    EXPECT_NE(read.status.text.find("a channel is in none of its scans"), std::string::npos) << read.status.text;
  }
  const Decoded arithmetic = decoded(jpeg_of(smooth(24, 20, 3), 24, 20, 3, Coding::arithmetic));
  EXPECT_NE(arithmetic.status.text.find("arithmetically"), std::string::npos) << arithmetic.status.text;
}

TEST(Codec, ChangedBytesAreAnErrorOrAPicture) {
  const std::vector<uint8_t> pixels = smooth(24, 20, 3);
  std::mt19937_64 random(47);
  int errors = 0;
  for (const std::string& file : {jpeg_of(pixels, 24, 20), jpeg_of(pixels, 24, 20, 3, Coding::progressive), png_of(pixels, 24, 20)})
    for (int i = 0; i < 2000; ++i) {
      std::string changed = file;
      for (uint64_t count = 1 + random() % 4; count > 0; --count) changed[random() % changed.size()] = static_cast<char>(random());
      const Decoded read = decoded(changed);
      errors += !read.status.ok();
    }
  EXPECT_GE(errors, 2000);  // all PNG files, whose parts have checksums, and many others
}

// Headers that promise gigabytes are refused before memory is taken for them.
TEST(Codec, BombsAreRefusedByTheirHeader) {
  std::string png = png_of(smooth(8, 8, 3), 8, 8);
  const auto with_extents = [](std::string file, uint32_t width, uint32_t height) {
    for (int i = 0; i < 4; ++i) {
      file[static_cast<size_t>(16 + i)] = static_cast<char>(width >> (24 - 8 * i));
      file[static_cast<size_t>(20 + i)] = static_cast<char>(height >> (24 - 8 * i));
    }
    uint32_t checksum = 0xFFFFFFFFu;  // CRC-32 of the chunk's type and content
    for (size_t i = 12; i < 29; ++i) {
      checksum ^= static_cast<uint8_t>(file[i]);
      for (int bit = 0; bit < 8; ++bit) checksum = checksum >> 1 ^ (checksum & 1 ? 0xEDB88320u : 0);
    }
    for (int i = 0; i < 4; ++i) file[static_cast<size_t>(29 + i)] = static_cast<char>(~checksum >> (24 - 8 * i));
    return file;
  };
  ASSERT_TRUE(decoded(with_extents(png, 8, 8)).status.ok());
  EXPECT_NE(decoded(with_extents(png, 100000, 100000)).status.text.find("more than 2^28"), std::string::npos);
  EXPECT_NE(decoded(with_extents(png, 10000, 10000)).status.text.find("is not whole"), std::string::npos);
  EXPECT_FALSE(decoded(with_extents(png, 0, 8)).status.ok());
  std::string jpeg = jpeg_of(smooth(8, 8, 3), 8, 8);
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (const size_t at : {frame + 5, frame + 7}) jpeg.replace(at, 2, "\xFF\xDC");
  EXPECT_NE(decoded(jpeg).status.text.find("more than 2^28"), std::string::npos);
  for (const size_t at : {frame + 5, frame + 7}) jpeg.replace(at, 2, "\x1F\xFE");
  EXPECT_NE(decoded(jpeg).status.text.find("is not whole"), std::string::npos);
}

// Texts of a PNG file are passed over: compressed, a few bytes are megabytes of them.
TEST(Codec, TextsTakeNoMemory) {
  const std::vector<uint8_t> pixels = smooth(8, 8, 3);
  const std::string file = png_of(pixels, 8, 8);
  std::string with_texts = file.substr(0, 33);                                                    // to the end of the header
  for (int i = 0; i < 2000; ++i) with_texts += std::string("\0\0\0\x05zTXtkey\0\0\0\0\0\0", 17);  // a wrong checksum: it is not read
  const Decoded read = decoded(with_texts + file.substr(33));
  EXPECT_TRUE(read.status.ok()) << read.status.text;
  EXPECT_EQ(read.pixels, pixels);
}

// The first of several EXIF segments counts, and there may be many.
TEST(Codec, TheFirstOrientationCounts) {
  const auto exif = [](char orientation) {
    return std::string("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 24) + orientation + std::string("\0\0\0\0\0\0\0", 7);
  };
  const auto segment = [](const std::string& content) {
    return std::string("\xFF\xE1\0", 3) + static_cast<char>(content.size() + 2) + content;
  };
  const std::string file = jpeg_of(smooth(16, 24, 3), 16, 24);
  EXPECT_EQ(decoded(file.substr(0, 2) + segment(exif(1)) + segment(exif(6)) + file.substr(2)).header.orientation, 1);
  EXPECT_EQ(decoded(file.substr(0, 2) + segment("http://ns.adobe.com/xap/") + segment(exif(6)) + file.substr(2)).header.orientation, 6);
}

TEST(Codec, OtherFilesAreNamed) {
  EXPECT_EQ(decoded("").status.text, "the picture is empty");
  EXPECT_EQ(decoded("hello, this is no picture").status.text, "it is no JPEG or PNG picture");
  EXPECT_EQ(decoded("GIF89a......").status.text, "it is a GIF picture; JPEG and PNG are read");
  EXPECT_EQ(decoded("RIFF....WEBPVP8 ").status.text, "it is a WebP picture; JPEG and PNG are read");
  EXPECT_EQ(decoded("BM............").status.text, "it is a BMP picture; JPEG and PNG are read");
  EXPECT_EQ(decoded("P6\n1 1\n255\n...").status.text, "it is a PNM picture; JPEG and PNG are read");
}

}  // namespace
}  // namespace heddle::pictures

// Pictures that tests make: pixels that look random, and JPEG and PNG files of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

// jpeglib.h needs FILE and size_t to be declared.
#include <jpeglib.h>
#include <png.h>

#include "codec/encoded_picture.h"

namespace heddle::pictures {

// Bytes of a linear congruential generator.
inline std::vector<uint8_t> random_bytes(int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  uint64_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<uint8_t>(state >> 56);
  }
  return bytes;
}

// How a JPEG file is coded.
enum class Coding : uint8_t { sequential, progressive, scan_by_scan /* one for each channel */, arithmetic };

// Returns the file of a picture of `components` channels: 1 grey, 3 colours, 4 inks.
inline std::string jpeg_of(const std::vector<uint8_t>& pixels, int64_t height, int64_t width, int components = 3,
                           Coding coding = Coding::sequential, const std::string& marker = "") {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &data, &size);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.input_components = components;
  jpeg.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (coding == Coding::progressive) jpeg_simple_progression(&jpeg);
  if (coding == Coding::arithmetic) jpeg.arith_code = TRUE;
  jpeg_scan_info scans[4] = {};
  if (coding == Coding::scan_by_scan) {
    for (int c = 0; c < components; ++c) scans[c] = {1, {c}, 0, 63, 0, 0};
    jpeg.scan_info = scans;
    jpeg.num_scans = components;
  }
  jpeg_start_compress(&jpeg, TRUE);
  if (!marker.empty())
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()), static_cast<unsigned>(marker.size()));
  for (int64_t y = 0; y < height; ++y) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + y * width * components);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(data), size);
  std::free(data);
  return file;
}

// Returns the file of a picture. `color`: PNG_COLOR_TYPE_GRAY, ..._RGB, ..._RGB_ALPHA; 8 bits.
inline std::string png_of(const std::vector<uint8_t>& pixels, int64_t height, int64_t width, int color = PNG_COLOR_TYPE_RGB,
                          bool interlaced = false, std::string exif = "") {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string file;
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(bytes), size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8, color,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!exif.empty()) png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), reinterpret_cast<png_bytep>(exif.data()));
  png_write_info(png, info);
  const int64_t row_bytes = static_cast<int64_t>(png_get_rowbytes(png, info));
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(const_cast<png_bytep>(pixels.data() + y * row_bytes));
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

inline EncodedPicture encoded(const std::string& file) {
  return {reinterpret_cast<const unsigned char*>(file.data()), file.size()};
}

struct Decoded {
  Status status;
  PictureHeader header;
  std::vector<uint8_t> pixels;
};
inline Decoded decoded(const std::string& file, PixelFormat format = PixelFormat::rgb) {
  Decoded made;
  made.status = read_header(encoded(file), &made.header);
  if (!made.status.ok()) return made;
  made.pixels.resize(static_cast<size_t>(made.header.pixels() * channels_of(format)));
  made.status = decode(encoded(file), made.header, format, made.pixels.data());
  return made;
}

}  // namespace heddle::pictures

#include "codec/png.h"

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include "codec/exif_orientation.h"

namespace heddle::pictures {
namespace {

struct Reading {
  EncodedPicture picture;
  size_t position = 0;
  std::jmp_buf back;
  char text[128] = "";
  bool has_no_memory = false;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

[[noreturn]] void fail(png_structp png, png_const_charp text) {
  auto* const reading = static_cast<Reading*>(png_get_error_ptr(png));
  std::snprintf(reading->text, sizeof reading->text, "%s", text);
  reading->has_no_memory = std::strstr(text, "memory") != nullptr;  // libpng says so in words alone
  std::longjmp(reading->back, 1);
}

void read_bytes(png_structp png, png_bytep to, size_t size) {
  auto* const reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (reading->picture.size - reading->position < size) png_error(png, "it is not whole");
  std::memcpy(to, reading->picture.data + reading->position, size);
  reading->position += size;
}

void begin(Reading& reading) {
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, [](png_structp, png_const_charp) {});
  if (!reading.png) {
    reading.has_no_memory = true;
    std::longjmp(reading.back, 1);
  }
  reading.info = png_create_info_struct(reading.png);
  if (!reading.info) png_error(reading.png, "no memory");
  png_set_read_fn(reading.png, &reading, read_bytes);
  // Texts and profiles, which are compressed and may be large beyond measure, are passed over.
  static constexpr png_byte unread[] = "tEXt\0zTXt\0iTXt\0iCCP\0sPLT";
  png_set_keep_unknown_chunks(reading.png, PNG_HANDLE_CHUNK_NEVER, unread, sizeof unread / 5);
  constexpr png_alloc_size_t max_chunk_bytes = 1 << 20;
  png_set_chunk_malloc_max(reading.png, max_chunk_bytes);
  png_set_user_limits(reading.png, INT32_MAX, INT32_MAX);
  png_read_info(reading.png, reading.info);
}

void end(Reading& reading) {
  png_destroy_read_struct(&reading.png, &reading.info, nullptr);
}

// libpng reports an error by a jump: no object with a destructor may live between it and setjmp.
bool read(Reading& reading, PictureHeader* header) {
  if (setjmp(reading.back)) {
    end(reading);
    return false;
  }
  begin(reading);
  header->height = png_get_image_height(reading.png, reading.info);
  header->width = png_get_image_width(reading.png, reading.info);
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(reading.png, reading.info, &size, &exif) != 0) header->orientation = exif_orientation(exif, size);
  end(reading);
  return true;
}

// Lets libpng give bytes in this order of channels.
void choose_format(Reading& reading, PixelFormat format) {
  png_set_expand(reading.png);
  png_set_strip_16(reading.png);
  png_set_strip_alpha(reading.png);
  constexpr int silently = 1;
  if (format == PixelFormat::grayscale)
    png_set_rgb_to_gray(reading.png, silently, 0.299, 0.587);
  else
    png_set_gray_to_rgb(reading.png);
  if (format == PixelFormat::bgr) png_set_bgr(reading.png);
}

bool write(Reading& reading, const PictureHeader& header, PixelFormat format, uint8_t* pixels) {
  if (setjmp(reading.back)) {
    end(reading);
    return false;
  }
  begin(reading);
  // The memory was made for what the header said when it was first read.
  const int64_t width = header.stored_width(), height = header.stored_height();
  if (png_get_image_height(reading.png, reading.info) != height || png_get_image_width(reading.png, reading.info) != width)
    png_error(reading.png, "its extents have changed");
  // Grey is the weighted sum of the stored bytes: without this, libpng would make them linear first, with the gamma that the file names.
  png_set_gamma(reading.png, 1.0, 1.0);
  choose_format(reading, format);
  const int passes = png_set_interlace_handling(reading.png);
  png_read_update_info(reading.png, reading.info);
  const int64_t row_bytes = width * channels_of(format);
  if (static_cast<int64_t>(png_get_rowbytes(reading.png, reading.info)) != row_bytes)
    png_error(reading.png, "its rows are of another size");
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t y = 0; y < height; ++y) png_read_row(reading.png, pixels + y * row_bytes, nullptr);
  png_read_end(reading.png, nullptr);
  end(reading);
  return true;
}

Status damaged(const Reading& reading) {
  if (reading.has_no_memory) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory to decode a PNG picture"};
  return plugin::invalid(std::string("the PNG picture is damaged: ") + reading.text);
}

}  // namespace

Status read_png_header(const EncodedPicture& picture, PictureHeader* header) {
  Reading reading;
  reading.picture = picture;
  if (!read(reading, header)) return damaged(reading);
  // Deflate makes at most 1032 bytes of one, and each row has a byte or more beside its filter.
  header->min_bytes = header->height * ((header->width + 7) / 8 + 1) / 1032;
  return {};
}

Status decode_png(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels) {
  Reading reading;
  reading.picture = picture;
  return write(reading, header, format, pixels) ? Status() : damaged(reading);
}

}  // namespace heddle::pictures

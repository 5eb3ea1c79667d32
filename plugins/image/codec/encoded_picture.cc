#include "codec/encoded_picture.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "codec/exif_orientation.h"
#include "codec/jpeg.h"
#include "codec/png.h"

namespace heddle::pictures {
namespace {

bool begins_with(const EncodedPicture& picture, const char* signature, size_t size) {
  return picture.size >= size && std::memcmp(picture.data, signature, size) == 0;
}

// Returns the format of a file that is not read; empty: unknown.
std::string other_format(const EncodedPicture& picture) {
  if (begins_with(picture, "GIF8", 4)) return "GIF";
  if (begins_with(picture, "BM", 2)) return "BMP";
  if (begins_with(picture, "RIFF", 4) && picture.size >= 12 && std::memcmp(picture.data + 8, "WEBP", 4) == 0) return "WebP";
  if (begins_with(picture, "II*\0", 4) || begins_with(picture, "MM\0*", 4)) return "TIFF";
  if (begins_with(picture, "\0\0\0\x0CjP  ", 8) || begins_with(picture, "\xFF\x4F\xFF\x51", 4)) return "JPEG 2000";
  if (picture.size >= 3 && picture.data[0] == 'P' && picture.data[1] >= '1' && picture.data[1] <= '6') return "PNM";
  return {};
}

}  // namespace

Status read_header(const EncodedPicture& picture, PictureHeader* header) {
  *header = {};
  if (begins_with(picture, "\xFF\xD8", 2)) {
    header->codec = PictureHeader::Codec::jpeg;
    HEDDLE_PLUGIN_CHECK(read_jpeg_header(picture, header));
  } else if (begins_with(picture, "\x89PNG", 4)) {
    header->codec = PictureHeader::Codec::png;
    HEDDLE_PLUGIN_CHECK(read_png_header(picture, header));
  } else {
    if (picture.size == 0) return plugin::invalid("the picture is empty");
    const std::string format = other_format(picture);
    return plugin::invalid(format.empty() ? "it is no JPEG or PNG picture" : "it is a " + format + " picture; JPEG and PNG are read");
  }
  if (header->height < 1 || header->width < 1) return plugin::invalid("the picture has no pixels");
  if (header->height > max_pixels / header->width)
    return plugin::invalid("the picture has " + std::to_string(header->width) + " x " + std::to_string(header->height) +
                           " pixels, more than 2^28");
  if (header->min_bytes > static_cast<int64_t>(picture.size))
    return plugin::invalid("the picture is not whole: " + std::to_string(picture.size) + " bytes for " + std::to_string(header->width) +
                           " x " + std::to_string(header->height) + " pixels");
  if (header->orientation >= 5) std::swap(header->height, header->width);
  return {};
}

Status decode(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels) try {
  const auto decode_stored = header.codec == PictureHeader::Codec::jpeg ? decode_jpeg : decode_png;
  if (header.orientation == 1) return decode_stored(picture, header, format, pixels);
  const int64_t channels = channels_of(format);
  std::vector<uint8_t> stored(static_cast<size_t>(header.pixels() * channels));
  HEDDLE_PLUGIN_CHECK(decode_stored(picture, header, format, stored.data()));
  turn_upright(header.orientation, stored.data(), channels, header.height, header.width, pixels);
  return {};
} catch (const std::bad_alloc&) {
  return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for a picture of " + std::to_string(header.pixels()) + " pixels"};
}

}  // namespace heddle::pictures

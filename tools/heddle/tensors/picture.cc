#include "tensors/picture.h"

#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

// jpeglib.h needs FILE and size_t to be declared.
#include <jpeglib.h>
#include <png.h>

#include <algorithm>

#include "base/file.h"
#include "base/text/text.h"
#include "tensors/exif_orientation.h"

namespace heddle::tool {
namespace {

constexpr int64_t max_pixels = int64_t{1} << 28;

struct Pixels {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;
};

Status too_large(const std::string& file) {
  return {Code::limit_exceeded, fmt::format("{} has more than 2^28 pixels", quoted(file)), "scale it down"};
}

struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX] = "";
};

// libjpeg reports an error by a jump: no object with a destructor may live between here and setjmp.
bool decode_jpeg(const unsigned char* data, size_t size, Pixels& pixels, int& orientation, JpegFailure& failure, bool& large) {
  jpeg_decompress_struct jpeg = {};
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = [](j_common_ptr info) {
    auto* f = reinterpret_cast<JpegFailure*>(info->err);
    info->err->format_message(info, f->text);
    std::longjmp(f->back, 1);
  };
  failure.manager.output_message = [](j_common_ptr) {};
  if (setjmp(failure.back)) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, data, size);
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&jpeg, TRUE);
  large = int64_t{jpeg.image_width} * jpeg.image_height > max_pixels;
  if (large) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  // Takes the first marker that is EXIF's: others of this kind hold texts about the picture.
  for (const jpeg_marker_struct* marker = jpeg.marker_list; marker && orientation == 1; marker = marker->next)
    orientation = exif_orientation(marker->data, marker->data_length);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  pixels.width = jpeg.output_width;
  pixels.height = jpeg.output_height;
  pixels.rgb.resize(static_cast<size_t>(pixels.width * pixels.height * 3));
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels.rgb.data() + size_t{jpeg.output_scanline} * static_cast<size_t>(pixels.width) * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

Status decode_png(const std::string& file, const FileBytes& bytes, Pixels& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&image, bytes.data.get(), bytes.size))
    return {Code::file_corrupt, fmt::format("{}: {}", quoted(file), quoted(image.message))};
  if (int64_t{image.width} * image.height > max_pixels) {
    png_image_free(&image);
    return too_large(file);
  }
  image.format = PNG_FORMAT_RGB;
  pixels.width = image.width;
  pixels.height = image.height;
  pixels.rgb.resize(PNG_IMAGE_SIZE(image));
  png_color black = {0, 0, 0};
  if (!png_image_finish_read(&image, &black, pixels.rgb.data(), 0, nullptr))
    return {Code::file_corrupt, fmt::format("{}: {}", quoted(file), quoted(image.message))};
  return {};
}

Result<Pixels> decode(const std::string& file) {
  HEDDLE_TRY(const FileBytes bytes, read_file(file, int64_t{1} << 30));
  Pixels pixels;
  if (bytes.size > 8 && std::memcmp(bytes.data.get(), "\x89PNG", 4) == 0) {
    HEDDLE_CHECK(decode_png(file, bytes, pixels));
    return pixels;
  }
  JpegFailure failure;
  bool large = false;
  int orientation = 1;
  if (!decode_jpeg(reinterpret_cast<const unsigned char*>(bytes.data.get()), bytes.size, pixels, orientation, failure, large))
    return large ? too_large(file)
                 : Status(Code::file_corrupt, fmt::format("{} is no JPEG or PNG picture: {}", quoted(file), quoted(failure.text)));
  turn_upright(orientation, &pixels.width, &pixels.height, &pixels.rgb);
  return pixels;
}

}  // namespace

bool is_picture(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

Result<std::shared_ptr<const Blob>> read_picture(const std::string& file, const Shape& shape) {
  if (shape.rank() != 4 || shape[1] != 3 || shape.element_count() == 0)
    return Status(Code::shape_mismatch, fmt::format("{} is a picture, the input has shape {}", quoted(file), shape.text()),
                  "pictures are for inputs [batch, 3, height, width]");
  int64_t pixels_wanted = 1;
  for (const int dim : {0, 2, 3})
    if (__builtin_mul_overflow(pixels_wanted, shape[dim], &pixels_wanted) || pixels_wanted > max_pixels)
      return Status(Code::limit_exceeded, fmt::format("an input of shape {} is too large for a picture", shape.text()),
                    "use a smaller shape");
  HEDDLE_TRY(const Pixels pixels, decode(file));
  const int64_t height = shape[2], width = shape[3];
  // Pixels of the picture per pixel of the input: the input shows the centre 7/8 of the shorter side.
  const double scale = std::min(static_cast<double>(pixels.width) / static_cast<double>(width),
                                static_cast<double>(pixels.height) / static_cast<double>(height)) *
                       7 / 8;
  static constexpr float mean[3] = {0.485f, 0.456f, 0.406f}, deviation[3] = {0.229f, 0.224f, 0.225f};
  std::byte* data = nullptr;
  auto blob = Blob::allocate(DType::f32, shape, &data);
  auto* out = reinterpret_cast<float*>(data);
  const auto at = [&](int64_t y, int64_t x, int64_t c) {
    y = std::clamp<int64_t>(y, 0, pixels.height - 1);
    x = std::clamp<int64_t>(x, 0, pixels.width - 1);
    return static_cast<double>(pixels.rgb[static_cast<size_t>((y * pixels.width + x) * 3 + c)]);
  };
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const double sy =
            (static_cast<double>(y) + 0.5 - static_cast<double>(height) / 2) * scale + static_cast<double>(pixels.height) / 2 - 0.5;
        const double sx =
            (static_cast<double>(x) + 0.5 - static_cast<double>(width) / 2) * scale + static_cast<double>(pixels.width) / 2 - 0.5;
        const auto y0 = static_cast<int64_t>(sy), x0 = static_cast<int64_t>(sx);
        const double fy = sy - static_cast<double>(y0), fx = sx - static_cast<double>(x0);
        const double value = (at(y0, x0, c) * (1 - fx) + at(y0, x0 + 1, c) * fx) * (1 - fy) +
                             (at(y0 + 1, x0, c) * (1 - fx) + at(y0 + 1, x0 + 1, c) * fx) * fy;
        out[(c * height + y) * width + x] = (static_cast<float>(value / 255) - mean[c]) / deviation[c];
      }
  for (int64_t n = 1; n < shape[0]; ++n)
    std::memcpy(out + n * 3 * height * width, out, static_cast<size_t>(3 * height * width) * sizeof(float));
  return std::shared_ptr<const Blob>(std::move(blob));
}

}  // namespace heddle::tool

#include "tensors/picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/text/text.h"
#include "codec/encoded_picture.h"
#include "heddle/op/philox.h"
#include "pixels/color.h"
#include "pixels/crop.h"
#include "pixels/resize.h"

namespace heddle::tool {
namespace {

using pictures::Box;
using pictures::Pixels;
using pictures::Resizing;

constexpr int64_t max_file_bytes = int64_t{1} << 30;
constexpr uint32_t change_stream = 0x91c7;  // of random numbers: no operator of a net has this constant

// Random numbers for one sample.
class Draws {
 public:
  Draws(uint64_t seed, int64_t epoch, int64_t sample)
      : philox_(seed, change_stream, static_cast<uint64_t>(epoch)), next_(static_cast<uint64_t>(sample) * most) {}
  // Returns a number of [0, 1).
  double next() {
    const plugin::Philox::Block words = philox_.block(next_++);
    return static_cast<double>((uint64_t{words[0]} << 21) ^ (words[1] >> 11)) * 0x1p-53;
  }
  double between(double low, double high) { return low + (high - low) * next(); }

 private:
  static constexpr uint64_t most = 64;  // draws of one sample
  const plugin::Philox philox_;
  uint64_t next_;
};

// A part of a picture, in whole pixels.
struct Part {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// Returns a part that is as random as torchvision's RandomResizedCrop takes it: of ten tries the first one that fits, else as much of the
// middle as has a ratio from 3:4 to 4:3.
Part random_part(int64_t height, int64_t width, Draws& draws) {
  constexpr double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int i = 0; i < 10; ++i) {
    const double part = area * draws.between(0.08, 1), ratio = std::exp(draws.between(std::log(min_ratio), std::log(max_ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(part * ratio)));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(part / ratio)));
    const double down = draws.next(), across = draws.next();
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {pictures::begin_of_part(height, h, down), pictures::begin_of_part(width, w, across), h, w};
  }
  Part middle = {0, 0, height, width};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < min_ratio)
    middle.height = std::min(height, static_cast<int64_t>(std::nearbyint(static_cast<double>(width) / min_ratio)));
  else if (ratio > max_ratio)
    middle.width = std::min(width, static_cast<int64_t>(std::nearbyint(static_cast<double>(height) * max_ratio)));
  middle.top = (height - middle.height) / 2;
  middle.left = (width - middle.width) / 2;
  return middle;
}

// Memory that a thread uses from picture to picture.
struct Memory {
  std::vector<uint8_t> decoded, rows, resized, part;
  Resizing resizing;
};

// Points at `size` bytes.
uint8_t* grown(std::vector<uint8_t>& memory, int64_t size) {
  if (static_cast<int64_t>(memory.size()) < size) memory.resize(static_cast<size_t>(size));
  return memory.data();
}

Pixels resized(const Pixels& from, const Box& box, int64_t height, int64_t width, Memory& memory) {
  memory.resizing.plan(from.height, from.width, box, height, width);
  uint8_t* const to = grown(memory.resized, height * width * from.channels);
  memory.resizing.run(from, 0, height, grown(memory.rows, memory.resizing.memory_bytes(height, from.channels)), to);
  return {to, height, width, from.channels};
}

// Scales a part; pixels outside it have no part in that.
Pixels cut_and_resized(const Pixels& from, const Part& part, int64_t height, int64_t width, Memory& memory) {
  uint8_t* const cut = grown(memory.part, part.height * part.width * from.channels);
  pictures::crop(from, part.top, part.left, part.height, part.width, cut);
  return resized({cut, part.height, part.width, from.channels}, {0, 0, static_cast<double>(part.height), static_cast<double>(part.width)},
                 height, width, memory);
}

// Scales the picture so that 7/8 of it, along the side that is shorter for the input, are the input's extent, and cuts out the middle.
// Errors: limit_exceeded (a picture so long and thin that it would have more than 2^28 pixels).
Result<Pixels> middle_of(const Pixels& from, int64_t height, int64_t width, Memory& memory) {
  const bool is_wide = from.width * height >= from.height * width;  // its height is the shorter side
  const int64_t wanted = is_wide ? height : width, has = is_wide ? from.height : from.width;
  const auto shorter = static_cast<int64_t>(std::nearbyint(static_cast<double>(wanted) * 8 / 7));
  const int64_t longer = std::max(is_wide ? width : height, shorter * (is_wide ? from.width : from.height) / has);
  const int64_t h = is_wide ? shorter : longer, w = is_wide ? longer : shorter;
  if (h > pictures::max_pixels / w)
    return Status(Code::limit_exceeded,
                  fmt::format("scaled to a shorter side of {} it would have {} x {} pixels, more than 2^28", shorter, w, h),
                  "cut its middle out");
  const Pixels whole = resized(from, {0, 0, static_cast<double>(from.height), static_cast<double>(from.width)}, h, w, memory);
  uint8_t* const part = grown(memory.part, height * width * from.channels);
  pictures::crop(whole, pictures::begin_of_middle(h, height), pictures::begin_of_middle(w, width), height, width, part);
  return Pixels{part, height, width, from.channels};
}

Result<Pixels> decoded(const std::string& file, int64_t channels, Memory& memory) {
  const Result<FileBytes> read = read_file(file, max_file_bytes);
  if (read.status().code() == Code::limit_exceeded)
    return Status(Code::limit_exceeded, fmt::format("{} has more than 1 GiB, as no picture has", quoted(file)), "look at the file");
  HEDDLE_CHECK(read.status());
  const FileBytes& bytes = *read;
  const pictures::EncodedPicture encoded = {reinterpret_cast<const unsigned char*>(bytes.data.get()), bytes.size};
  pictures::PictureHeader header;
  plugin::Status status = pictures::read_header(encoded, &header);
  if (status.ok()) {
    const auto format = channels == 1 ? pictures::PixelFormat::grayscale : pictures::PixelFormat::rgb;
    status = pictures::decode(encoded, header, format, grown(memory.decoded, header.pixels() * channels));
  }
  if (!status.ok()) {
    const bool is_large = header.width > 0 && header.height > pictures::max_pixels / header.width;
    const Code code = is_large                                    ? Code::limit_exceeded
                      : status.code == HEDDLE_ERROR_OUT_OF_MEMORY ? Code::out_of_memory
                                                                  : Code::file_corrupt;
    return Status(code, fmt::format("{}: {}", quoted(file), status.text), is_large ? "scale it down" : "look at the file");
  }
  return Pixels{memory.decoded.data(), header.height, header.width, channels};
}

}  // namespace

bool is_picture(const std::string& file) {
  std::string extension = std::filesystem::path(file).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

PictureNumbers usual_numbers(int64_t channels) {
  if (channels == 3) return {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  return {{0}, {1}};
}

Result<PictureReader> PictureReader::create(int64_t channels, int64_t height, int64_t width, const PictureNumbers& numbers,
                                            const PictureChanges& changes) {
  if (channels != 1 && channels != 3)
    return Status(Code::invalid_argument, fmt::format("pictures have 1 or 3 channels, the input has {}", channels),
                  "give the input arrays instead");
  const size_t count = numbers.means.size();
  if (count != numbers.deviations.size() || (count != 1 && static_cast<int64_t>(count) != channels) ||
      std::any_of(numbers.deviations.begin(), numbers.deviations.end(), [](float d) { return !(d > 0) || std::isinf(d); }) ||
      std::any_of(numbers.means.begin(), numbers.means.end(), [](float mean) { return !std::isfinite(mean); }))
    return Status(Code::invalid_argument,
                  fmt::format("pictures of {} are normalized by {} means and {} deviations", channels == 1 ? "1 channel" : "3 channels",
                              count, numbers.deviations.size()),
                  "give a mean and a positive deviation for each channel, or one of both");
  if (changes.color > 0 && channels != 3)
    return Status(Code::invalid_argument, "pictures of one channel have no colours that --augment color could change", "leave it out");
  if (height < 1 || width < 1 || height > pictures::max_pixels / width)
    return Status(Code::limit_exceeded, fmt::format("an input of {} x {} pixels is too large for a picture", width, height),
                  "use a smaller shape");
  PictureReader made;
  made.channels_ = channels;
  made.height_ = height;
  made.width_ = width;
  made.numbers_ = pictures::Normalization(1.0f / 255, numbers.means, numbers.deviations);
  made.changes_ = changes;
  made.description_ = fmt::format("{} / {}, {}{}color={}", fmt::join(numbers.means, ","), fmt::join(numbers.deviations, ","),
                                  changes.crop ? "crop " : "", changes.flip ? "flip " : "", changes.color);
  return made;
}

Status PictureReader::read(const std::string& file, uint64_t seed, int64_t epoch, int64_t sample, float* to) const try {
  static thread_local Memory memory;
  HEDDLE_TRY(Pixels picture, decoded(file, channels_, memory));
  Draws draws(seed, epoch, sample);
  if (changes_.crop) {
    picture = cut_and_resized(picture, random_part(picture.height, picture.width, draws), height_, width_, memory);
  } else if (picture.height != height_ || picture.width != width_) {
    HEDDLE_TRY(picture, middle_of(picture, height_, width_, memory), fmt::format("while {} was read", quoted(file)));
  }
  if (changes_.flip && draws.next() < 0.5) {
    uint8_t* const mirrored = grown(picture.data == memory.decoded.data() ? memory.part : memory.decoded, height_ * width_ * channels_);
    pictures::mirror(picture, mirrored);
    picture.data = mirrored;
  }
  if (changes_.color > 0) {
    const double low = std::max(0.0, 1.0 - static_cast<double>(changes_.color)), high = 1.0 + static_cast<double>(changes_.color);
    pictures::ColorFactors factors;
    for (float* const factor : {&factors.brightness, &factors.contrast, &factors.saturation})
      *factor = static_cast<float>(draws.between(low, high));
    pictures::change_colors(picture, factors, const_cast<uint8_t*>(picture.data));  // it lies in `memory`
  }
  numbers_.write(picture, 0, height_, to);
  return {};
} catch (...) {
  return status_of_exception();
}

Result<std::shared_ptr<const Blob>> read_picture(const std::string& file, const Shape& shape) {
  if (shape.rank() != 4 || (shape[1] != 3 && shape[1] != 1) || shape.element_count() == 0)
    return Status(Code::shape_mismatch, fmt::format("{} is a picture, the input has shape {}", quoted(file), shape.text()),
                  "pictures are for inputs [batch, 3, height, width], or 1 for grey");
  int64_t pixels_wanted = 1;
  for (const int dim : {0, 2, 3})
    if (__builtin_mul_overflow(pixels_wanted, shape[dim], &pixels_wanted) || pixels_wanted > pictures::max_pixels)
      return Status(Code::limit_exceeded, fmt::format("an input of shape {} is too large for a picture", shape.text()),
                    "use a smaller shape");
  HEDDLE_TRY(const PictureReader reader, PictureReader::create(shape[1], shape[2], shape[3], usual_numbers(shape[1])));
  std::byte* data = nullptr;
  auto blob = Blob::allocate(DType::f32, shape, &data);
  auto* out = reinterpret_cast<float*>(data);
  HEDDLE_CHECK(reader.read(file, 0, -1, 0, out));
  const int64_t picture = shape[1] * shape[2] * shape[3];
  for (int64_t n = 1; n < shape[0]; ++n) std::memcpy(out + n * picture, out, static_cast<size_t>(picture) * sizeof(float));
  return std::shared_ptr<const Blob>(std::move(blob));
}

}  // namespace heddle::tool

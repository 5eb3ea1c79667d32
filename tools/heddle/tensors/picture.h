// JPEG and PNG pictures as inputs of image nets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "net/net.h"
#include "pixels/normalize.h"

namespace heddle::tool {

bool is_picture(const std::string& file);

// How a picture becomes numbers: (byte / 255 - mean) / deviation, with a mean and a deviation for each channel, or one for all.
struct PictureNumbers {
  std::vector<float> means, deviations;
};
// Returns ImageNet's for three channels, and 0 and 1 for another number of them.
PictureNumbers usual_numbers(int64_t channels);

// Random changes of pictures to train with, as torchvision's RandomResizedCrop, RandomHorizontalFlip and ColorJitter make them.
struct PictureChanges {
  bool crop = false;  // a part of 8 to 100 % of the area, of a ratio from 3:4 to 4:3, becomes the whole
  bool flip = false;  // every second one is mirrored
  float color = 0;    // factors of brightness, contrast and saturation are between 1 - color and 1 + color
};

// Makes pictures the content of an input [channels, height, width]: of 3 channels red, green and blue, of 1 grey. Threads: const functions
// from any; each keeps memory for the largest picture that it has read.
class PictureReader {
 public:
  // Errors: invalid_argument (not 1 or 3 channels, as many numbers as channels, or a deviation of 0; changes of colour of 1 channel);
  // limit_exceeded (extents of more than 2^28 pixels).
  static Result<PictureReader> create(int64_t channels, int64_t height, int64_t width, const PictureNumbers& numbers,
                                      const PictureChanges& changes = {});
  // Writes the picture of a file to `to`. What is random in it follows from these numbers alone. A picture that has the extents of the
  // input is taken as it is; else, without a random part, the shorter side is scaled to 8/7 of the input's and the middle cut out. Errors,
  // with the file's name: those of reading a file; file_corrupt; limit_exceeded (more pixels than 2^28).
  Status read(const std::string& file, uint64_t seed, int64_t epoch, int64_t sample, float* to) const;
  // Returns a text of what becomes of pictures: another one where the numbers or the random changes are others.
  std::string description() const { return description_; }

 private:
  PictureReader() = default;
  int64_t channels_ = 3, height_ = 0, width_ = 0;
  pictures::Normalization numbers_;
  PictureChanges changes_;
  std::string description_;
};

// f32 [batch, channels, height, width] of `shape`: a picture, repeated over the batch. Errors: those of PictureReader; shape_mismatch when
// `shape` is no such image.
Result<std::shared_ptr<const Blob>> read_picture(const std::string& file, const Shape& shape);

}  // namespace heddle::tool

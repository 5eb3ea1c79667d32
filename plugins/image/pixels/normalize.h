// Bytes as numbers: scaled, with a mean and a deviation for each channel, and channels first, as nets have pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "pixels/pixels.h"

namespace heddle::pictures {

class Normalization {
 public:
  Normalization() = default;  // for none
  // Makes (byte * scale - mean) / deviation, as torchvision's ToTensor and Normalize do, computed as byte * (scale / deviation) - mean /
  // deviation in f32. REQUIRES: as many means as deviations, one for each channel, or one for all.
  Normalization(float scale, const std::vector<float>& means, const std::vector<float>& deviations);
  // Writes rows [first, last) of the picture to `to`, where each channel is a plane of height * width numbers.
  void write(const Pixels& from, int64_t first, int64_t last, float* to) const;

 private:
  std::vector<float> factors_, offsets_;  // by channel
};

}  // namespace heddle::pictures

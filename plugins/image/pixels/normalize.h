// Bytes as numbers: scaled, with a mean and a deviation for each channel, and channels first, as nets have pictures.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pixels/pixels.h"

namespace heddle::pictures {

class Normalization {
 public:
  // Makes (byte * scale - mean) / deviation, each in f32, as torchvision's ToTensor and Normalize do. REQUIRES: as many means as
  // deviations, one for each channel, or one for all.
  Normalization() = default;  // for none
  Normalization(float scale, const std::vector<float>& means, const std::vector<float>& deviations);
  // How many channels it is for; 1: any number of them.
  int64_t channels() const { return static_cast<int64_t>(tables_.size()); }
  // Writes rows [first, last) of the picture to `to`, where each channel is a plane of height * width numbers.
  void write(const Pixels& from, int64_t first, int64_t last, float* to) const;

 private:
  std::vector<std::array<float, 256>> tables_;  // by channel, the number of each byte
};

}  // namespace heddle::pictures

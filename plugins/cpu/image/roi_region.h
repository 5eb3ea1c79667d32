// A region of RoiAlign, and the pixels around a point of it with their weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "shared/image/roi_options.h"
#include "shared/scalar.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

struct RoiRegion {
  double top, left, bin_height, bin_width;
  int64_t samples_down, samples_across;  // of one bin

  RoiRegion(const RoiOptions& options, const heddle_tensor& rois, int64_t r, int64_t height, int64_t width) {
    const double shift = options.half_pixel ? 0.5 : 0;
    double edges[4];
    for (int i = 0; i < 4; ++i) edges[i] = number_at(rois, r * 4 + i) * options.spatial_scale - shift;
    double across = edges[2] - edges[0], down = edges[3] - edges[1];
    if (!options.half_pixel) across = std::max(across, 1.0), down = std::max(down, 1.0);
    top = edges[1];
    left = edges[0];
    bin_height = down / static_cast<double>(height);
    bin_width = across / static_cast<double>(width);
    samples_down = options.sampling_ratio == 0 ? sample_count(bin_height) : options.sampling_ratio;
    samples_across = options.sampling_ratio == 0 ? sample_count(bin_width) : options.sampling_ratio;
  }
  int64_t samples() const { return samples_down * samples_across; }
  // The coordinate of sample `i` down, `j` across of a bin.
  double row_of(int64_t bin, int64_t i) const {
    return top + (static_cast<double>(bin) + (static_cast<double>(i) + 0.5) / static_cast<double>(samples_down)) * bin_height;
  }
  double column_of(int64_t bin, int64_t j) const {
    return left + (static_cast<double>(bin) + (static_cast<double>(j) + 0.5) / static_cast<double>(samples_across)) * bin_width;
  }

 private:
  static int64_t sample_count(double bin) {
    return static_cast<int64_t>(std::clamp<double>(std::ceil(std::isnan(bin) ? 0 : bin), 0, max_roi_samples));
  }
};

// Offsets into a map and weights; none where the point lies more than a pixel outside.
struct RoiCorners {
  int count = 0;
  int64_t offsets[4];
  double weights[4];

  RoiCorners(int64_t height, int64_t width, double v, double u) {
    if (!(v >= -1 && v <= static_cast<double>(height) && u >= -1 && u <= static_cast<double>(width)) || height == 0 || width == 0) return;
    v = std::max(v, 0.0);
    u = std::max(u, 0.0);
    const int64_t top = std::min(static_cast<int64_t>(v), height - 1), left = std::min(static_cast<int64_t>(u), width - 1);
    const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
    const double dv = top == height - 1 ? 0 : v - static_cast<double>(top), du = left == width - 1 ? 0 : u - static_cast<double>(left);
    add(top * width + left, (1 - dv) * (1 - du));
    add(top * width + right, (1 - dv) * du);
    add(bottom * width + left, dv * (1 - du));
    add(bottom * width + right, dv * du);
  }

 private:
  void add(int64_t offset, double weight) {
    offsets[count] = offset;
    weights[count++] = weight;
  }
};

}  // namespace heddle::cpu

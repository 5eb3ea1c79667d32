// The attributes of RoiAlign, which its inference has checked. Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

// The limit along one dimension of a bin, so that a region of absurd size ends.
constexpr int64_t max_roi_samples = 4096;

struct RoiOptions {
  bool takes_max = false, half_pixel = true;
  int64_t sampling_ratio = 0;  // 0: as many samples as a bin has pixels
  double spatial_scale = 1;

  RoiOptions() = default;
  explicit RoiOptions(const Attributes& a)
      : takes_max(a.s("mode") == "max"),
        half_pixel(a.s("coordinate_transformation_mode") == "half_pixel"),
        sampling_ratio(a.i("sampling_ratio")),
        spatial_scale(a.f("spatial_scale")) {}
};

}  // namespace heddle::operators

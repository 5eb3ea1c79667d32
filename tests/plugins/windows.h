// Strides and pads of a two-dimensional convolution, and its sum at one output position.
#pragma once

#include "heddle/op.h"

struct Windows {
  Windows() = default;
  explicit Windows(const heddle::plugin::Attributes& attributes) {
    const std::vector<int64_t> strides = attributes.ints("strides"), pads = attributes.ints("pads");
    for (size_t i = 0; i < 2 && i < strides.size(); ++i) stride[i] = strides[i];
    for (size_t i = 0; i < 2 && i < pads.size(); ++i) pad[i] = pads[i];
  }
  int64_t extent(int64_t input, int64_t window, int axis) const {
    return stride[axis] < 1 ? 0 : (input + 2 * pad[axis] - window) / stride[axis] + 1;
  }
  float sum(const heddle::plugin::In<float>& x, const heddle::plugin::In<float>& w, int64_t n, int64_t m, int64_t row,
            int64_t column) const {
    float total = 0;
    for (int64_t c = 0; c < w.dims[1]; ++c)
      for (int64_t i = 0; i < w.dims[2]; ++i)
        for (int64_t j = 0; j < w.dims[3]; ++j) {
          const int64_t h = row * stride[0] + i - pad[0], v = column * stride[1] + j - pad[1];
          if (h < 0 || v < 0 || h >= x.dims[2] || v >= x.dims[3]) continue;
          total += x[((n * x.dims[1] + c) * x.dims[2] + h) * x.dims[3] + v] * w[((m * w.dims[1] + c) * w.dims[2] + i) * w.dims[3] + j];
        }
    return total;
  }
  int64_t stride[2] = {1, 1};
  int64_t pad[2] = {0, 0};  // at the beginning of an axis and at its end
};

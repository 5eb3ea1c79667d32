// Sliding windows: common parts of Conv, ConvTranspose and the pooling operators. Up to three spatial dimensions; extents in elements.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "shared/operator_api.h"

namespace heddle::operators {

constexpr int max_spatial = 3;

struct Window {
  int spatial = 0;
  int64_t input[max_spatial] = {1, 1, 1};
  int64_t output[max_spatial] = {1, 1, 1};
  int64_t kernel[max_spatial] = {1, 1, 1};
  int64_t stride[max_spatial] = {1, 1, 1};
  int64_t dilation[max_spatial] = {1, 1, 1};
  int64_t pad_begin[max_spatial] = {0, 0, 0};
  int64_t pad_end[max_spatial] = {0, 0, 0};  // implied by the output extent, may differ from the attribute

  int64_t input_count() const { return input[0] * input[1] * input[2]; }
  int64_t output_count() const { return output[0] * output[1] * output[2]; }
  int64_t kernel_count() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Elements from the first to the last tap.
  int64_t reach(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
};

// The attributes of ONNX's windowed operators; absent ones are empty.
struct WindowAttributes {
  WindowAttributes() = default;
  explicit WindowAttributes(const Attributes& attributes);
  std::vector<int64_t> kernel_shape, strides, dilations, pads, output_padding, output_shape;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
};

// Resolves the window over input dims `x` = N C S...; `kernel` are its extents. Errors name the wrong attribute.
plugin::Status resolve_window(const WindowAttributes& attributes, Dims x, const std::vector<int64_t>& kernel, Window* window);
// The same for ConvTranspose: window->output is the larger side; kernel, stride, dilation and pads as for the convolution that would turn
// the output into the input.
plugin::Status resolve_transposed_window(const WindowAttributes& attributes, Dims x, const std::vector<int64_t>& kernel, Window* window);

}  // namespace heddle::operators

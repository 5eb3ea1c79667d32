// Extents and padding of sliding windows. See window.h. Formulas: ONNX Conv-11, ConvTranspose-11, MaxPool-12, AveragePool-19.
#include "shared/image/window.h"

#include <algorithm>

#include "shared/dims.h"
#include "shared/operator_api.h"

namespace heddle::operators {
namespace {

constexpr int64_t max_extent = int64_t{1} << 31;  // of any number here, so that sums and products stay far from overflow

std::string list_text(const std::vector<int64_t>& values) {
  return dims_text(dims_of(values));
}

// Fills `target` from an attribute list of one number per spatial dimension, each in [lowest, max_extent].
Status read_list(const char* name, const std::vector<int64_t>& values, int spatial, int64_t lowest, int64_t otherwise, int64_t* target) {
  if (!values.empty() && values.size() != static_cast<size_t>(spatial))
    return invalid(std::string(name) + " is " + list_text(values) + ", expected " + std::to_string(spatial) + " numbers");
  for (int i = 0; i < spatial; ++i) {
    target[i] = values.empty() ? otherwise : values[static_cast<size_t>(i)];
    if (target[i] < lowest || target[i] > max_extent)
      return invalid(std::string(name) + " is " + list_text(values) + ", expected numbers from " + std::to_string(lowest) + " to 2^31");
  }
  return {};
}

Status read_common(const WindowAttributes& attributes, Dims x, const std::vector<int64_t>& kernel, Window* window) {
  *window = {};
  window->spatial = x.rank - 2;
  if (window->spatial < 1 || window->spatial > max_spatial)
    return invalid("input " + dims_text(x) + " has rank " + std::to_string(x.rank) + ", expected 3 to 5: batch, channels, 1 to 3 spatial");
  HEDDLE_PLUGIN_CHECK(read_list("the kernel's shape", kernel, window->spatial, 1, 1, window->kernel));
  HEDDLE_PLUGIN_CHECK(read_list("strides", attributes.strides, window->spatial, 1, 1, window->stride));
  HEDDLE_PLUGIN_CHECK(read_list("dilations", attributes.dilations, window->spatial, 1, 1, window->dilation));
  if (!attributes.pads.empty()) {
    const size_t expected = 2 * static_cast<size_t>(window->spatial);
    if (attributes.pads.size() != expected)
      return invalid("pads is " + list_text(attributes.pads) + ", expected " + std::to_string(expected) + " numbers");
    for (int64_t pad : attributes.pads)
      if (pad < 0 || pad > max_extent) return invalid("pads is " + list_text(attributes.pads) + ", expected no negative number");
  }
  for (int i = 0; i < window->spatial; ++i) {
    window->input[i] = x[i + 2];
    if (window->input[i] > max_extent) return invalid("input " + dims_text(x) + " has a spatial extent above 2^31");
    if (!attributes.pads.empty() && attributes.auto_pad == "NOTSET") {
      window->pad_begin[i] = attributes.pads[static_cast<size_t>(i)];
      window->pad_end[i] = attributes.pads[static_cast<size_t>(i + window->spatial)];
    }
  }
  const std::string& mode = attributes.auto_pad;
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return invalid("auto_pad is \"" + mode + "\", expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  return {};
}

// Divides padding of `total` among both sides.
void share_padding(int64_t total, bool upper, int64_t* begin, int64_t* end) {
  const int64_t smaller = total / 2;
  *begin = upper ? smaller : total - smaller;
  *end = total - *begin;
}

bool is_same(const WindowAttributes& attributes) {
  return attributes.auto_pad == "SAME_UPPER" || attributes.auto_pad == "SAME_LOWER";
}

// One output dimension of an ordinary window.
Status resolve_axis(const WindowAttributes& attributes, int axis, Window* window) {
  const int64_t input = window->input[axis], stride = window->stride[axis], reach = window->reach(axis);
  int64_t& begin = window->pad_begin[axis];
  int64_t& end = window->pad_end[axis];
  if (is_same(attributes)) {
    window->output[axis] = (input + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (window->output[axis] - 1) * stride + reach - input);
    share_padding(total, attributes.auto_pad == "SAME_UPPER", &begin, &end);
    return {};
  }
  const int64_t free = input + begin + end - reach;
  if (free < 0)
    return invalid("the window spans " + std::to_string(reach) + " elements of dimension " + std::to_string(axis + 2) +
                   ", which has only " + std::to_string(input) + " and " + std::to_string(begin + end) + " of padding");
  int64_t& output = window->output[axis];
  output = (attributes.ceil_mode ? free + stride - 1 : free) / stride + 1;
  // A last window that would begin in the padding after the input is dropped.
  if (attributes.ceil_mode && (output - 1) * stride >= input + begin) --output;
  return {};
}

Status resolve_transposed_axis(const WindowAttributes& attributes, int axis, Window* window) {
  const int64_t stride = window->stride[axis], reach = window->reach(axis);
  int64_t& begin = window->pad_begin[axis];
  int64_t& end = window->pad_end[axis];
  int64_t extra = 0;
  if (!attributes.output_padding.empty()) extra = attributes.output_padding[static_cast<size_t>(axis)];
  if (extra > 0 && extra >= std::max(stride, window->dilation[axis]))
    return invalid("output_padding is " + list_text(attributes.output_padding) + ", expected numbers below the strides or dilations");
  const int64_t unpadded = (window->input[axis] - 1) * stride + reach + extra;
  int64_t& output = window->output[axis];
  if (!attributes.output_shape.empty() || is_same(attributes)) {
    output = attributes.output_shape.empty() ? window->input[axis] * stride : attributes.output_shape[static_cast<size_t>(axis)];
    // If the output is smaller than what the input reaches the rest is padding; further elements stay zero at the end, as with
    // output_padding.
    if (output - unpadded + extra >= std::max(stride, window->dilation[axis]) && output > unpadded)
      return invalid("output_shape asks for " + std::to_string(output) + " elements of dimension " + std::to_string(axis + 2) +
                     ", the input reaches " + std::to_string(unpadded) + ", and a stride beyond it at most");
    share_padding(std::max<int64_t>(0, unpadded - output), attributes.auto_pad == "SAME_UPPER", &begin, &end);
  } else {
    output = unpadded - begin - end;
  }
  if (output < 0 || output > max_extent)
    return invalid("dimension " + std::to_string(axis + 2) + " of the output would have " + std::to_string(output) + " elements");
  return {};
}

}  // namespace

// Each operator that uses these attributes declares some of them.
WindowAttributes::WindowAttributes(const Attributes& attributes) {
  if (attributes.declares("auto_pad")) auto_pad = attributes.s("auto_pad", "NOTSET");
  const auto list = [&](const char* name) { return attributes.declares(name) ? attributes.ints(name) : std::vector<int64_t>(); };
  kernel_shape = list("kernel_shape");
  strides = list("strides");
  dilations = list("dilations");
  pads = list("pads");
  output_padding = list("output_padding");
  output_shape = list("output_shape");
  ceil_mode = attributes.declares("ceil_mode") && attributes.i("ceil_mode") != 0;
}

Status resolve_window(const WindowAttributes& attributes, Dims x, const std::vector<int64_t>& kernel, Window* window) {
  HEDDLE_PLUGIN_CHECK(read_common(attributes, x, kernel, window));
  for (int i = 0; i < window->spatial; ++i) HEDDLE_PLUGIN_CHECK(resolve_axis(attributes, i, window));
  return {};
}

Status resolve_transposed_window(const WindowAttributes& attributes, Dims x, const std::vector<int64_t>& kernel, Window* window) {
  HEDDLE_PLUGIN_CHECK(read_common(attributes, x, kernel, window));
  int64_t ignored[max_spatial];
  HEDDLE_PLUGIN_CHECK(read_list("output_padding", attributes.output_padding, window->spatial, 0, 0, ignored));
  WindowAttributes spatial = attributes;
  // Some exporters write the whole shape, batch and channels included.
  if (spatial.output_shape.size() == static_cast<size_t>(x.rank))
    spatial.output_shape.erase(spatial.output_shape.begin(), spatial.output_shape.begin() + 2);
  HEDDLE_PLUGIN_CHECK(read_list("output_shape", spatial.output_shape, window->spatial, 0, 0, ignored));
  for (int i = 0; i < window->spatial; ++i) HEDDLE_PLUGIN_CHECK(resolve_transposed_axis(spatial, i, window));
  return {};
}

}  // namespace heddle::operators

// How the windows of convolutions and pools lie: ONNX's kernel_shape, strides, dilations, pads and auto_pad.
#pragma once

#include "conformance/reference.h"

namespace heddle::conformance {

struct Windows {
  // Spatial extents: of what the windows lie on, of one window, and how many windows there are.
  Shape on, kernel, count;
  Ints strides, dilations, begin, end;  // the pads

  int rank() const { return kernel.rank(); }
  // From the first tap of a window to behind the last.
  int64_t reach(int d) const { return (kernel[d] - 1) * dilations[static_cast<size_t>(d)] + 1; }
  // Along dimension d: may be in the pads, or beyond them.
  int64_t position(int d, int64_t window, int64_t tap) const;
  // Of a tap of a window, where it lies; -1: outside.
  int64_t flat(const Ints& window, const Ints& tap) const;
};

// The extents behind batch and channel.
Shape spatial(const Shape& shape);
Shape with_spatial(int64_t batch, int64_t channels, const Shape& spatial);
// Strides and dilations that the call gives, pads where it gives them; auto_pad and the count are the caller's.
Windows windows_of(const Call& call, const Shape& on, const Shape& kernel);
// Splits what is to be padded along d: the odd one at the end for SAME_UPPER, at the beginning otherwise.
void split_pads(Windows& windows, int d, int64_t total, bool odd_one_at_the_end);
// Those of Conv and the pools: auto_pad, and how many windows there are. ceil_mode counts a last window that sticks out, unless it would
// begin behind the input and the pad in front of it.
void count_windows(Windows& windows, const std::string& auto_pad, bool ceil_mode);

// Two elements whose product is a term of a convolution's sum: one of a tensor with channels, one tap of the filters, both without their
// batch and channels.
struct Factors {
  size_t element, tap;
};
// The terms of each window, of elements of what the windows lie on; and of each element of that, of windows. What is outside has none.
std::vector<std::vector<Factors>> factors_of_windows(const Windows& windows);
std::vector<std::vector<Factors>> factors_of_elements(const Windows& windows);
// Y[n, m, y] = bias[m] + the sum of X[n, c, element] W[m, c, tap] over the channels of the group and y's factors: what Conv computes, of
// `shape`. `transposed`: of W[c, m, tap], what ConvTranspose and the gradient of Conv's data compute.
Numbers sum_of_products(const Numbers& x, const Numbers& w, const Numbers* bias, int64_t groups, const Shape& shape,
                        const std::vector<std::vector<Factors>>& factors, bool transposed);

}  // namespace heddle::conformance

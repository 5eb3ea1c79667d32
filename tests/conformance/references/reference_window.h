// The places of the windows of convolutions and pools: ONNX's kernel_shape, strides, dilations, pads and auto_pad.
#pragma once

#include "conformance/reference.h"

namespace heddle::conformance {

struct Windows {
  // Spatial extents of the tensor that the windows are on and of one window, and the number of windows.
  Shape on, kernel, count;
  Ints strides, dilations, begin, end;  // the pads

  int rank() const { return kernel.rank(); }
  // The distance from the first tap of a window to past the last.
  int64_t reach(int d) const { return (kernel[d] - 1) * dilations[static_cast<size_t>(d)] + 1; }
  // Returns a position along dimension d, which may be in the pads, or beyond them.
  int64_t position(int d, int64_t window, int64_t tap) const;
  // Returns the flat position of a tap of a window; -1: outside.
  int64_t flat(const Ints& window, const Ints& tap) const;
};

// Returns the extents after batch and channel.
Shape spatial(const Shape& shape);
Shape with_spatial(int64_t batch, int64_t channels, const Shape& spatial);
// Returns strides and dilations of the call, and its pads if it gives them; the caller handles auto_pad and the count.
Windows windows_of(const Call& call, const Shape& on, const Shape& kernel);
// Splits the padding along d: the odd one is at the end for SAME_UPPER, at the beginning otherwise.
void split_pads(Windows& windows, int d, int64_t total, bool odd_one_at_the_end);
// Applies auto_pad and counts the windows, as for Conv and the pools. ceil_mode counts a last window that sticks out, unless it would begin
// after the input and the pad in front of it.
void count_windows(Windows& windows, const std::string& auto_pad, bool ceil_mode);

// Two elements whose product is a term of a convolution's sum: one of a tensor with channels, one tap of the filters, both without their
// batch and channels.
struct Factors {
  size_t element, tap;
};
// Return the terms of each window, of elements under it, and of each element, of windows over it. A tap outside has no term.
std::vector<std::vector<Factors>> factors_of_windows(const Windows& windows);
std::vector<std::vector<Factors>> factors_of_elements(const Windows& windows);
// Computes Y[n, m, y] = bias[m] + the sum of X[n, c, element] W[m, c, tap] over the channels of the group and y's factors, as Conv does, of
// `shape`. `transposed`: with W[c, m, tap], as for ConvTranspose and the gradient of Conv's data.
Numbers sum_of_products(const Numbers& x, const Numbers& w, const Numbers* bias, int64_t groups, const Shape& shape,
                        const std::vector<std::vector<Factors>>& factors, bool transposed);

}  // namespace heddle::conformance

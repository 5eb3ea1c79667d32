// Convolutions of f32 and of 16-bit floats that are not given to oneDNN: those whose extents would keep its preparation busy for minutes,
// and those whose tiles could not be made small enough. Plain loops over small blocks of output pixels and channels; slow, and ready at
// once whatever the extents.
#pragma once

#include "conv/conv_algorithm.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// The operands that convolve_block reads. Strides in elements.
struct ConvSource {
  heddle_dtype dtype;  // of x and of the weights
  const void* x;
  int64_t image, channel, pixel;  // strides of x
  const void* weights;            // as the net has them
  const float* bias;              // of all output channels, or null
};
// Output channels and pixels (of all images, one after the other) of a block.
struct ConvBlock {
  int64_t first_pixel = 0, pixels = 0, first_channel = 0, channels = 0;
};
// y: [pixels, channels]. Sums run in double (a float stops growing after some million terms), in the order input channel, tap.
void convolve_block(const ConvProblem& problem, const ConvSource& source, const ConvBlock& block, float* y, CancellationPoll& poll);

// True if oneDNN prepares such tiles quickly.
bool library_takes(const ConvProblem& problem, const ConvTiling& tiling);
// True if it prepares any tiles of the problem quickly, and there are not too many.
bool library_takes(const ConvProblem& problem, int64_t tiles);

}  // namespace heddle::cpu

// The loops of batch normalisation and its gradient on f32 images whose channels are the innermost dimension: each channel is a column of
// their pixels. A channel's sums have the bits that normalization_rows.h and normalization_gradient.h give for the same pixels as a row, on
// the same instruction set level: the results of a net do not depend on the layout that was chosen. In place is safe. Stateless; any
// thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// Neighbouring pixels, at most `max_pixels`, of neighbouring channels, at most `max_channels`. Tensors of one call have the same stride.
struct ChannelColumns {
  static constexpr int64_t max_pixels = 4096, max_channels = 64;
  int64_t pixels, channels;
  int64_t stride;  // elements from one pixel to the next: all channels of the images
};

// Numbers that have one element for each channel.
struct ColumnNumbers {
  const float *shift, *level, *factor, *slope, *offset;
};

struct NormalizationColumnTable {
  // Adds the sums of x to `sums`.
  void (*add_sums)(const ChannelColumns& columns, const float* x, double* sums);
  // Adds the sums of x - shift and of (x - shift)^2.
  void (*add_centred_sums)(const ChannelColumns& columns, const float* x, const float* shift, double* sums, double* squares);
  // Adds the sums of dy and of dy * (x - shift).
  void (*add_gradient_sums)(const ChannelColumns& columns, const float* x, const float* dy, const float* shift, double* sums,
                            double* products);
  // y = (x - shift) * factor + offset
  void (*affine)(const ChannelColumns& columns, const float* x, float* y, const ColumnNumbers& numbers);
  // dx = (dy - level) * factor + (x - shift) * slope + offset
  void (*apply_gradient)(const ChannelColumns& columns, const float* x, const float* dy, float* dx, const ColumnNumbers& numbers);
};
HEDDLE_DECLARE_ISA_TABLE(NormalizationColumnTable, normalization_columns)

}  // namespace heddle::cpu

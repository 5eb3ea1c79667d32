// Division of a convolution into tiles: images, or rows of the first spatial dimension, or stretches of pixels, or parts of the output
// channels.
//
// Measured on two cores: few and large tiles reach 96-98% of one primitive on two threads, small ones less. The division is a function of
// the shape alone. Positions are counted in pixels: spatial positions of all images, one after the other; channels-last memory holds the
// channels of pixel p at p * channels.
#pragma once

#include <cstddef>
#include <vector>

#include "shared/image/window.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// A small convolution with padding of its own.
struct ConvTileShape {
  int64_t images = 1;
  int64_t input[max_spatial] = {1, 1, 1};
  int64_t output[max_spatial] = {1, 1, 1};
  int64_t pad_begin[max_spatial] = {0, 0, 0};
  int64_t pad_end[max_spatial] = {0, 0, 0};
  bool operator==(const ConvTileShape&) const = default;
};

struct ConvTile {
  size_t shape = 0;  // index into ConvTiling::shapes
  int64_t input_first = 0, input_count = 0;
  int64_t output_first = 0, output_count = 0;
  size_t channel_part = 0;
};

struct ConvTiling {
  int64_t channel_parts = 1;  // equal parts of the output channels
  std::vector<ConvTileShape> shapes;
  std::vector<ConvTile> tiles;
};

// Adds a tile of this shape, which is listed once.
void add_tile(const ConvTileShape& shape, ConvTile tile, ConvTiling* tiling);

// The number of tiles into which `flops` of work should be divided; 1 below about 20 µs.
int64_t tiles_for_flops(double flops);

// The ways in which a convolution may be divided.
enum class ConvDivision {
  images,      // whole images alone
  rows,        // also rows of the output
  transposed,  // rows of the output of a transposed convolution, only where necessary
};
// Divides a convolution over `batch` images, all extents positive: about `tile_count` tiles where that is worth it, at least `least` if
// possible.
ConvTiling divide_convolution(const Window& window, int64_t batch, int64_t tile_count, int64_t least, ConvDivision division);

// Divides each tile into `parts` of its output channels.
void divide_channels_too(int64_t parts, ConvTiling* tiling);

// Returns tiles of one image that divide its output channels into `parts`.
ConvTiling divide_channels(const Window& window, int64_t parts);

}  // namespace heddle::cpu

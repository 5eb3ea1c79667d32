// Tiles of convolutions. See conv_tiles.h.
#include "conv_tiles.h"

namespace heddle::cpu {
namespace {

bool is_pointwise(const Window& window) {
  for (int i = 0; i < window.spatial; ++i)
    if (window.kernel[i] != 1 || window.stride[i] != 1 || window.pad_begin[i] != 0 || window.input[i] != window.output[i]) return false;
  return true;
}

int64_t count_after(const int64_t* extents, int spatial, int axis) {
  int64_t n = 1;
  for (int i = axis + 1; i < spatial; ++i) n *= extents[i];
  return n;
}

void append(const ConvTileShape& shape, ConvTile tile, ConvTiling* tiling) {
  const auto found = std::find(tiling->shapes.begin(), tiling->shapes.end(), shape);
  tile.shape = static_cast<size_t>(found - tiling->shapes.begin());
  if (found == tiling->shapes.end()) tiling->shapes.push_back(shape);
  tiling->tiles.push_back(tile);
}

ConvTileShape whole_images(const Window& window, int64_t images) {
  ConvTileShape shape;
  shape.images = images;
  std::copy_n(window.input, most_spatial, shape.input);
  std::copy_n(window.output, most_spatial, shape.output);
  std::copy_n(window.pad_begin, most_spatial, shape.pad_begin);
  std::copy_n(window.pad_end, most_spatial, shape.pad_end);
  return shape;
}

ConvTiling divide_pixels(const Window& window, int64_t batch, int64_t tiles) {
  ConvTiling tiling;
  const int64_t pixels = batch * window.input_count();
  tiles = std::min(tiles, pixels);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = pixels * t / tiles, count = pixels * (t + 1) / tiles - first;
    ConvTileShape shape;
    shape.input[window.spatial - 1] = shape.output[window.spatial - 1] = count;
    append(shape, {0, first, count, first, count}, &tiling);
  }
  return tiling;
}

ConvTiling divide_images(const Window& window, int64_t batch, int64_t tiles) {
  ConvTiling tiling;
  tiles = std::min(tiles, batch);
  const int64_t inputs = window.input_count(), outputs = window.output_count();
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = batch * t / tiles, images = batch * (t + 1) / tiles - first;
    append(whole_images(window, images), {0, first * inputs, images * inputs, first * outputs, images * outputs}, &tiling);
  }
  return tiling;
}

// The dimension whose rows are contiguous in memory and long enough to divide; -1: none.
int row_axis(const Window& window, int64_t blocks) {
  for (int axis = 0; axis < window.spatial; ++axis) {
    if (window.output[axis] >= 2 * blocks) return axis;
    if (window.output[axis] != 1 || window.input[axis] != 1) return -1;
  }
  return -1;
}

// Tiles of rows [first, last) of the output along `axis`; false when one of them would read nothing but padding.
bool divide_rows(const Window& window, int64_t batch, int axis, int64_t blocks, ConvTiling* tiling) {
  const int64_t input_row = count_after(window.input, window.spatial, axis), output_row = count_after(window.output, window.spatial, axis);
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = window.output[axis] * b / blocks, last = window.output[axis] * (b + 1) / blocks;
      int64_t top = first * window.stride[axis] - window.pad_begin[axis];
      int64_t bottom = (last - 1) * window.stride[axis] - window.pad_begin[axis] + window.reach(axis);
      ConvTileShape shape = whole_images(window, 1);
      shape.pad_begin[axis] = std::max<int64_t>(0, -top);
      shape.pad_end[axis] = std::max<int64_t>(0, bottom - window.input[axis]);
      top = std::max<int64_t>(0, top);
      bottom = std::min(window.input[axis], bottom);
      if (bottom <= top) return false;
      shape.input[axis] = bottom - top;
      shape.output[axis] = last - first;
      ConvTile tile;
      tile.input_first = image * window.input_count() + top * input_row;
      tile.input_count = shape.input[axis] * input_row;
      tile.output_first = image * window.output_count() + first * output_row;
      tile.output_count = shape.output[axis] * output_row;
      append(shape, tile, tiling);
    }
  }
  return true;
}

}  // namespace

int64_t tiles_for_flops(double flops) {
  if (flops < 5e6) return 1;
  if (flops < 4e8) return 2;
  if (flops < 1.6e9) return 4;
  return flops < 6.4e9 ? 8 : 16;
}

ConvTiling divide_convolution(const Window& window, int64_t batch, int64_t tile_count, bool by_images_only) {
  if (by_images_only) return divide_images(window, batch, tile_count);
  if (is_pointwise(window)) return divide_pixels(window, batch, tile_count);
  if (batch >= tile_count) return divide_images(window, batch, tile_count);
  const int64_t blocks = (tile_count + batch - 1) / batch;
  const int axis = row_axis(window, blocks);
  ConvTiling tiling;
  if (axis >= 0 && divide_rows(window, batch, axis, blocks, &tiling)) return tiling;
  return divide_images(window, batch, tile_count);
}

ConvTiling divide_channels(const Window& window, int64_t parts) {
  ConvTiling tiling;
  tiling.channel_parts = parts;
  const int64_t inputs = window.input_count(), outputs = window.output_count();
  for (int64_t part = 0; part < parts; ++part)
    append(whole_images(window, 1), {0, 0, inputs, 0, outputs, static_cast<size_t>(part)}, &tiling);
  return tiling;
}

}  // namespace heddle::cpu

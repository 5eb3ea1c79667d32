// Tiles of convolutions. See conv_tiles.h.
#include "conv/conv_tiles.h"

#include <algorithm>

namespace heddle::cpu {
namespace {

constexpr size_t max_shapes = 32;                 // each needs a primitive
constexpr int64_t max_pixels = int64_t{1} << 16;  // of one row, which oneDNN has tables for

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

ConvTileShape whole_images(const Window& window, int64_t images) {
  ConvTileShape shape;
  shape.images = images;
  std::copy_n(window.input, max_spatial, shape.input);
  std::copy_n(window.output, max_spatial, shape.output);
  std::copy_n(window.pad_begin, max_spatial, shape.pad_begin);
  std::copy_n(window.pad_end, max_spatial, shape.pad_end);
  return shape;
}

ConvTiling divide_pixels(const Window& window, int64_t batch, int64_t tiles) {
  ConvTiling tiling;
  const int64_t pixels = batch * window.input_count();
  tiles = std::min(std::max(tiles, (pixels + max_pixels - 1) / max_pixels), pixels);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = pixels * t / tiles, count = pixels * (t + 1) / tiles - first;
    ConvTileShape shape;
    shape.input[window.spatial - 1] = shape.output[window.spatial - 1] = count;
    add_tile(shape, {0, first, count, first, count}, &tiling);
  }
  return tiling;
}

ConvTiling divide_images(const Window& window, int64_t batch, int64_t tiles) {
  ConvTiling tiling;
  tiles = std::min(tiles, batch);
  const int64_t inputs = window.input_count(), outputs = window.output_count();
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = batch * t / tiles, images = batch * (t + 1) / tiles - first;
    add_tile(whole_images(window, images), {0, first * inputs, images * inputs, first * outputs, images * outputs}, &tiling);
  }
  return tiling;
}

// The dimension whose rows are contiguous in memory and enough to divide; -1: none.
int row_axis(const Window& window, int64_t rows) {
  for (int axis = 0; axis < window.spatial; ++axis) {
    if (window.output[axis] >= rows) return axis;
    if (window.output[axis] != 1 || window.input[axis] != 1) return -1;
  }
  return -1;
}

// The input that output rows [first, last) along `axis` read: input rows [top, bottom), and the padding of a convolution of these alone.
struct RowsRead {
  int64_t top, bottom, pad_begin, pad_end;
};
RowsRead rows_read(const Window& window, int axis, int64_t first, int64_t last) {
  const int64_t top = first * window.stride[axis] - window.pad_begin[axis];
  const int64_t bottom = (last - 1) * window.stride[axis] - window.pad_begin[axis] + window.reach(axis);
  return {std::max<int64_t>(0, top), std::min(window.input[axis], bottom), std::max<int64_t>(0, -top),
          std::max<int64_t>(0, bottom - window.input[axis])};
}
// The same for a transposed convolution, where input row i adds to `reach` output rows from i * stride - pad_begin on. The paddings cut off
// the part outside the tile that its first and last row add; negative: they do not reach so far.
RowsRead rows_read_transposed(const Window& window, int axis, int64_t first, int64_t last) {
  const int64_t stride = window.stride[axis], pad = window.pad_begin[axis], reach = window.reach(axis);
  const int64_t top = std::max<int64_t>(0, (first + pad - reach + stride) / stride);
  const int64_t bottom = std::min(window.input[axis], (last - 1 + pad) / stride + 1);
  return {top, bottom, first + pad - top * stride,
          (bottom - 1) * stride + reach - (first + pad - top * stride) - (last - first) - top * stride};
}

// Tiles of `blocks` parts of the output's rows along `axis`; false when one of them would read nothing but padding.
bool divide_rows(const Window& window, int64_t batch, int axis, int64_t blocks, bool transposed, ConvTiling* tiling) {
  const int64_t input_row = count_after(window.input, window.spatial, axis), output_row = count_after(window.output, window.spatial, axis);
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = window.output[axis] * b / blocks, last = window.output[axis] * (b + 1) / blocks;
      RowsRead read = transposed ? rows_read_transposed(window, axis, first, last) : rows_read(window, axis, first, last);
      // Fewer than a stride of the output's rows lie after the last row that the input adds to.
      if (read.pad_end < 0 && read.pad_end > -window.stride[axis]) read.pad_end = 0;
      if (read.bottom <= read.top || read.pad_begin < 0 || read.pad_end < 0) return false;
      ConvTileShape shape = whole_images(window, 1);
      shape.pad_begin[axis] = read.pad_begin;
      shape.pad_end[axis] = read.pad_end;
      shape.input[axis] = read.bottom - read.top;
      shape.output[axis] = last - first;
      ConvTile tile;
      tile.input_first = image * window.input_count() + read.top * input_row;
      tile.input_count = shape.input[axis] * input_row;
      tile.output_first = image * window.output_count() + first * output_row;
      tile.output_count = shape.output[axis] * output_row;
      if (tiling->shapes.size() > max_shapes) return false;
      add_tile(shape, tile, tiling);
    }
  }
  return true;
}

}  // namespace

void add_tile(const ConvTileShape& shape, ConvTile tile, ConvTiling* tiling) {
  const auto found = std::find(tiling->shapes.begin(), tiling->shapes.end(), shape);
  tile.shape = static_cast<size_t>(found - tiling->shapes.begin());
  if (found == tiling->shapes.end()) tiling->shapes.push_back(shape);
  tiling->tiles.push_back(tile);
}

int64_t tiles_for_flops(double flops) {
  if (flops < 5e6) return 1;
  if (flops < 4e8) return 2;
  if (flops < 1.6e9) return 4;
  return flops < 6.4e9 ? 8 : 16;
}

ConvTiling divide_convolution(const Window& window, int64_t batch, int64_t tile_count, int64_t least, ConvDivision division) {
  const int64_t wanted = std::max(tile_count, least);
  // A transposed convolution is divided by images as long as that is enough.
  if (division == ConvDivision::images || (division == ConvDivision::transposed && batch >= least))
    return divide_images(window, batch, wanted);
  const bool transposed = division == ConvDivision::transposed;
  if (is_pointwise(window) && !transposed) return divide_pixels(window, batch, wanted);
  if (batch >= wanted) return divide_images(window, batch, wanted);
  int64_t blocks = ((transposed ? least : wanted) + batch - 1) / batch;
  // At least two rows for each tile, unless it would be too large: then as many tiles as there are rows, if need be.
  const bool needed = least > tile_count || transposed;
  const int axis = row_axis(window, needed ? 2 : 2 * blocks);
  if (axis >= 0 && needed) blocks = std::min(blocks, window.output[axis]);
  ConvTiling tiling;
  if (axis >= 0 && divide_rows(window, batch, axis, blocks, transposed, &tiling)) return tiling;
  return divide_images(window, batch, wanted);
}

void divide_channels_too(int64_t parts, ConvTiling* tiling) {
  const std::vector<ConvTile> of_all = std::move(tiling->tiles);
  tiling->channel_parts = parts;
  tiling->tiles.clear();
  for (int64_t part = 0; part < parts; ++part)
    for (ConvTile tile : of_all) {
      tile.channel_part = static_cast<size_t>(part);
      tiling->tiles.push_back(tile);
    }
}

ConvTiling divide_channels(const Window& window, int64_t parts) {
  ConvTiling tiling;
  tiling.channel_parts = parts;
  const int64_t inputs = window.input_count(), outputs = window.output_count();
  for (int64_t part = 0; part < parts; ++part)
    add_tile(whole_images(window, 1), {0, 0, inputs, 0, outputs, static_cast<size_t>(part)}, &tiling);
  return tiling;
}

}  // namespace heddle::cpu

// Resizing of pictures, with a triangle as filter that is as wide as two pixels of the result where the result is smaller: each pixel
// counts, and nothing flickers. To the bit what Pillow's Image.resize(BILINEAR) makes (up to 12.0; 13.0 sometimes
// resizes columns before rows), and torchvision's Resize with it.
#pragma once

#include <cstdint>
#include <vector>

#include "pixels/pixels.h"

namespace heddle::pictures {

// A part of a picture, in its pixels; edges may be within a pixel.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
};

// How pictures of one size are resized. An object may be planned anew, and keeps its memory. Threads: const functions from any.
class Resizing {
 public:
  // From `box` of pictures of these extents to a picture of `height` by `width`. REQUIRES: the box is within the picture, and all extents
  // are positive. Throws std::bad_alloc.
  void plan(int64_t from_height, int64_t from_width, const Box& box, int64_t height, int64_t width);
  // Returns the bytes of memory that run() needs for this many rows of the result.
  int64_t memory_bytes(int64_t rows, int64_t channels) const;
  // Writes rows [first, last) of the result to their place in `to`. `memory`: memory_bytes(last - first, channels).
  void run(const Pixels& from, int64_t first, int64_t last, uint8_t* memory, uint8_t* to) const;

 private:
  // Along one axis each pixel of the result is a weighted sum of pixels in a row.
  struct Axis {
    bool is_kept = false;        // each pixel is the pixel itself
    int64_t from = 0, taps = 0;  // pixels of the picture; weights for each pixel of the result, of which the last may be 0
    std::vector<int32_t> first;  // by pixel of the result
    std::vector<int32_t> weights;
    void plan(int64_t extent, double begin, double length, int64_t results);
    int64_t taps_of(int64_t result) const;
  };
  void run_row(const uint8_t* row, int64_t channels, uint8_t* to) const;
  void run_rows(const Pixels& from, int64_t first, int64_t last, uint8_t* to) const;

  Axis down_, across_;
  int64_t width_ = 0;
};

}  // namespace heddle::pictures

// A grey picture with one bright bar and the check of its edges, which both example hosts use.
#pragma once

#include <cstdint>
#include <vector>

constexpr int64_t height = 120, width = 160;

// Columns [left, left + 10) are 1, the rest 0; 0 < left < width - 12.
inline void draw_bar(int64_t left, float* picture) {
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) picture[y * width + x] = x >= left && x < left + 10 ? 1.0f : 0.0f;
}

// Checks the edges. Away from the upper and lower border, they lie beside the bar's two sides and nowhere else: a Sobel filter gives 4
// there.
inline bool edges_are_right(int64_t left, const float* edges) {
  const int64_t y = height / 2;
  for (int64_t x = 1; x + 1 < width; ++x) {
    const bool beside = x == left - 1 || x == left || x == left + 9 || x == left + 10;
    if (edges[y * width + x] != (beside ? 4.0f : 0.0f)) return false;
  }
  return true;
}

// The taps of one output of a convolution, in the order in which plain loops visit them.
#pragma once

#include <algorithm>

#include "shared/image/window.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// The position of the input that output position `o` sees through tap `k` along one axis; -1: none.
template <bool transposed>
int64_t source_position(const Window& window, int axis, int64_t o, int64_t k) {
  const int64_t tap = k * window.dilation[axis];
  if (!transposed) {
    const int64_t i = o * window.stride[axis] - window.pad_begin[axis] + tap;
    return i < window.input[axis] ? i : -1;
  }
  const int64_t scaled = o + window.pad_begin[axis] - tap;
  if (scaled < 0 || scaled % window.stride[axis] != 0) return -1;
  const int64_t i = scaled / window.stride[axis];
  return i < window.input[axis] ? i : -1;
}

// Calls body(input offset, tap offset) for every tap of output position o[] that meets the input, or until `poll` stops.
template <bool transposed, class Body>
void for_each_tap(const Window& window, const int64_t (&o)[max_spatial], CancellationPoll& poll, Body&& body) {
  constexpr int64_t stretch = 1 << 16;
  for (int64_t a = 0; a < window.kernel[0]; ++a) {
    if (poll.stops(1)) return;
    const int64_t i = source_position<transposed>(window, 0, o[0], a);
    if (i < 0) continue;
    for (int64_t b = 0; b < window.kernel[1]; ++b) {
      const int64_t j = source_position<transposed>(window, 1, o[1], b);
      if (poll.stops(1)) return;
      if (j < 0) continue;
      for (int64_t c = 0; c < window.kernel[2]; ++c) {
        if (c % stretch == 0 && poll.stops(std::min(stretch, window.kernel[2]))) return;
        const int64_t k = source_position<transposed>(window, 2, o[2], c);
        if (k >= 0) body((i * window.input[1] + j) * window.input[2] + k, (a * window.kernel[1] + b) * window.kernel[2] + c);
      }
    }
  }
}

}  // namespace heddle::cpu

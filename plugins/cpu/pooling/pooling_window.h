// The taps of one output of a pooling operator.
#pragma once

#include <algorithm>
#include <utility>

#include "shared/image/window.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

enum class PoolKind { max, average, lp };

// The parameters of a pooling operator, from its attributes.
struct PoolRule {
  PoolKind kind = PoolKind::max;
  bool count_include_pad = false;  // average
  int64_t power = 2;               // lp
  bool column_major_indices = false;
};

// A walk over outputs that keeps, per axis, the range of taps inside the input.
class PoolWindow {
 public:
  explicit PoolWindow(const Window& window) : window_(window) {}
  // Moves to output position `pixel`.
  void move_to(int64_t pixel) {
    int64_t rest = pixel;
    for (int axis = window_.spatial - 1; axis >= 0; --axis) {
      set_axis(axis, rest % window_.output[axis]);
      rest /= window_.output[axis];
    }
    for (int axis = window_.spatial; axis < max_spatial; ++axis) set_axis(axis, 0);
  }
  // Moves to the next output, row-major; from the last one to the first. Without a division, unless windows are dilated.
  void move_to_next() {
    for (int axis = window_.spatial - 1; axis >= 0; --axis) {
      const int64_t next = at_[axis] + 1;
      const bool wraps = next == window_.output[axis];
      set_axis(axis, wraps ? 0 : next);
      if (!wraps) return;
    }
  }
  // Calls body(input pixel) for each tap inside the input, in row-major order, or until `poll` stops. `operations`: of one body.
  template <class Body>
  void for_each_tap(CancellationPoll& poll, int64_t operations, Body&& body) const {
    for (int64_t a = first_[0]; a < last_[0]; ++a) {
      for (int64_t b = first_[1]; b < last_[1]; ++b) {
        if (poll.stops((last_[2] - first_[2]) * operations)) return;
        const int64_t row = (position(0, a) * window_.input[1] + position(1, b)) * window_.input[2];
        for (int64_t c = first_[2]; c < last_[2]; ++c) body(row + position(2, c));
      }
    }
  }
  // Moves from an output to the one of the same column in the next line; from the last line to the first.
  void move_to_next_line() {
    for (int axis = window_.spatial - 2; axis >= 0; --axis) {
      const int64_t next = at_[axis] + 1;
      const bool wraps = next == window_.output[axis];
      set_axis(axis, wraps ? 0 : next);
      if (!wraps) return;
    }
  }
  // The first line of a plane that the window has taps in.
  int64_t first_line() const { return position(0, first_[0]); }
  // The taps along an axis that lie inside the input, or inside the padded input.
  int64_t taps(int axis, bool with_padding) const { return with_padding ? padded_[axis] : last_[axis] - first_[axis]; }
  // False if all taps of the window lie outside the input along an axis other than that of a line.
  bool has_lines() const {
    for (int axis = 0; axis + 1 < window_.spatial; ++axis)
      if (first_[axis] == last_[axis]) return false;
    return true;
  }
  // Calls body(input pixel) for each line of input pixels that has taps inside the input, at the line's beginning, in row-major order.
  template <class Body>
  void for_each_line(Body&& body) const {
    const int lines = window_.spatial - 1;  // axes before that of a line
    const auto range = [&](int axis) { return axis < lines ? std::pair(first_[axis], last_[axis]) : std::pair(int64_t{0}, int64_t{1}); };
    const auto [first_a, last_a] = range(0);
    const auto [first_b, last_b] = range(1);
    for (int64_t a = first_a; a < last_a; ++a)
      for (int64_t b = first_b; b < last_b; ++b)
        body(((lines > 0 ? position(0, a) : 0) * window_.input[1] + (lines > 1 ? position(1, b) : 0)) * window_.input[2]);
  }
  // The divisor of an average: the number of taps inside the input, or inside the padded input.
  double divisor(bool with_padding) const {
    double n = 1;  // windows may be larger than 64 bits count
    for (int axis = 0; axis < max_spatial; ++axis) n *= static_cast<double>(taps(axis, with_padding));
    return n;
  }

 private:
  int64_t position(int axis, int64_t tap) const { return origin_[axis] + tap * window_.dilation[axis]; }
  void set_axis(int axis, int64_t output) {
    at_[axis] = output;
    const int64_t dilation = window_.dilation[axis], kernel = window_.kernel[axis];
    const int64_t origin = output * window_.stride[axis] - window_.pad_begin[axis];
    origin_[axis] = origin;
    // Taps k with 0 <= origin + k * dilation < extent.
    auto taps_before = [&](int64_t extent) {
      if (extent <= origin) return int64_t{0};
      return std::min(kernel, dilation == 1 ? extent - origin : (extent - origin + dilation - 1) / dilation);
    };
    last_[axis] = taps_before(window_.input[axis]);
    first_[axis] = std::min(last_[axis], taps_before(0));
    padded_[axis] = taps_before(window_.input[axis] + window_.pad_end[axis]);
  }

  const Window& window_;
  int64_t at_[max_spatial] = {};  // the output
  int64_t origin_[max_spatial] = {}, first_[max_spatial] = {}, last_[max_spatial] = {}, padded_[max_spatial] = {};
};

}  // namespace heddle::cpu

// Row-major pooling of f32 and f64, line by line. Gives the bits of run_row_major(), whose taps it combines in the same order.
//
// Windows inside their line read it where it lies. Those at its ends read a copy with a filler beside it that leaves every result as it is:
// the lowest value for a maximum, -0 for a sum.
#include <algorithm>
#include <limits>

#include "pooling/pooling_kernel.h"
#include "pooling/pooling_loops.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int64_t short_line = 48, edge = 16;  // outputs: a short line is copied as a whole
constexpr int64_t max_rows = 64;               // lines of a window, which has no more taps
constexpr int64_t max_copied = 16384;          // elements of the copies of one end

template <class T>
const PoolLines<T>& loops_of() {
  if constexpr (sizeof(T) == sizeof(float))
    return isa_pooling().lines;
  else
    return isa_pooling().lines_f64;
}

template <class T>
constexpr T below_all = -std::numeric_limits<T>::infinity();

// The lines from the first to the last one of a window on a plane, or all lines of a window in a volume.
int64_t copied_rows(const Window& window) {
  return window.spatial == 2 ? window.reach(0) : window.kernel_count() / window.kernel[window.spatial - 1];
}

// The elements of a copied line, so that a last vector of outputs may read past them.
int64_t copied_width(const Window& window, int64_t outputs) {
  const int axis = window.spatial - 1;
  return (outputs - 1 + pool_lanes) * window.stride[axis] + window.reach(axis);
}

// Neighbouring outputs of each line that are computed by one call. With a copy: `buffer` holds a row of `width` elements for each line of
// the window, into which the input's elements [from, to) go at `at`, and `counts` the taps along the line of each output of an average.
template <class T>
struct Segment {
  int64_t first = 0, last = 0;
  T* buffer = nullptr;
  T* counts = nullptr;
  int64_t width = 0, from = 0, to = 0, at = 0;
  const T* copied[max_rows] = {};  // the line of the input that each row of the buffer holds

  // Returns where the line lies in the buffer. It goes into `slot`, unless it is there.
  const T* place(const T* line, int64_t slot) {
    T* const row = buffer + slot * width;
    if (copied[slot] != line) std::copy(line + from, line + to, row + at);
    copied[slot] = line;
    return row;
  }
};

// The segments of a line: its ends, which are copied, and what is between them.
template <class T>
struct Segments {
  Segment<T> items[3];
  int count = 0;

  Segments(const Window& window, const PoolRule& rule, int64_t edge_outputs, T* scratch) {
    const int64_t columns = window.output[window.spatial - 1];
    if (edge_outputs > 0) scratch = add_copy(window, rule, 0, edge_outputs, scratch);
    if (edge_outputs < columns) {
      items[count].first = edge_outputs;
      items[count++].last = columns - edge_outputs;
    }
    if (edge_outputs > 0 && edge_outputs < columns) add_copy(window, rule, columns - edge_outputs, columns, scratch);
  }

 private:
  // Returns where the next copy may lie.
  T* add_copy(const Window& window, const PoolRule& rule, int64_t first, int64_t last, T* scratch) {
    const int axis = window.spatial - 1;
    const int64_t origin = first * window.stride[axis] - window.pad_begin[axis];
    Segment<T>& segment = items[count++];
    segment.first = first;
    segment.last = last;
    segment.width = copied_width(window, last - first);
    segment.from = std::clamp<int64_t>(origin, 0, window.input[axis]);
    segment.to = std::clamp(origin + (last - first - 1) * window.stride[axis] + window.reach(axis), segment.from, window.input[axis]);
    segment.at = segment.from - origin;
    segment.buffer = scratch;
    segment.counts = scratch + segment.width * copied_rows(window);
    std::fill(segment.buffer, segment.counts, rule.kind == PoolKind::max ? below_all<T> : static_cast<T>(-0.0));
    PoolWindow at(window);
    if (rule.kind == PoolKind::average) at.move_to(first);
    for (int64_t i = 0; i < last - first && rule.kind == PoolKind::average; ++i, at.move_to_next())
      segment.counts[i] = static_cast<T>(at.taps(axis, rule.count_include_pad));
    return segment.counts + (last - first);
  }
};

}  // namespace

// Finds how many outputs at the ends of a line need a copy. False: too much would be copied, or a window has no tap in its line.
bool PoolDriver::plan_lines() {
  const int axis = window_.spatial - 1;
  const int64_t columns = window_.output[axis], reach = window_.reach(axis), stride = window_.stride[axis], pad = window_.pad_begin[axis];
  edge_outputs_ = 0;
  if (pad == 0 && (columns - 1) * stride + reach <= window_.input[axis]) return true;
  edge_outputs_ = columns <= short_line ? columns : edge;
  const int64_t middle_last = columns - edge_outputs_ - 1;
  if (edge_outputs_ < columns && (pad > edge_outputs_ * stride || middle_last * stride - pad + reach > window_.input[axis])) return false;
  if (reach > max_copied || stride > max_copied || copied_rows(window_) > max_rows ||
      copied_width(window_, edge_outputs_) * copied_rows(window_) > max_copied)
    return false;
  PoolWindow window(window_);
  for (const int64_t first : {int64_t{0}, columns - edge_outputs_}) {
    window.move_to(first);
    for (int64_t i = 0; i < edge_outputs_; ++i, window.move_to_next())
      if (window.taps(axis, false) == 0) return false;
  }
  return true;
}

uint64_t PoolDriver::line_scratch_bytes() const {
  if (edge_outputs_ == 0) return 0;
  return static_cast<uint64_t>(2 * (copied_width(window_, edge_outputs_) * copied_rows(window_) + edge_outputs_)) * byte_width(dtype_);
}

// Combines the taps of neighbouring outputs. An average is divided by `divisor`, and by the counts, if there are some.
template <class T>
void PoolDriver::pool_outputs(const PoolLine<T>& line, T divisor, const T* counts) const {
  const PoolLines<T>& loops = loops_of<T>();
  if (rule_.kind == PoolKind::max) return loops.max(line);
  if (rule_.kind == PoolKind::average) {
    loops.sum(line);
    return counts ? loops.divide_each(line.y, line.outputs, counts, divisor) : loops.divide(line.y, line.outputs, divisor);
  }
  if (rule_.power == 1) return loops.sum_absolute(line);
  loops.sum_squares(line);
  loops.square_root(line.y, line.outputs);
}

// Windows that are whole planes: the planes [first, last) are the outputs of one line.
template <class T>
void PoolDriver::run_planes(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
  constexpr int64_t together = 256;
  const int axis = window_.spatial - 1;
  const int64_t pixels = window_.input_count(), columns = window_.input[axis];
  for (int64_t i = first; i < last && !poll.stops(together * pixels); i += together) {
    const int64_t n = std::min(together, last - i);
    const T* rows[max_rows];
    for (int64_t r = 0; r < pixels / columns; ++r) rows[r] = input<T>(context, 0).data + i * pixels + r * columns;
    pool_outputs<T>({rows, pixels / columns, columns, 1, pixels, output<T>(context, 0).data + i, n, false}, static_cast<T>(pixels));
  }
}

template <class T>
void PoolDriver::run_lines(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
  if (covers_planes(window_)) return run_planes<T>(context, first, last, poll);
  const bool average = rule_.kind == PoolKind::average;
  const int axis = window_.spatial - 1;
  const int64_t columns = window_.output[axis], lines = window_.output_count() / columns;
  const int64_t kernel = window_.kernel[axis], dilation = window_.dilation[axis], stride = window_.stride[axis];
  Segments<T> segments(window_, rule_, edge_outputs_, thread_scratch<T>(context));
  // Windows of planes share lines, which keep their rows of the buffer from one window to the next.
  const int64_t slots = window_.spatial == 2 ? copied_rows(window_) : 0;
  PoolWindow window(window_);
  window.move_to(first % lines * columns);
  for (int64_t i = first; i < last && !poll.stops(window_.kernel_count() * columns); ++i, window.move_to_next_line()) {
    T* const y = output<T>(context, 0).data + i * columns;
    const T *rows[max_rows], *placed[max_rows];
    int64_t row_count = 0;
    const T* const plane = input<T>(context, 0).data + i / lines * window_.input_count();
    if (window.has_lines()) window.for_each_line([&](int64_t pixel) { rows[row_count++] = plane + pixel; });
    if (row_count == 0) {
      std::fill_n(y, columns, rule_.kind == PoolKind::max ? below_all<T> : T(0));
      continue;
    }
    const int64_t first_slot = slots > 0 ? window.first_line() % slots : 0;
    T others = 1;  // taps along the other axes
    for (int a = 0; a < axis && average; ++a) others *= static_cast<T>(window.taps(a, rule_.count_include_pad));
    for (int k = 0; k < segments.count; ++k) {
      Segment<T>& segment = segments.items[k];
      const int64_t n = segment.last - segment.first;
      for (int64_t r = 0; r < row_count && !segment.buffer; ++r) placed[r] = rows[r] + segment.first * stride - window_.pad_begin[axis];
      for (int64_t r = 0, slot = first_slot; r < row_count && segment.buffer; ++r) {
        placed[r] = segment.place(rows[r], slot);
        slot += slots > 0 ? window_.dilation[0] : 1;
        if (slots > 0 && slot >= slots) slot -= slots;
      }
      T* const to = y + segment.first;
      const PoolLine<T> line = {placed, row_count, kernel, dilation, stride, to, n, segment.buffer != nullptr};
      pool_outputs(line, segment.buffer ? others : others * static_cast<T>(kernel), segment.counts);
    }
  }
}

template void PoolDriver::run_lines<float>(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
template void PoolDriver::run_lines<double>(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;

}  // namespace heddle::cpu

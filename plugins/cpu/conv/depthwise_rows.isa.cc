// The loops of depthwise convolutions, compiled once per instruction set level. See depthwise_rows.h.
//
// For a group of channels the nine taps of a 3x3 kernel are held in registers, and four neighbouring outputs share what they read; of other
// kernels eight neighbouring outputs share each tap. Sums always run over the taps in row order from the bias on, at the edges as inside,
// so results do not depend on how rows were divided into tiles.
#include "conv/depthwise_rows.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// One value per channel: a vector, or a single float for the channels that do not fill one.
struct VectorLanes {
  using type = VF;
  static constexpr int64_t count = lanes<float>;
  static VF load_at(const float* p) { return load<VF>(p); }
  static void store_at(float* p, VF v) { store(p, v); }
  static VF broadcast(float v) { return splat<VF>(v); }
  static VF multiply_add(VF a, VF b, VF c) { return fma(a, b, c); }
  static VF clamp(VF v, VF lower, VF upper) { return smaller(larger(v, lower), upper); }
};
struct OneLane {
  using type = float;
  [[maybe_unused]] static constexpr int64_t count = 1;
  static float load_at(const float* p) { return *p; }
  static void store_at(float* p, float v) { *p = v; }
  static float broadcast(float v) { return v; }
#if defined(__FMA__)
  static float multiply_add(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
  }
#else
  static float multiply_add(float a, float b, float c) {
    return a * b + c;
  }
#endif
  static float clamp(float v, float lower, float upper) {
    v = v > lower || v != v ? v : lower;
    return v < upper || v != v ? v : upper;
  }
};

// One row of the output for one group of channels.
template <class L, int S>
struct Row {
  using V = typename L::type;
  static constexpr int width = 4;                    // outputs computed together
  static constexpr int reads = (width - 1) * S + 3;  // input columns that they touch
  V taps[9];
  V bias, lower, upper;
  const float* lines[3];  // the existing input rows, at this group's first channel ...
  int line_taps[3];       // ... and their row of the kernel
  int line_count;
  int64_t channels, columns, pad_left;

  V finish(V sum) const { return L::clamp(sum, lower, upper); }

  // An output whose window may reach over the left or right edge.
  void edge(float* y, int64_t output_column) const {
    V sum = bias;
    const int64_t first = output_column * S - pad_left;
    for (int l = 0; l < line_count; ++l) {
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t column = first + j;
        if (column < 0 || column >= columns) continue;
        sum = L::multiply_add(L::load_at(lines[l] + column * channels), taps[line_taps[l] * 3 + j], sum);
      }
    }
    L::store_at(y + output_column * channels, finish(sum));
  }

  template <int line>
  void add_line(V (&sums)[width], int64_t column) const {
    const float* x = lines[line] + column * channels;
    const V* t = taps + line_taps[line] * 3;
    const V t0 = t[0], t1 = t[1], t2 = t[2];
    V values[reads];
#pragma GCC unroll 16
    for (int i = 0; i < reads; ++i) values[i] = L::load_at(x + i * channels);
#pragma GCC unroll 16
    for (int u = 0; u < width; ++u) {
      sums[u] = L::multiply_add(values[u * S], t0, sums[u]);
      sums[u] = L::multiply_add(values[u * S + 1], t1, sums[u]);
      sums[u] = L::multiply_add(values[u * S + 2], t2, sums[u]);
    }
  }

  void block(float* y, int64_t output_column) const {
    V sums[width];
#pragma GCC unroll 16
    for (int u = 0; u < width; ++u) sums[u] = bias;
    const int64_t column = output_column * S - pad_left;
    if (line_count > 0) add_line<0>(sums, column);
    if (line_count > 1) add_line<1>(sums, column);
    if (line_count > 2) add_line<2>(sums, column);
#pragma GCC unroll 16
    for (int u = 0; u < width; ++u) L::store_at(y + (output_column + u) * channels, finish(sums[u]));
  }

  void run(float* y, int64_t output_columns) const {
    const int64_t safe_first = (pad_left + S - 1) / S;                                         // the first window inside ...
    const int64_t safe_last = columns + pad_left >= 3 ? (columns + pad_left - 3) / S + 1 : 0;  // ... and the end of the last one
    const int64_t inside_end = safe_last < output_columns ? safe_last : output_columns;
    int64_t o = 0;
    for (; o < output_columns && o < safe_first; ++o) edge(y, o);
    for (; o + width <= inside_end; o += width) block(y, o);
    for (; o < output_columns; ++o) edge(y, o);
  }
};

// The input rows that output row `r` reads, for all groups of channels.
struct Lines {
  const float* data[3];
  int taps[3];
  int count = 0;
};
template <int S>
Lines lines_of(const DepthwiseTile& tile, int64_t r) {
  Lines lines;
  for (int i = 0; i < 3; ++i) {
    const int64_t input_row = r * S - tile.row.pad + i;
    if (input_row < 0 || input_row >= tile.row.input) continue;
    lines.data[lines.count] = tile.x + input_row * tile.column.input * tile.channels;
    lines.taps[lines.count++] = i;
  }
  return lines;
}

template <class L, int S>
void run_group(const DepthwiseTile& tile, const Lines& lines, int64_t channel, float* y) {
  Row<L, S> row;
  for (int i = 0; i < 9; ++i) row.taps[i] = L::load_at(tile.weights + i * tile.channels + channel);
  row.bias = L::load_at(tile.bias + channel) + 0.0f;  // never -0, which would persist if all products are -0
  row.lower = L::broadcast(tile.lower);
  row.upper = L::broadcast(tile.upper);
  row.channels = tile.channels;
  row.columns = tile.column.input;
  row.pad_left = tile.column.pad;
  row.line_count = lines.count;
  for (int i = 0; i < lines.count; ++i) {
    row.lines[i] = lines.data[i] + channel;
    row.line_taps[i] = lines.taps[i];
  }
  row.run(y + channel, tile.column.output);
}

// Calls f(lanes, channel) for groups of channels that are all of them. The last vector may overlap the one before it, and computes the
// same.
template <class F>
void for_each_group(int64_t channels, F f) {
  int64_t channel = 0;
  for (; channel + VectorLanes::count <= channels; channel += VectorLanes::count) f(VectorLanes(), channel);
  if (channel == channels) return;
  if (channels >= VectorLanes::count) return f(VectorLanes(), channels - VectorLanes::count);
  for (; channel < channels; ++channel) f(OneLane(), channel);
}

template <int S>
void run_3x3(const DepthwiseTile& tile) {
  for (int64_t r = 0; r < tile.row.output; ++r) {
    const Lines lines = lines_of<S>(tile, r);
    float* y = tile.y + r * tile.column.output * tile.channels;
    for_each_group(tile.channels, [&](auto lanes, int64_t channel) { run_group<decltype(lanes), S>(tile, lines, channel, y); });
  }
}

// Outputs of one row, of any kernel, for one group of channels.
template <class L>
struct AnyRow {
  using V = typename L::type;
  const DepthwiseTile& tile;
  const float* x;        // of this group
  const float* weights;  // of this group
  float* y;              // the row, at this group
  int64_t first_row;     // of the window in the input
  V bias, lower, upper;

  // Computes `width` outputs from `output` on. `inside`: no tap reaches over the left or right edge.
  template <bool inside, int width>
  void block(int64_t output) const {
    V sums[width];
#pragma GCC unroll 16
    for (int u = 0; u < width; ++u) sums[u] = bias;
    const int64_t first_column = output * tile.column.stride - tile.column.pad, apart = tile.column.stride * tile.channels;
    for (int64_t i = 0; i < tile.row.kernel; ++i) {
      const int64_t row = first_row + i * tile.row.dilation;
      if (row < 0 || row >= tile.row.input) continue;
      for (int64_t j = 0; j < tile.column.kernel; ++j) {
        const V tap = L::load_at(weights + (i * tile.column.kernel + j) * tile.channels);
        const int64_t column = first_column + j * tile.column.dilation;
        const float* source = x + (row * tile.column.input + column) * tile.channels;
#pragma GCC unroll 16
        for (int u = 0; u < width; ++u, source += apart) {
          const int64_t at = column + u * tile.column.stride;
          if (inside || (at >= 0 && at < tile.column.input)) sums[u] = L::multiply_add(L::load_at(source), tap, sums[u]);
        }
      }
    }
#pragma GCC unroll 16
    for (int u = 0; u < width; ++u) L::store_at(y + (output + u) * tile.channels, L::clamp(sums[u], lower, upper));
  }

  // Computes the outputs [output, end), some of those before `output` again where a block would reach over the end of the row, and some
  // after `end`. Returns the next output.
  int64_t near_edge(int64_t output, int64_t end) const {
    constexpr int width = 4;
    while (output < end) {
      if (tile.column.output < width) {
        block<false, 1>(output++);
        continue;
      }
      const int64_t first = output + width <= tile.column.output ? output : tile.column.output - width;
      block<false, width>(first);
      output = first + width;
    }
    return output;
  }

  // Computes the outputs [output, end); [inside, inside_end) are those whose windows reach over neither edge.
  void run(int64_t output, int64_t end, int64_t inside, int64_t inside_end) const {
    constexpr int width = 8;
    const int64_t last = inside_end < end ? inside_end : end;
    output = near_edge(output, inside < end ? inside : end);
    for (; output + width <= last; output += width) block<true, width>(output);
    if (output < last && last - width >= inside) {
      block<true, width>(last - width);  // some of them again
      output = last;
    }
    near_edge(output, end);
  }
};

template <class L>
void run_any_group(const DepthwiseTile& tile, int64_t r, int64_t first, int64_t last, int64_t inside, int64_t inside_end, int64_t channel) {
  const AnyRow<L> row = {tile,
                         tile.x + channel,
                         tile.weights + channel,
                         tile.y + r * tile.column.output * tile.channels + channel,
                         r * tile.row.stride - tile.row.pad,
                         L::load_at(tile.bias + channel) + 0.0f,  // as in run_group()
                         L::broadcast(tile.lower),
                         L::broadcast(tile.upper)};
  row.run(first, last, inside, inside_end);
}

void run_any(const DepthwiseTile& tile) {
  constexpr int64_t kept = 1 << 14;  // floats of the input that all groups of channels read before the next ones: they stay in the cache
  const int64_t fitting = kept / (tile.channels * tile.column.stride), together = fitting < 64 ? 64 : fitting;
  const int64_t room = tile.column.input + tile.column.pad - (tile.column.kernel - 1) * tile.column.dilation - 1;
  const int64_t inside = tile.column.pad <= 0 ? 0 : (tile.column.pad + tile.column.stride - 1) / tile.column.stride;
  const int64_t inside_end = room < 0 ? 0 : room / tile.column.stride + 1;
  for (int64_t r = 0; r < tile.row.output; ++r) {
    for (int64_t first = 0; first < tile.column.output; first += together) {
      const int64_t last = first + together < tile.column.output ? first + together : tile.column.output;
      for_each_group(tile.channels, [&](auto lanes, int64_t channel) {
        run_any_group<decltype(lanes)>(tile, r, first, last, inside, inside_end, channel);
      });
    }
  }
}

void run(const DepthwiseTile& tile) {
  const bool is_3x3 = tile.row.kernel == 3 && tile.column.kernel == 3 && tile.row.dilation == 1 && tile.column.dilation == 1;
  if (is_3x3 && tile.row.stride == 1 && tile.column.stride == 1)
    run_3x3<1>(tile);
  else if (is_3x3 && tile.row.stride == 2 && tile.column.stride == 2)
    run_3x3<2>(tile);
  else
    run_any(tile);
}

}  // namespace

extern const DepthwiseTable depthwise;
const DepthwiseTable depthwise = {run};

}  // namespace heddle::cpu::HEDDLE_ISA

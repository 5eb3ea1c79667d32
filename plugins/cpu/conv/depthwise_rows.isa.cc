// The loops of depthwise 3x3 convolutions, compiled once per instruction set level. See depthwise_rows.h.
//
// For a group of channels the nine taps are held in registers; four neighbouring outputs share what they read. Sums always run over the
// taps in row order from the bias on, at the edges as inside, so results do not depend on how rows were divided into tiles.
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
    const int64_t input_row = r * S - tile.pad_top + i;
    if (input_row < 0 || input_row >= tile.rows) continue;
    lines.data[lines.count] = tile.x + input_row * tile.columns * tile.channels;
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
  row.columns = tile.columns;
  row.pad_left = tile.pad_left;
  row.line_count = lines.count;
  for (int i = 0; i < lines.count; ++i) {
    row.lines[i] = lines.data[i] + channel;
    row.line_taps[i] = lines.taps[i];
  }
  row.run(y + channel, tile.output_columns);
}

template <int S>
void run_tile(const DepthwiseTile& tile) {
  for (int64_t r = 0; r < tile.output_rows; ++r) {
    const Lines lines = lines_of<S>(tile, r);
    float* y = tile.y + r * tile.output_columns * tile.channels;
    int64_t channel = 0;
    for (; channel + VectorLanes::count <= tile.channels; channel += VectorLanes::count) run_group<VectorLanes, S>(tile, lines, channel, y);
    for (; channel < tile.channels; ++channel) run_group<OneLane, S>(tile, lines, channel, y);
  }
}

void run(const DepthwiseTile& tile) {
  if (tile.stride == 1)
    run_tile<1>(tile);
  else
    run_tile<2>(tile);
}

}  // namespace

extern const DepthwiseTable depthwise;
const DepthwiseTable depthwise = {run};

}  // namespace heddle::cpu::HEDDLE_ISA

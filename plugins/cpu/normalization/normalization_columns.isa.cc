// The loops of batch normalisation on columns of one instruction set level.
#include "normalization/normalization_columns.h"

#include "vector/prefetch.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

constexpr int64_t width = lanes<float>;
constexpr int64_t at_once = 2;  // vectors of channels: the sums of more exceed the first cache

VF part_of(const float* x, int64_t count) {
  return count == width ? load<VF>(x) : load_part(x, count, VF{});
}
void put(float* y, int64_t count, VF v) {
  count == width ? store(y, v) : store_part(y, v, count);
}

// A row is summed in four accumulators, each lane of which adds every 4 * width-th element: here each lane of each has a vector of
// channels. The rest of a row goes by vectors to the first accumulator, and at the end to lanes of the second.
int64_t accumulator_of(int64_t pixel, int64_t in_fours, int64_t in_vectors) {
  return pixel < in_fours ? pixel % (4 * width) : pixel < in_vectors ? (pixel - in_fours) % width : width + pixel - in_vectors;
}

// Sums of `Terms::count` kinds over the pixels, for `vectors` vectors of channels that begin at `channel`; the last one has `count`
// channels.
template <int64_t vectors, class Terms>
void add_up(const ChannelColumns& columns, int64_t channel, int64_t count, const Terms& terms, double* const* totals) {
  constexpr int kinds = Terms::count;
  const int64_t pixels = columns.pixels, in_fours = pixels / (4 * width) * (4 * width), in_vectors = pixels / width * width;
  const int64_t ahead = bytes_fetched_ahead / (vectors * vector_bytes);
  const int64_t lanes_used = (in_fours > 0 ? 4 : 2) * width;
  VF sums[4 * width][vectors][kinds];
  for (int64_t a = 0; a < lanes_used; ++a)
    for (int64_t v = 0; v < vectors; ++v)
      for (int k = 0; k < kinds; ++k) sums[a][v][k] = VF{};
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    const int64_t at = pixel * columns.stride + channel;
    if (pixel + ahead < pixels) terms.fetch(at + ahead * columns.stride, vectors * vector_bytes);
    VF(&here)[vectors][kinds] = sums[accumulator_of(pixel, in_fours, in_vectors)];
    for (int64_t v = 0; v < vectors; ++v) terms.add(at + v * width, channel + v * width, v + 1 == vectors ? count : width, here[v]);
  }
  for (int64_t v = 0; v < vectors; ++v)
    for (int k = 0; k < kinds; ++k) {
      for (int64_t a = 0; a < width; ++a) sums[a][v][k] += sums[width + a][v][k];
      for (int64_t a = 0; in_fours > 0 && a < width; ++a) sums[a][v][k] += sums[2 * width + a][v][k] + sums[3 * width + a][v][k];
      for (int64_t half = width / 2; half > 0; half /= 2)
        for (int64_t a = 0; a < half; ++a) sums[a][v][k] += sums[half + a][v][k];
      const int64_t n = v + 1 == vectors ? count : width;
      for (int64_t i = 0; i < n; ++i) totals[k][channel + v * width + i] += static_cast<double>(sums[0][v][k][i]);
    }
}
template <class Terms>
void add_up_all(const ChannelColumns& columns, const Terms& terms, double* const* totals) {
  int64_t channel = 0;
  for (; channel + at_once * width <= columns.channels; channel += at_once * width) add_up<at_once>(columns, channel, width, terms, totals);
  for (; channel < columns.channels; channel += width)
    add_up<1>(columns, channel, columns.channels - channel < width ? columns.channels - channel : width, terms, totals);
}

struct Values {
  static constexpr int count = 1;
  const float* x;
  void fetch(int64_t at, int64_t bytes) const { prefetch_row(x + at, bytes); }
  void add(int64_t at, int64_t, int64_t n, VF* sums) const { sums[0] += part_of(x + at, n); }
};
struct Centred {
  static constexpr int count = 2;
  const float *x, *shift;
  void fetch(int64_t at, int64_t bytes) const { prefetch_row(x + at, bytes); }
  void add(int64_t at, int64_t channel, int64_t n, VF* sums) const {
    const VF d = part_of(x + at, n) - part_of(shift + channel, n);
    sums[0] += d;
    sums[1] = fma(d, d, sums[1]);
  }
};
struct Gradients {
  static constexpr int count = 2;
  const float *x, *dy, *shift;
  void fetch(int64_t at, int64_t bytes) const {
    prefetch_row(x + at, bytes);
    prefetch_row(dy + at, bytes);
  }
  void add(int64_t at, int64_t channel, int64_t n, VF* sums) const {
    const VF h = part_of(dy + at, n);
    sums[0] += h;
    sums[1] = fma(h, part_of(x + at, n) - part_of(shift + channel, n), sums[1]);
  }
};

void add_sums(const ChannelColumns& columns, const float* x, double* sums) {
  double* const totals[] = {sums};
  add_up_all(columns, Values{x}, totals);
}
void add_centred_sums(const ChannelColumns& columns, const float* x, const float* shift, double* sums, double* squares) {
  double* const totals[] = {sums, squares};
  add_up_all(columns, Centred{x, shift}, totals);
}
void add_gradient_sums(const ChannelColumns& columns, const float* x, const float* dy, const float* shift, double* sums, double* products) {
  double* const totals[] = {sums, products};
  add_up_all(columns, Gradients{x, dy, shift}, totals);
}

// f(element, channel, elements) for vectors of channels, pixel by pixel.
template <class F>
void each(const ChannelColumns& columns, F f) {
  for (int64_t pixel = 0; pixel < columns.pixels; ++pixel) {
    int64_t channel = 0;
    const int64_t at = pixel * columns.stride;
    for (; channel + width <= columns.channels; channel += width) f(at + channel, channel, width);
    if (channel < columns.channels) f(at + channel, channel, columns.channels - channel);
  }
}
void affine(const ChannelColumns& columns, const float* x, float* y, const ColumnNumbers& numbers) {
  const ColumnNumbers k = numbers;
  each(columns, [&](int64_t at, int64_t c, int64_t n) {
    put(y + at, n, fma(part_of(x + at, n) - part_of(k.shift + c, n), part_of(k.factor + c, n), part_of(k.offset + c, n)));
  });
}
void apply_gradient(const ChannelColumns& columns, const float* x, const float* dy, float* dx, const ColumnNumbers& numbers) {
  const ColumnNumbers k = numbers;
  each(columns, [&](int64_t at, int64_t c, int64_t n) {
    const VF of_x = fma(part_of(x + at, n) - part_of(k.shift + c, n), part_of(k.slope + c, n), part_of(k.offset + c, n));
    put(dx + at, n, fma(part_of(dy + at, n) - part_of(k.level + c, n), part_of(k.factor + c, n), of_x));
  });
}

}  // namespace

constinit const NormalizationColumnTable normalization_columns = {add_sums, add_centred_sums, add_gradient_sums, affine, apply_gradient};

}  // namespace heddle::cpu::HEDDLE_ISA

// The loops of Resize of one instruction set level; resize_rows.h describes them.
#include "image/resize_rows.h"

#include "vector/gathers.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class S>
void add_row(void* sums, const void* x, double weight, int64_t count) {
  S* const to = static_cast<S*>(sums);
  const S* __restrict__ const from = static_cast<const S*>(x);
  const S w = static_cast<S>(weight);
  for (int64_t i = 0; i < count; ++i) to[i] += w * from[i];
}

// Sums of single elements. Vectors may overlap: the last ones end with the row.
template <class S>
void single_columns(const ResizeColumns& c, const S* row, S* y) {
  constexpr int64_t width = lanes<S>;
  const S* const weights = static_cast<const S*>(c.weights);
  const auto vector = [&](int64_t o) {
    Vector<S> sum = {};
    for (int64_t t = 0; t < c.taps; ++t) sum += load<Vector<S>>(weights + t * c.output + o) * gathered(row, c.positions + t * c.output + o);
    store(y + o, sum);
  };
  if (c.output >= width) {
    for (int64_t o = 0; o + width < c.output; o += width) vector(o);
    return vector(c.output - width);
  }
  for (int64_t o = 0; o < c.output; ++o) {
    y[o] = 0;
    for (int64_t t = 0; t < c.taps; ++t) y[o] += weights[t * c.output + o] * row[c.positions[t * c.output + o]];
  }
}

template <class S>
void columns(const ResizeColumns& c, const void* from, void* to) {
  const S* const row = static_cast<const S*>(from);
  S* const y = static_cast<S*>(to);
  if (c.block == 1) return single_columns(c, row, y);
  for (int64_t o = 0; o < c.output; ++o) {
    S* const target = y + o * c.block;
    for (int64_t b = 0; b < c.block; ++b) target[b] = 0;
    for (int64_t t = 0; t < c.taps; ++t) {
      const S* __restrict__ const source = row + c.positions[t * c.output + o] * c.block;
      const S w = static_cast<const S*>(c.weights)[t * c.output + o];
      for (int64_t b = 0; b < c.block; ++b) target[b] += w * source[b];
    }
  }
}

template <class W>
void picked(const void* row, const int32_t* positions, void* y, int64_t count) {
  const W* const from = static_cast<const W*>(row);
  W* __restrict__ const to = static_cast<W*>(y);
  for (int64_t i = 0; i < count; ++i) to[i] = from[positions[i]];
}

void round_row(double* x, int64_t count) {
  int64_t i = 0;
  for (; i + lanes<double> <= count; i += lanes<double>) store(x + i, round(load<VD>(x + i)));
  for (; i < count; ++i) x[i] = __builtin_nearbyint(x[i]);
}

}  // namespace

constinit const ResizeTable resize_rows = {{add_row<float>, add_row<double>},
                                           {columns<float>, columns<double>},
                                           {picked<uint8_t>, picked<uint16_t>, picked<uint32_t>, picked<uint64_t>},
                                           round_row};

}  // namespace heddle::cpu::HEDDLE_ISA

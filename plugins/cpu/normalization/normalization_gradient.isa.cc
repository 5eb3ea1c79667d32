// The loops of normalisations' gradients of one instruction set level.
#include "normalization/normalization_gradient.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

constexpr int64_t width = lanes<float>;
constexpr int64_t gradient_stretch = 4096;  // summed in f32 before it goes into a double

VF part_of(const float* x, int64_t count) {
  return count == width ? load<VF>(x) : load_part(x, count, VF{});
}

struct Sums {
  VF sum, products;
  void add(VF h, VF d) {
    sum += h;
    products = fma(h, d, products);
  }
  void join(const Sums& b) { sum += b.sum, products += b.products; }
};

// `value(i, n)`: returns dy * scale of up to a vector's elements, followed by zeros.
template <class Value>
void sum_products(const float* x, int64_t count, float shift, Value value, double* sum, double* products) {
  const VF s = splat<VF>(shift);
  *sum = *products = 0;
  for (int64_t begin = 0; begin < count; begin += gradient_stretch) {
    const int64_t end = count - begin < gradient_stretch ? count : begin + gradient_stretch;
    Sums a[4] = {};
    int64_t i = begin;
    for (; i + 4 * width <= end; i += 4 * width)
      for (int k = 0; k < 4; ++k) a[k].add(value(i + k * width, width), load<VF>(x + i + k * width) - s);
    for (; i + width <= end; i += width) a[0].add(value(i, width), load<VF>(x + i) - s);
    if (i < end) a[1].add(value(i, end - i), load_part(x + i, end - i, splat<VF>(shift)) - s);
    a[0].join(a[1]);
    a[2].join(a[3]);
    a[0].join(a[2]);
    *sum += static_cast<double>(sum_lanes(a[0].sum));
    *products += static_cast<double>(sum_lanes(a[0].products));
  }
}
void sums(const float* x, const float* dy, const float* scale, int64_t count, float shift, double* sum, double* products) {
  if (scale)
    sum_products(
        x, count, shift, [&](int64_t i, int64_t n) { return part_of(dy + i, n) * part_of(scale + i, n); }, sum, products);
  else
    sum_products(
        x, count, shift, [&](int64_t i, int64_t n) { return part_of(dy + i, n); }, sum, products);
}

void apply(const float* x, const float* dy, const float* scale, float* dx, int64_t count, const GradientNumbers<float>& numbers) {
  const VF s = splat<VF>(numbers.shift), gain = splat<VF>(numbers.gain), level = splat<VF>(numbers.level);
  const VF f = splat<VF>(numbers.factor), k = splat<VF>(numbers.slope), c = splat<VF>(numbers.offset);
  for (int64_t i = 0; i < count; i += width) {
    const int64_t n = count - i < width ? count - i : width;
    const VF h = part_of(dy + i, n) * (scale ? part_of(scale + i, n) : gain);
    const VF r = fma(h - level, f, fma(part_of(x + i, n) - s, k, c));
    if (n == width)
      store(dx + i, r);
    else
      store_part(dx + i, r, n);
  }
}

void add_row(const float* x, const float* dy, int64_t count, float shift, float factor, float offset, double* scales, double* biases) {
  const VF s = splat<VF>(shift), f = splat<VF>(factor), c = splat<VF>(offset);
  constexpr int64_t half = lanes<double>;
  int64_t i = 0;
  for (; i + width <= count; i += width) {
    const VF g = load<VF>(dy + i);
    const Doubles of_bias = widen(g), of_scale = widen(g * fma(load<VF>(x + i) - s, f, c));
    store(biases + i, load<VD>(biases + i) + of_bias.low);
    store(biases + i + half, load<VD>(biases + i + half) + of_bias.high);
    store(scales + i, load<VD>(scales + i) + of_scale.low);
    store(scales + i + half, load<VD>(scales + i + half) + of_scale.high);
  }
  if (i == count) return;
  const VF g = part_of(dy + i, count - i), p = g * fma(load_part(x + i, count - i, splat<VF>(shift)) - s, f, c);
  for (int64_t k = 0; i + k < count; ++k) {
    biases[i + k] += static_cast<double>(g[k]);
    scales[i + k] += static_cast<double>(p[k]);
  }
}

}  // namespace

constinit const NormalizationGradientTable normalization_gradients = {sums, apply, add_row};

}  // namespace heddle::cpu::HEDDLE_ISA

// Helpers of the tests of reductions, softmaxes and normalisations: random tensors, and tensors as lines of elements that belong together.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "conformance/reference.h"
#include "source/plan_run.h"

namespace heddle::cuda::grid_test {

using conformance::Ints;
using conformance::Number;
using conformance::Numbers;
using Elements = std::vector<Number>;

// A number, and the magnitude that its rounding error is relative to.
struct Scaled {
  Number value = 0, scale = 0;
};

inline constexpr DType float_kinds[] = {DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr DType number_kinds[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                         DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

// Returns uniform numbers of the range, rounded to the dtype.
inline Tensor random_tensor(DType dtype, const Shape& shape, double low, double high, uint64_t seed) {
  std::mt19937_64 dice(seed);
  Numbers numbers = conformance::zeros(dtype, shape);
  for (Number& n : numbers.values) {
    const double x = low + (high - low) * static_cast<double>(dice() >> 11) * 0x1p-53;
    n = conformance::is_floating(dtype) ? x : std::floor(x);
  }
  return conformance::blob_of(numbers);
}
inline Tensor tensor_of(DType dtype, const Shape& shape, const Elements& values) {
  Numbers numbers = conformance::zeros(dtype, shape);
  numbers.values = values;
  return conformance::blob_of(numbers);
}
inline Tensor integers(const std::vector<int64_t>& values) {
  return Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(values.size())}, values.data());
}

// Gives the line of each element by its position, where a line spans the dimensions in `set`; lines are in row-major order.
struct Lines {
  Shape kept;  // with 1 in place of those dimensions
  std::vector<size_t> line_of;
  std::vector<Elements> elements;

  Lines(const Numbers& x, uint32_t set) {
    for (int i = 0; i < x.shape.rank(); ++i) kept.push_back((set >> i & 1) != 0 ? 1 : x.shape[i]);
    elements.resize(static_cast<size_t>(kept.element_count()));
    for (int64_t i = 0; i < x.size(); ++i) {
      line_of.push_back(static_cast<size_t>(conformance::broadcast_flat(conformance::position_of(i, x.shape), kept)));
      elements[line_of.back()].push_back(x.values[static_cast<size_t>(i)]);
    }
  }
};

inline Shape reduced_shape(const Shape& shape, uint32_t set, bool keeps_dims) {
  Shape to;
  for (int i = 0; i < shape.rank(); ++i) {
    if ((set >> i & 1) == 0)
      to.push_back(shape[i]);
    else if (keeps_dims)
      to.push_back(1);
  }
  return to;
}

using Fold = std::function<Scaled(const Elements&)>;

inline Numbers reduced(const Numbers& x, uint32_t set, bool keeps_dims, DType dtype, const Fold& fold) {
  const Lines lines(x, set);
  Numbers y = conformance::zeros(dtype, reduced_shape(x.shape, set, keeps_dims));
  y.scale = y.values;
  for (size_t i = 0; i < lines.elements.size(); ++i) {
    const Scaled result = fold(lines.elements[i]);
    y.values[i] = result.value;
    y.scale[i] = result.scale;
  }
  return y;
}

}  // namespace heddle::cuda::grid_test

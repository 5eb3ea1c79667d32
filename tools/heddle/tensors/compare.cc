#include "tensors/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/element.h"
#include "base/text/text.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {

namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments_of(const TensorView& tensor) {
  const int64_t count = tensor.shape.element_count();
  Moments m;
  for (int64_t i = 0; i < count; ++i) m.mean += element(tensor, i) / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) m.deviation += (element(tensor, i) - m.mean) * (element(tensor, i) - m.mean);
  m.deviation = count > 1 ? std::sqrt(m.deviation / static_cast<double>(count - 1)) : 0;
  return m;
}

}  // namespace

Comparison compare_moments(const TensorView& actual, const TensorView& expected) {
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) return compare(actual, expected, 0, 0);
  Comparison c;
  const double count = static_cast<double>(expected.shape.element_count());
  if (count < 2) return c;
  const Moments a = moments_of(actual), e = moments_of(expected);
  // Uses the smaller deviation: a stray number must not excuse itself. Few draws may all be the same, then the other's.
  const auto [small, large] = std::minmax(a.deviation, e.deviation);
  const double deviation = small > 0 ? small : large;
  // The standard errors of the difference of two means, and (for a kurtosis of up to 9) of two deviations.
  const double of_mean = deviation * std::sqrt(2 / count), of_deviation = deviation * std::sqrt(4 / count);
  const auto differ = [&](const char* what, double is, double expected_value) {
    c.equal = false;
    c.reason = fmt::format("has {} {}, expected about {}", what, shortest(is), shortest(expected_value));
  };
  if (!(std::abs(a.deviation - e.deviation) <= 6 * of_deviation)) differ("standard deviation", a.deviation, e.deviation);
  if (!(std::abs(a.mean - e.mean) <= 6 * of_mean)) differ("mean", a.mean, e.mean);
  return c;
}

Tolerance tolerance_for(const TensorView& expected, const Tolerances& given) {
  constexpr double default_rtol = 1e-3, of_scale = 1e-5, without_scale = 1e-7;
  Tolerance tolerance = {given.rtol.value_or(default_rtol), given.atol.value_or(without_scale)};
  if (given.atol || !is_float(expected.dtype)) return tolerance;
  double largest = 0;
  for (int64_t i = 0; i < expected.shape.element_count(); ++i) {
    const double magnitude = std::abs(element(expected, i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  if (largest > 0) tolerance.atol = of_scale * largest;
  return tolerance;
}

Comparison compare(const TensorView& actual, const TensorView& expected, double rtol, double atol) {
  Comparison c;
  const auto differ = [&](const std::string& reason) {
    if (c.equal) c.reason = reason;
    c.equal = false;
  };
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    differ(fmt::format("is {}{}, expected {}{}", to_string(actual.dtype), actual.shape.text(), to_string(expected.dtype),
                       expected.shape.text()));
    return c;
  }
  const int64_t count = expected.shape.element_count(), width = byte_width(expected.dtype);
  // Compares the bytes: two different integers of 64 bits may be equal as doubles.
  const auto same_bytes = [&](int64_t i) {
    return std::memcmp(static_cast<const std::byte*>(actual.data) + i * width, static_cast<const std::byte*>(expected.data) + i * width,
                       static_cast<size_t>(width)) == 0;
  };
  double largest = -1;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element(actual, i), e = element(expected, i);
    if (std::isnan(a) && std::isnan(e)) continue;
    const auto error = static_cast<double>(std::abs(element_exactly(actual, i) - element_exactly(expected, i)));
    const bool close = a == e || (std::isfinite(e) && error <= atol + rtol * std::abs(e));  // an infinite tolerance would allow anything
    const bool bad = is_float(expected.dtype) ? !close : !same_bytes(i);
    if (std::isfinite(error)) {
      c.max_abs_error = std::max(c.max_abs_error, error);
      if (e != 0) c.max_rel_error = std::max(c.max_rel_error, error / std::abs(e));
    }
    if (!bad) continue;
    differ(fmt::format("element {} is {}, expected {}", i, shortest(a), shortest(e)));
    ++c.different;
    if (const double off = std::isfinite(error) ? error : std::numeric_limits<double>::infinity(); off > largest) {
      largest = off;
      c.worst = i;
    }
  }
  return c;
}

}  // namespace heddle::tool

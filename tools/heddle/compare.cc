#include "compare.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tensor_files.h"

namespace heddle::tool {
namespace {

bool is_float(DType d) {
  return d == DType::f16 || d == DType::bf16 || d == DType::f32 || d == DType::f64;
}

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
  // The smaller one: a stray number must not excuse itself. Few draws may all be the same, then the other's.
  const auto [small, large] = std::minmax(a.deviation, e.deviation);
  const double deviation = small > 0 ? small : large;
  // Of the difference of two means, and (for a kurtosis of up to 9) of two deviations.
  const double of_mean = deviation * std::sqrt(2 / count), of_deviation = deviation * std::sqrt(4 / count);
  const auto differ = [&](const char* what, double is, double expected_value) {
    c.equal = false;
    c.reason = std::string("has ") + what + " " + shortest(is) + ", expected about " + shortest(expected_value);
  };
  if (!(std::abs(a.deviation - e.deviation) <= 6 * of_deviation)) differ("standard deviation", a.deviation, e.deviation);
  if (!(std::abs(a.mean - e.mean) <= 6 * of_mean)) differ("mean", a.mean, e.mean);
  return c;
}

Comparison compare(const TensorView& actual, const TensorView& expected, double rtol, double atol) {
  Comparison c;
  const auto differ = [&](const std::string& reason) {
    if (c.equal) c.reason = reason;
    c.equal = false;
  };
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    differ(std::string("is ") + to_string(actual.dtype) + actual.shape.text() + ", expected " + to_string(expected.dtype) +
           expected.shape.text());
    return c;
  }
  const int64_t count = expected.shape.element_count();
  for (int64_t i = 0; i < count; ++i) {
    const double a = element(actual, i), e = element(expected, i);
    if (std::isnan(a) && std::isnan(e)) continue;
    const double error = a == e ? 0.0 : std::abs(a - e);
    const bool bad = is_float(expected.dtype) ? !(error <= atol + rtol * std::abs(e)) : a != e;
    if (std::isfinite(error)) {
      c.max_abs_error = std::max(c.max_abs_error, error);
      if (e != 0) c.max_rel_error = std::max(c.max_rel_error, error / std::abs(e));
    }
    if (bad) differ("element " + std::to_string(i) + " is " + shortest(a) + ", expected " + shortest(e));
  }
  return c;
}

Status check_numerics(Execution& execution, uint32_t step) {
  const PlanStep& s = execution.plan().steps[step];
  for (const Operand& out : s.outputs) {
    if (!out.value.valid()) continue;
    const heddle_tensor& view = execution.view(out.value);
    const auto dtype = static_cast<DType>(view.dtype);
    if (!is_float(dtype) || !view.data) continue;
    std::vector<std::byte> staging;
    HEDDLE_TRY(void* const data, execution.on_host(out.value, staging));
    const TensorView tensor{dtype, Shape(view.dims, view.rank), data};
    for (int64_t i = 0; i < view.element_count; ++i) {
      const double v = element(tensor, i);
      if (std::isfinite(v)) continue;
      Status bad(Code::numerics, "element " + std::to_string(i) + " of its output is " + shortest(v),
                 "look at its inputs with --dump DIR --only " + s.name);
      return std::move(bad).at(s.name, s.type).in_net(execution.plan().net_name);
    }
  }
  return {};
}

}  // namespace heddle::tool

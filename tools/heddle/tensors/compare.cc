#include "tensors/compare.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

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

TensorView true_view(const heddle_tensor& view) {
  TensorView tensor{static_cast<DType>(view.dtype), Shape(view.dims, view.rank), view.data};
  if (view.extent && view.extent_axis >= 0) tensor.shape[view.extent_axis] = *view.extent;
  return tensor;
}

namespace {

// The first element that is nan or inf, in the order of memory; -1: there is none.
Result<int64_t> first_not_finite(const Execution& execution, const Operand& operand, double* what) {
  if (!operand.value.valid()) return int64_t{-1};
  TensorView tensor = true_view(execution.view(operand.value));
  if (!is_float(tensor.dtype) || !tensor.data) return int64_t{-1};
  std::vector<std::byte> staging;
  HEDDLE_TRY(tensor.data, execution.on_host(operand.value, staging));
  for (int64_t i = 0; i < tensor.shape.element_count(); ++i)
    if (*what = element(tensor, i); !std::isfinite(*what)) return i;
  return int64_t{-1};
}

}  // namespace

Status NumericsCheck::look(const Execution& execution, uint32_t step) {
  const PlanStep& s = execution.plan().steps[step];
  not_finite_.resize(execution.plan().values.size());
  bool passes_on = false;
  double value = 0;
  for (const Operand& in : s.inputs) {
    if (!in.value.valid()) continue;
    const Placement::Kind kind = execution.plan().values[in.value.index].placement.kind;
    // What no step has made is looked at where it is read; a variable that the step updates in its place is gone already.
    const bool from_outside =
        kind == Placement::Kind::input || kind == Placement::Kind::constant || (kind == Placement::Kind::variable && !s.updates_variable);
    if (from_outside) {
      HEDDLE_TRY(const int64_t at, first_not_finite(execution, in, &value));
      not_finite_[in.value.index] = at >= 0;
    }
    passes_on = passes_on || not_finite_[in.value.index];
  }
  for (const Operand& out : s.outputs) {
    HEDDLE_TRY(const int64_t at, first_not_finite(execution, out, &value));
    if (out.value.valid()) not_finite_[out.value.index] = at >= 0;
    if (at < 0 || passes_on) continue;
    Status bad(Code::numerics, "element " + std::to_string(at) + " of its output is " + shortest(value),
               "look at its inputs with --dump DIR --only " + word(s.name));
    return std::move(bad).at(s.name, s.type).in_net(execution.plan().net_name);
  }
  return {};
}

}  // namespace heddle::tool

#include "commands/plugin/check/gradient_examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "base/element.h"
#include "base/random.h"
#include "base/text/text.h"
#include "commands/plugin/check/declared_gradient.h"
#include "tensors/convert.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;
using Numbers = std::vector<double>;

constexpr int64_t sampled_elements = 16;  // from the first ones, and from the others
constexpr int random_directions = 3;
// The most elements of inputs and outputs: a difference takes several runs, and smaller calls of the operator show the same.
constexpr int64_t max_elements = int64_t{1} << 17;

bool is_real(const std::shared_ptr<const Blob>& blob) {
  return blob && (blob->dtype == DType::f32 || blob->dtype == DType::f64);
}

Numbers numbers_of(const Blob& blob) {
  const TensorView view{blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)};
  Numbers numbers(static_cast<size_t>(blob.shape.element_count()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = element(view, static_cast<int64_t>(i));
  return numbers;
}

double random_sign(uint64_t& state) {
  return next_random(state) >> 63 ? 1.0 : -1.0;
}

// The sum of all real outputs' elements times `weights`: the gradients are those of this sum.
double weighted_sum(const Blobs& outputs, const std::vector<Numbers>& weights) {
  double total = 0;
  for (size_t o = 0; o < outputs.size() && o < weights.size(); ++o) {
    if (weights[o].empty()) continue;
    const Numbers y = numbers_of(*outputs[o]);
    if (y.size() != weights[o].size()) return NAN;  // other extents: no differences can be computed
    total = std::inner_product(y.begin(), y.end(), weights[o].begin(), total);
  }
  return total;
}

// One input's gradient at one point.
class InputGradient {
 public:
  // Differences are computed from `call`, whose inputs are the point.
  InputGradient(const RegistrySnapshot& registry, OperatorCall call, size_t input, const std::vector<Numbers>& weights, double here)
      : registry_(registry), call_(std::move(call)), input_(input), weights_(weights), here_(here), x_(call_.inputs[input]) {
    const Numbers values = numbers_of(*x_);
    double most = 1;
    for (const double v : values)
      if (std::isfinite(v)) most = std::max(most, std::abs(v));
    wide_ = x_->dtype == DType::f64;
    step_ = (wide_ ? 1e-5 : 1e-2) * most;
  }
  std::string examine(const Blob& gradient, bool by_elements, uint64_t seed);

 private:
  // A slope, and how much it may be wrong; none: it does not converge, or the point is at the border of the operator's domain.
  struct Slope {
    double value = 0, error = 0;
    double kink = 0;  // the difference of the slopes on both sides, where that does not vanish with the step
  };
  std::optional<double> moved(const Numbers& direction, double by);
  std::optional<Slope> slope(const Numbers& direction);
  double along(const Numbers& direction) const { return std::inner_product(g_.begin(), g_.end(), direction.begin(), 0.0); }
  bool differs(const Numbers& direction, double* emitted, double* measured);
  std::string search(const Numbers& direction, double measured);
  std::string examine_directions(uint64_t seed);
  std::string examine_element(int64_t i);
  std::string of_input() const { return fmt::format("its gradient of input {}", input_); }

  const RegistrySnapshot& registry_;
  OperatorCall call_;
  const size_t input_;
  const std::vector<Numbers>& weights_;
  const double here_;
  const std::shared_ptr<const Blob> x_;
  bool wide_ = false;
  double step_ = 0;
  Numbers g_;
  std::string broken_;  // the failure of a kernel when the input is moved
};

std::optional<double> InputGradient::moved(const Numbers& direction, double by) {
  Numbers values = numbers_of(*x_);
  for (size_t i = 0; i < values.size(); ++i) values[i] += direction[i] * by;
  call_.inputs[input_] = blob_of_numbers(x_->dtype, x_->shape, values);
  CallEnd end;
  const auto result = run_operator(registry_, call_, &end);
  if (!result.ok()) {
    if (!end.refused()) broken_ = result.status().text();
    return {};
  }
  const double sum = weighted_sum(*result, weights_);
  return std::isfinite(sum) ? std::optional<double>(sum) : std::nullopt;
}

// Central differences with one step and half of it: their distance is larger than the error of the smaller one.
std::optional<InputGradient::Slope> InputGradient::slope(const Numbers& direction) {
  double slopes[2] = {}, bends[2] = {};
  for (const int half : {0, 1}) {
    const double h = half ? step_ / 2 : step_;
    const auto up = moved(direction, h), down = moved(direction, -h);
    if (!up || !down) return {};
    slopes[half] = (*up - *down) / (2 * h);
    bends[half] = std::abs(*up - here_ + *down - here_) / h;
  }
  // Half of the step halves the effect of a curve, and leaves a kink unchanged.
  return Slope{slopes[1], std::abs(slopes[1] - slopes[0]), bends[1] > 0.75 * bends[0] ? bends[1] : 0};
}

bool InputGradient::differs(const Numbers& direction, double* emitted, double* measured) {
  const auto found = slope(direction);
  if (!found) return false;
  double squares = 0;
  for (size_t i = 0; i < g_.size(); ++i) squares += direction[i] * direction[i] * g_[i] * g_[i];
  const double scale = std::max(std::sqrt(squares), std::abs(found->value));
  if (found->error > 0.02 * scale) return false;
  *emitted = along(direction);
  *measured = found->value;
  // The rounding error of a sum as large as `here_`.
  const double rounding = (wide_ ? 1e-15 : 2e-7) * std::max(1.0, std::abs(here_)) / step_;
  const double tolerance = 2e-3 * scale + 4 * found->error + 8 * rounding + 1e-6;
  // At a kink any slope between those of both sides is right, which only single elements can show: sums of elements mix the sides.
  return found->kink <= tolerance && std::abs(*emitted - *measured) > tolerance;
}

// Finds the element that is wrong, by halves of the direction; `measured` is the slope in that direction.
std::string InputGradient::search(const Numbers& direction, double measured) {
  double emitted = 0;
  size_t first = 0, last = direction.size();
  while (last - first > 1) {
    const size_t middle = first + (last - first) / 2;
    bool found = false;
    for (const auto& [from, to] : {std::pair{first, middle}, {middle, last}}) {
      Numbers part(direction.size(), 0.0);
      std::copy(direction.begin() + static_cast<std::ptrdiff_t>(from), direction.begin() + static_cast<std::ptrdiff_t>(to),
                part.begin() + static_cast<std::ptrdiff_t>(from));
      if (!differs(part, &emitted, &measured)) continue;
      first = from, last = to, found = true;
      break;
    }
    if (!found) return {};
  }
  const double sign = direction[first];
  return fmt::format("element {} of {} is {}, differences say {}", first, of_input(), shortest(g_[first]), shortest(measured / sign));
}

std::string InputGradient::examine_directions(uint64_t seed) {
  uint64_t state = seed;
  for (int d = 0; d <= random_directions; ++d) {
    Numbers direction(g_.size());
    for (size_t i = 0; i < g_.size(); ++i) direction[i] = d > 0 || g_[i] == 0 ? random_sign(state) : std::copysign(1.0, g_[i]);
    double emitted = 0, measured = 0;
    if (!differs(direction, &emitted, &measured)) continue;
    std::string where = search(direction, measured);
    if (!where.empty()) return where;
    return fmt::format("{} gives {} along {}, differences say {}", of_input(), shortest(emitted),
                       d > 0 ? "a random direction" : "its signs", shortest(measured));
  }
  return broken_.empty() ? "" : fmt::format("fails with input {} moved: {}", input_, broken_);
}

std::string InputGradient::examine_element(int64_t i) {
  Numbers direction(g_.size(), 0.0);
  direction[static_cast<size_t>(i)] = 1;
  const auto up = moved(direction, step_), down = moved(direction, -step_);
  if (!broken_.empty()) return fmt::format("fails with element {} of input {} moved: {}", i, input_, broken_);
  if (!up || !down) return {};
  const double slopes[2] = {(here_ - *down) / step_, (*up - here_) / step_};
  const double emitted = g_[static_cast<size_t>(i)], central = (slopes[0] + slopes[1]) / 2;
  const double tolerance = (wide_ ? 1e-3 : 2e-2) * std::max(1.0, std::abs(central));
  if (emitted >= std::min(slopes[0], slopes[1]) - tolerance && emitted <= std::max(slopes[0], slopes[1]) + tolerance) return {};
  return fmt::format("element {} of {} is {}, differences say {}", i, of_input(), shortest(emitted), shortest(central));
}

std::string InputGradient::examine(const Blob& gradient, bool by_elements, uint64_t seed) {
  g_ = numbers_of(gradient);
  if (g_.empty() || !std::isfinite(here_)) return {};
  const auto count = static_cast<int64_t>(g_.size());
  if (by_elements) {
    uint64_t state = seed + 1;
    for (int64_t i = 0; i < std::min(count, 2 * sampled_elements); ++i) {
      const bool drawn = i >= sampled_elements && count > 2 * sampled_elements;
      const auto at = drawn ? static_cast<int64_t>(next_random(state) % static_cast<uint64_t>(count)) : i;
      if (std::string wrong = examine_element(at); !wrong.empty()) return wrong;
    }
  }
  return examine_directions(seed);
}

// ---------------------------------------------------------------- one operator

class GradientExamination {
 public:
  GradientExamination(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed)
      : registry_(registry), schema_(schema), seed_(seed) {}
  std::string examine_at(const OperatorCall& call, const Blobs& outputs, bool as_given);

 private:
  std::string examine_ports(const OperatorCall& call, const Gradients& gradients) const;

  const RegistrySnapshot& registry_;
  const OperatorSchema& schema_;
  const uint64_t seed_;
};

bool is_declared_without(const OperatorSchema& schema, size_t input) {
  const heddle_port* const port = schema.input_port(input);
  return port && (port->flags & HEDDLE_PORT_NOT_DIFFERENTIABLE) != 0;
}

// Checks dtypes and shapes, and which inputs have a gradient.
std::string GradientExamination::examine_ports(const OperatorCall& call, const Gradients& gradients) const {
  size_t candidates = 0, given = 0;
  std::string missing;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& x = call.inputs[i];
    const auto& g = gradients.of_inputs[i];
    const std::string of_input = fmt::format("its gradient of input {}", i);
    if (is_declared_without(schema_, i)) {
      if (g) return fmt::format("{} is there, and the input is declared as not differentiable", of_input);
      continue;
    }
    if (!is_real(x)) continue;
    ++candidates;
    if (!g && missing.empty()) missing = fmt::format("its gradient gives input {} none, which is not declared as not differentiable", i);
    if (!g) continue;
    ++given;
    if (g->dtype != x->dtype) return fmt::format("{} is {}, the input {}", of_input, to_string(g->dtype), to_string(x->dtype));
    if (g->shape != x->shape) return fmt::format("{} has shape {}, the input {}", of_input, g->shape.text(), x->shape.text());
  }
  return candidates > 0 && given == 0 ? "its gradient gives none of its real inputs a gradient" : missing;
}

// `as_given`: the point is the call's, including kinks; else one beside it.
std::string GradientExamination::examine_at(const OperatorCall& call, const Blobs& outputs, bool as_given) {
  Blobs weights;
  std::vector<Numbers> numbers;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const heddle_port* const port = schema_.output_port(o);
    const bool counts = is_real(outputs[o]) && !(port && (port->flags & HEDDLE_PORT_NOT_DIFFERENTIABLE));
    weights.push_back(counts ? random_blob(outputs[o]->dtype, outputs[o]->shape, seed_ + 99 + o) : nullptr);
    numbers.push_back(weights[o] ? numbers_of(*weights[o]) : Numbers());
  }
  if (std::none_of(weights.begin(), weights.end(), [](const auto& w) { return w != nullptr; })) return {};
  const Gradients gradients = run_gradient(registry_, schema_, call, outputs, weights);
  if (gradients.refused) return {};
  if (!gradients.wrong.empty()) return gradients.wrong;
  if (std::string wrong = examine_ports(call, gradients); !wrong.empty()) return wrong;
  // Uses the same call in f64, where there is a kernel for it: differences lose fewer digits there.
  OperatorCall wide = call;
  for (auto& input : wide.inputs)
    if (is_real(input)) input = converted(*input, DType::f64);
  auto wide_outputs = run_operator(registry_, wide);
  // Only if all of it is f64: a statistic that stays f32 moves in steps that are too coarse for small differences.
  bool has_wide = wide_outputs.ok();
  for (size_t o = 0; o < outputs.size() && has_wide; ++o) has_wide = !is_real(outputs[o]) || (*wide_outputs)[o]->dtype == DType::f64;
  const double here = weighted_sum(has_wide ? *wide_outputs : outputs, numbers);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& gradient = gradients.of_inputs[i];
    if (!gradient || !is_real(call.inputs[i])) continue;
    const std::string wrong = InputGradient(registry_, has_wide ? wide : call, i, numbers, here).examine(*gradient, as_given, seed_ + i);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

std::string examine_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs,
                             uint64_t seed) {
  if (!declares_gradient(schema) || std::none_of(call.inputs.begin(), call.inputs.end(), is_real)) return {};
  int64_t elements = 0;
  for (const Blobs* blobs : {&call.inputs, &outputs})
    for (const auto& blob : *blobs) elements += blob ? blob->shape.element_count() : 0;
  if (elements > max_elements) return {};
  GradientExamination examination(registry, schema, seed);
  if (std::string wrong = examination.examine_at(call, outputs, true); !wrong.empty()) return wrong;
  OperatorCall beside = call;
  uint64_t state = seed + 7;
  for (auto& input : beside.inputs) {
    if (!is_real(input)) continue;
    Numbers values = numbers_of(*input);
    for (double& v : values) v += 0.07 * (static_cast<double>(next_random(state) >> 11) * 0x1p-53 - 0.5);
    input = blob_of_numbers(input->dtype, input->shape, values);
  }
  const auto there = run_operator(registry, beside);
  return there.ok() ? examination.examine_at(beside, *there, false) : "";
}

}  // namespace heddle::tool

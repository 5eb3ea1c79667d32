// Generated softmaxes and normalisations on the emulated grid, compared with plain loops in long double: rows in registers of a few
// threads, a warp, a block of 256 and of 1024, rows whose elements are strided, and rows that are too long to be held.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cuda/lines.h"
#include "generate/rows/row_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// Computes an element of the result: f(the line, one of its elements).
using Element = std::function<Scaled(const Elements&, Number)>;

Numbers along(const Numbers& x, uint32_t set, const std::function<Element(const Elements&)>& of_line) {
  const Lines lines(x, set);
  std::vector<Element> each;
  for (const Elements& line : lines.elements) each.push_back(of_line(line));
  Numbers y = conformance::zeros(x.dtype, x.shape);
  y.scale = y.values;
  for (size_t i = 0; i < y.values.size(); ++i) {
    const size_t line = lines.line_of[i];
    const Scaled value = each[line](lines.elements[line], x.values[i]);
    y.values[i] = value.value;
    y.scale[i] = value.scale;
  }
  return y;
}

Number largest_of(const Elements& line) {
  Number most = -HUGE_VALL;
  for (const Number n : line) most = std::isnan(n) || n > most ? n : most;
  return most;
}

Element softmax(const Elements& line, bool logarithm) {
  const Number most = largest_of(line);
  Number sum = 0;
  for (const Number n : line) sum += std::exp(n - most);
  return [=](const Elements&, Number x) -> Scaled {
    const Number away = x - most, y = std::exp(away) / sum;
    if (!logarithm) return {y, y * (1 + std::fabs(away))};
    return {away - std::log(sum), std::isfinite(away) ? std::fabs(away) + std::log(sum) + 1 : 0};
  };
}

struct Statistics {
  Number mean = 0, deviation = 0, away = 0;  // away: the mean magnitude of differences from the mean
};
Statistics statistics_of(const Elements& line) {
  Statistics s;
  const auto count = static_cast<Number>(line.size());
  for (const Number n : line) s.mean += n / count;
  Number variance = 0;
  for (const Number n : line) {
    variance += (n - s.mean) * (n - s.mean) / count;
    s.away += std::fabs(n - s.mean) / count;
  }
  s.deviation = std::sqrt(variance);
  return s;
}
Element centred(const Elements& line, double epsilon, bool beside) {
  const Statistics s = statistics_of(line);
  const Number divisor = beside ? s.deviation + epsilon : std::sqrt(s.deviation * s.deviation + epsilon);
  return [=](const Elements&, Number x) -> Scaled {
    const Number y = (x - s.mean) / divisor;
    return {y, std::isnan(y) ? 0 : (std::fabs(x - s.mean) + s.away) / divisor};
  };
}
Element divided(const Elements& line, int power, bool root_of_mean, double epsilon) {
  Number sum = 0;
  for (const Number n : line) sum += power == 1 ? std::fabs(n) : n * n;
  if (root_of_mean) sum = sum / static_cast<Number>(line.size()) + epsilon;
  const Number norm = power == 1 ? sum : std::sqrt(sum);
  return [=](const Elements&, Number x) -> Scaled {
    const Number y = norm == 0 ? 0 : x / norm;
    return {y, std::fabs(y)};
  };
}

const char* const row_names[] = {"softmax", "log_softmax", "hardmax", "moments", "moments_beside", "squares", "norm1", "norm2"};

Element element_of(RowKind kind, const Elements& line, double epsilon) {
  switch (kind) {
    case RowKind::softmax:
    case RowKind::log_softmax:
      return softmax(line, kind == RowKind::log_softmax);
    case RowKind::moments:
    case RowKind::moments_beside:
      return centred(line, epsilon, kind == RowKind::moments_beside);
    case RowKind::squares:
      return divided(line, 2, true, epsilon);
    default:
      return divided(line, kind == RowKind::norm1 ? 1 : 2, false, 0);
  }
}

Numbers hardmax(const Numbers& x, uint32_t set) {
  const Lines lines(x, set);
  Numbers y = conformance::zeros(x.dtype, x.shape);
  std::vector<bool> found(lines.elements.size(), false);
  std::vector<Number> largest;
  for (const Elements& line : lines.elements) largest.push_back(largest_of(line));
  for (size_t i = 0; i < y.values.size(); ++i) {
    const Number most = largest[lines.line_of[i]], n = x.values[i];
    if (found[lines.line_of[i]] || !(n == most || (std::isnan(n) && std::isnan(most)))) continue;
    found[lines.line_of[i]] = true;
    y.values[i] = 1;
  }
  return y;
}

// Compares with the host's operator over one axis, where it has the same epsilon: none.
void beside_host(RowKind kind, int64_t axis, GridCase* one) {
  const std::map<RowKind, const char*> types = {{RowKind::softmax, "Softmax"},
                                                {RowKind::log_softmax, "LogSoftmax"},
                                                {RowKind::hardmax, "Hardmax"},
                                                {RowKind::norm1, "LpNormalization"},
                                                {RowKind::norm2, "LpNormalization"}};
  const auto found = types.find(kind);
  if (found == types.end()) return;
  one->host = found->second;
  one->attributes = {{"axis", axis}};
  if (one->host == "LpNormalization") one->attributes.push_back({"p", int64_t{kind == RowKind::norm1 ? 1 : 2}});
}

GridCase over(RowKind kind, const Tensor& x, std::vector<int64_t> axes, bool varies = false, double epsilon = 0.25) {
  auto launches = std::make_unique<AxesLaunches>();
  launches->shape.kind = kind;
  launches->epsilon = epsilon;
  launches->axes = axes;
  uint32_t set = 0;
  for (const int64_t axis : axes) set |= 1u << conformance::positive_axis(axis, x->shape.rank());
  GridCase one;
  one.name =
      std::string(row_names[static_cast<int>(kind)]) + " of " + to_string(x->dtype) + x->shape.text() + " over " + std::to_string(set);
  one.launches = std::move(launches);
  one.inputs = {x};
  const Numbers numbers = conformance::numbers_of(*x);
  if (kind == RowKind::hardmax)
    one.expected = {hardmax(numbers, set)};
  else
    one.expected = {along(numbers, set, [&](const Elements& line) { return element_of(kind, line, epsilon); })};
  one.varies = varies;
  if (axes.size() == 1) beside_host(kind, axes[0], &one);
  return one;
}

constexpr RowKind row_kinds[] = {RowKind::softmax,        RowKind::log_softmax, RowKind::hardmax, RowKind::moments,
                                 RowKind::moments_beside, RowKind::squares,     RowKind::norm1,   RowKind::norm2};

TEST(RowSource, EveryKindInEveryDtype) {
  std::vector<GridCase> cases;
  for (const RowKind kind : row_kinds)
    for (const DType dtype : float_kinds) {
      cases.push_back(over(kind, random_tensor(dtype, Shape{5, 96}, -4, 4, 3), {1}));
      cases.push_back(over(kind, random_tensor(dtype, Shape{3, 21, 5}, -4, 4, 4), {1}));     // strided, held by one thread
      cases.push_back(over(kind, random_tensor(dtype, Shape{3, 65, 7, 2}, -4, 4, 5), {1}));  // strided and long
      cases.push_back(over(kind, random_tensor(dtype, Shape{4, 3, 5, 6}, -4, 4, 6), {0, -2}));
    }
  run_on_grid(std::move(cases));
}

TEST(RowSource, RowsAroundWarpsAndBlocks) {
  std::vector<GridCase> cases;
  for (const int64_t n : {1, 2, 7, 8, 31, 32, 33, 64, 255, 1023, 1024, 1025, 4096})
    for (const DType dtype : {DType::f32, DType::f16}) {
      cases.push_back(over(RowKind::softmax, random_tensor(dtype, Shape{9, n}, -4, 4, 3), {-1}));
      cases.push_back(over(RowKind::moments, random_tensor(dtype, Shape{2, n}, 100, 108, 3), {-1}));
    }
  for (const int64_t n : {511, 512, 513, 1025})
    cases.push_back(over(RowKind::log_softmax, random_tensor(DType::f64, Shape{3, n}, -4, 4, 3), {-1}));
  // The longest that 256 and 1024 threads hold, and one more.
  for (const int64_t n : {8192, 8193, 16384, 16385})
    cases.push_back(over(RowKind::softmax, random_tensor(DType::f32, Shape{1, n}, -4, 4, 3), {-1}));
  for (const int64_t n : {16384, 20000}) {
    cases.push_back(over(RowKind::moments, random_tensor(DType::f32, Shape{2, n}, -4, 4, 3), {-1}));
    cases.push_back(over(RowKind::hardmax, random_tensor(DType::bf16, Shape{2, n}, -4, 4, 3), {-1}));
  }
  for (const int64_t n : {1, 31, 32, 33})
    cases.push_back(over(RowKind::log_softmax, random_tensor(DType::f32, Shape{2, n, 33}, -4, 4, 3), {1}));
  run_on_grid(std::move(cases));
}

TEST(RowSource, InfinitiesAndNaN) {
  std::vector<GridCase> cases;
  const Number inf = HUGE_VALL, nan = std::nanl("");
  const Elements values = {inf, 1, 2, 3, -inf, -inf, 4, 4, nan, 5, 6, -inf, -0.0L, 0, 0, 0, -inf, -inf, -inf, -inf};
  for (const RowKind kind : row_kinds)
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, {0}, {0, 1}, {}}) {
      cases.push_back(over(kind, tensor_of(DType::f32, Shape{5, 4}, values), axes));
      cases.push_back(over(kind, tensor_of(DType::f16, Shape{5, 4}, values), axes, true));
    }
  for (GridCase& one : cases)  // x / infinity is 0, infinity / infinity is NaN, as in long double
    one.ulps = 4;
  run_on_grid(std::move(cases));
}

TEST(RowSource, WhatVariesIsOneSource) {
  std::vector<GridCase> cases;
  for (const RowKind kind : row_kinds)
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {2}, {0, 2}})
      cases.push_back(over(kind, random_tensor(DType::f32, Shape{3, 34, 5}, -4, 4, 8), axes, true));
  run_on_grid(std::move(cases));
}

TEST(RowSource, MeanVarianceNormalization) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 8, 4, 16}, Shape{3, 2, 100, 101}, Shape{2, 3, 0, 7}})
      for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0, 2, 3}, {1}, {-1}}) {
        if (shape[2] == 100 && axes.size() == 1) continue;
        cases.push_back(over(RowKind::moments_beside, random_tensor(dtype, shape, -4, 6, 9), axes, false, 1e-9));
        cases.back().host = "MeanVarianceNormalization";
        cases.back().attributes = {{"axes", axes}};
        if (dtype == DType::f64) cases.back().host_ulps = 64;
      }
  run_on_grid(std::move(cases));
}

TEST(RowSource, ChannelsLastIsReadAndWrittenAsItLies) {
  std::vector<GridCase> cases;
  heddle_layout last = {};
  last.rank = 4;
  for (int i = 0; i < 4; ++i) last.order[i] = static_cast<uint8_t>(std::array{0, 2, 3, 1}[static_cast<size_t>(i)]);
  for (int axis = 0; axis < 4; ++axis) {
    const Tensor x = random_tensor(DType::f32, Shape{2, 8, 3, 5}, -4, 4, 7);
    auto launches = std::make_unique<AxisLaunches>();
    launches->shape.kind = RowKind::softmax;
    launches->axis = axis;
    GridCase one = over(RowKind::softmax, x, {axis});
    one.launches = std::move(launches);
    one.layout = last;
    one.inputs[0] = conformance::in_layout(x, last);
    cases.push_back(std::move(one));
  }
  run_on_grid(std::move(cases));
}

// ---------------------------------------------------------------- parameters

Number at(const Numbers& parameter, const Ints& position) {
  return parameter.values[static_cast<size_t>(conformance::broadcast_flat(position, parameter.shape))];
}

// Layer and RMS normalisation: the last `trailing` dimensions are normalised; statistics are outputs, of dtype `told`.
GridCase trailing(RowKind kind, const Tensor& x, int trailing, const Tensor& scale, const Tensor& bias, DType told, double epsilon = 1e-5) {
  auto launches = std::make_unique<TrailingLaunches>();
  launches->shape.kind = kind;
  launches->axis = -trailing;
  launches->epsilon = epsilon;
  GridCase one;
  one.name =
      std::string(row_names[static_cast<int>(kind)]) + " of " + to_string(x->dtype) + x->shape.text() + " with " + scale->shape.text();
  one.launches = std::move(launches);
  one.inputs = {x, scale};
  if (kind == RowKind::moments) one.inputs.push_back(bias);
  uint32_t set = 0;
  for (int i = x->shape.rank() - trailing; i < x->shape.rank(); ++i) set |= 1u << i;
  const Numbers numbers = conformance::numbers_of(*x), factors = conformance::numbers_of(*scale);
  const Numbers summands = bias ? conformance::numbers_of(*bias) : Numbers();
  Numbers y = along(numbers, set, [&](const Elements& line) { return element_of(kind, line, epsilon); });
  for (int64_t i = 0; i < y.size(); ++i) {
    const Ints position = conformance::position_of(i, y.shape);
    const Number factor = at(factors, position), more = bias ? at(summands, position) : 0;
    y.values[static_cast<size_t>(i)] = y.values[static_cast<size_t>(i)] * factor + more;
    y.scale[static_cast<size_t>(i)] = y.scale[static_cast<size_t>(i)] * std::fabs(factor) + std::fabs(more);
  }
  one.expected = {y};
  one.host = kind == RowKind::moments ? "LayerNormalization" : "RMSNormalization";
  one.attributes = {{"axis", int64_t{-trailing}}, {"epsilon", epsilon}, {"stash_type", int64_t{told == DType::bf16 ? 16 : 1}}};
  if (told == DType::none) return one;
  one.expected.push_back(reduced(numbers, set, true, told, [](const Elements& line) {
    const Statistics s = statistics_of(line);
    return Scaled{line.empty() ? std::nanl("") : s.mean, std::fabs(s.mean) + s.away};
  }));
  one.expected.push_back(reduced(numbers, set, true, told, [&](const Elements& line) {
    const Number deviation = statistics_of(line).deviation;
    return Scaled{line.empty() ? std::nanl("") : 1 / std::sqrt(deviation * deviation + epsilon), 0};
  }));
  return one;
}

TEST(RowSource, LayerAndRmsNormalizationWithTheirParameters) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds) {
    const auto make = [&](const Shape& shape, uint64_t seed) { return random_tensor(dtype, shape, -3, 3, seed); };
    cases.push_back(trailing(RowKind::moments, make(Shape{5, 64}, 1), 1, make(Shape{64}, 2), make(Shape{64}, 3), DType::f32));
    cases.push_back(trailing(RowKind::moments, make(Shape{3, 2, 33}, 1), 2, make(Shape{2, 33}, 2), nullptr, DType::bf16));
    cases.push_back(trailing(RowKind::moments, make(Shape{3, 4, 16}, 1), 2, make(Shape{16}, 2), make(Shape{4, 16}, 3), DType::none));
    cases.push_back(trailing(RowKind::moments, make(Shape{3, 33}, 1), 1, make(Shape{}, 2), make(Shape{1}, 3), DType::f32));
    cases.push_back(
        trailing(RowKind::squares, make(Shape{3, 40}, 1), 1, random_tensor(DType::f64, Shape{40}, -3, 3, 2), nullptr, DType::none));
    cases.push_back(
        trailing(RowKind::squares, make(Shape{3, 40}, 1), 1, random_tensor(DType::bf16, Shape{40}, -3, 3, 2), nullptr, DType::none));
    if (dtype == DType::f32)
      cases.push_back(trailing(RowKind::moments, make(Shape{2, 20000}, 1), 1, make(Shape{20000}, 2), make(Shape{20000}, 3), DType::f32));
    if (dtype == DType::f16)
      cases.push_back(trailing(RowKind::moments, make(Shape{2, 5, 4000}, 1), 2, make(Shape{4000}, 2), make(Shape{5, 4000}, 3), DType::f32));
  }
  cases.push_back(trailing(RowKind::moments, random_tensor(DType::f32, Shape{3, 0}, 0, 1, 1), 1,
                           random_tensor(DType::f32, Shape{0}, 0, 1, 1), nullptr, DType::f32));
  // Far from zero the mean keeps its digits.
  cases.push_back(trailing(RowKind::moments, random_tensor(DType::f32, Shape{3, 200}, 1e6, 1e6 + 10, 1), 1,
                           random_tensor(DType::f32, Shape{200}, 1, 2, 1), nullptr, DType::f32));
  // The computation is in f64 where that is requested.
  cases.push_back(trailing(RowKind::squares, random_tensor(DType::f32, Shape{3, 65}, -1e25, 1e25, 1), 1,
                           random_tensor(DType::f32, Shape{65}, 1, 2, 1), nullptr, DType::none));
  static_cast<TrailingLaunches&>(*cases.back().launches).shape.working = HEDDLE_F64;
  cases.back().attributes.back().value = int64_t{11};
  cases.back().ulps = 0.5;
  run_on_grid(std::move(cases));
}

// For f32 each element is accurate to its own last digits, however small the difference: the mean is more accurate than any difference from
// it. A row for a thread, a warp and a block, strided rows, and reductions of rows, columns and parts.
TEST(RowSource, SmallDifferencesFromTheMeanKeepTheirDigits) {
  std::vector<GridCase> cases;
  const auto add = [&](const Shape& shape, const std::vector<int64_t>& axes, double low, double high, bool varies = false) {
    for (const RowKind kind : {RowKind::moments, RowKind::moments_beside}) {
      cases.push_back(over(kind, random_tensor(DType::f32, shape, low, high, 11), axes, varies, 1e-9));
      std::fill(cases.back().expected[0].scale.begin(), cases.back().expected[0].scale.end(), 0);
    }
  };
  for (const int64_t n : {2, 15, 17, 64, 257}) add(Shape{n < 64 ? 200 : 20, n}, {1}, -4, 4);
  for (const auto& [low, high] : {std::pair(-1e-3, 4e3), std::pair(1000.0, 1010.0)}) add(Shape{50, 33}, {1}, low, high);
  add(Shape{2, 9000}, {1}, -4, 4);
  add(Shape{2, 20000}, {1}, -4, 4);
  add(Shape{7, 21, 15}, {1}, -4, 4);
  add(Shape{3, 65, 14}, {1}, -4, 4);
  add(Shape{5, 9, 7, 11}, {0, 2}, -4, 4);
  add(Shape{5, 9, 7, 11}, {0, 2}, -4, 4, true);
  run_on_grid(std::move(cases));
}

// The statistics of a row of 16-bit floats are f32, with the accuracy of f32.
TEST(RowSource, TheInverseDeviationIsRoundedOnce) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const int64_t n : {3, 17, 100, 257})
      for (const auto& [low, high] : {std::pair(-4.0, 4.0), std::pair(1000.0, 1010.0)}) {
        cases.push_back(trailing(RowKind::moments, random_tensor(dtype, Shape{150, n}, low, high, 5), 1,
                                 random_tensor(dtype, Shape{}, 1, 2, 2), nullptr, DType::f32));
        cases.back().ulps = 1;
        for (Number& scale : cases.back().expected[0].scale) scale *= 4;  // the elements as elsewhere
      }
  run_on_grid(std::move(cases));
}

GridCase grouped(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& bias, bool varies = false) {
  constexpr double epsilon = 1e-5;
  auto launches = std::make_unique<GroupLaunches>();
  launches->shape.kind = RowKind::moments;
  launches->groups = groups;
  launches->epsilon = epsilon;
  const int64_t channels = x->shape[1], of_group = channels / (groups > 0 ? groups : channels);
  const int64_t spatial = x->shape.element_count() / (x->shape[0] * channels);
  Numbers numbers = conformance::numbers_of(*x);
  numbers.shape = Shape{x->shape[0] * channels / of_group, of_group * spatial};
  Numbers y = along(numbers, 2, [](const Elements& line) { return centred(line, epsilon, false); });
  const Numbers factors = conformance::numbers_of(*scale), more = conformance::numbers_of(*bias);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / spatial % channels);
    y.values[i] = y.values[i] * factors.values[channel] + more.values[channel];
    y.scale[i] = y.scale[i] * std::fabs(factors.values[channel]) + std::fabs(more.values[channel]);
  }
  y.shape = x->shape;
  GridCase one;
  one.name = "groups of " + std::string(to_string(x->dtype)) + x->shape.text() + " " + std::to_string(groups);
  one.launches = std::move(launches);
  one.inputs = {x, scale, bias};
  one.expected = {y};
  one.varies = varies;
  one.host = groups > 0 ? "GroupNormalization" : "InstanceNormalization";
  one.attributes = {{"epsilon", epsilon}};
  if (groups > 0) one.attributes.push_back({"num_groups", groups});
  if (x->dtype == DType::f64) one.host_ulps = 64;
  return one;
}

TEST(RowSource, GroupAndInstanceNormalization) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Shape& shape : {Shape{2, 6, 4, 8}, Shape{2, 6, 7, 7}, Shape{3, 6}, Shape{1, 6, 3000}, Shape{2, 6, 5, 1001}}) {
      const Tensor x = random_tensor(dtype, shape, -3, 5, 1), scale = random_tensor(dtype, Shape{6}, -2, 2, 2);
      const Tensor bias = random_tensor(dtype, Shape{6}, -2, 2, 3);
      for (const int64_t groups : {0, 1, 2}) cases.push_back(grouped(x, groups, scale, bias, groups == 2 && shape.rank() == 4));
    }
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test

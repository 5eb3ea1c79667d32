// Generated losses and normalisations by channel, on the emulated grid, compared with plain loops in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "cuda/lines.h"
#include "generate/operators/channel_launches.h"
#include "generate/operators/loss_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// ---------------------------------------------------------------- losses

struct LossCase {
  bool softmax = false;
  LossReduction reduction = LossReduction::mean;
  bool weighted = false, ignores = false, logarithms = false, varies = false;
};

GridCase loss_of(const Tensor& x, DType labels_dtype, const LossCase& what) {
  auto launches = std::make_unique<LossLaunches>();
  launches->softmax = what.softmax;
  launches->reduction = what.reduction;
  launches->has_ignored = what.ignores;
  launches->ignored = 1;
  const Numbers scores = conformance::numbers_of(*x);
  const int64_t classes = x->shape[1], positions = x->shape.element_count() / classes;
  Shape shape;
  for (int i = 0; i < x->shape.rank(); ++i)
    if (i != 1) shape.push_back(x->shape[i]);
  const Tensor labels = random_tensor(labels_dtype, shape, 0, static_cast<double>(classes), 9);
  const Tensor weights = what.weighted ? random_tensor(x->dtype, Shape{classes}, 0.5, 2, 10) : nullptr;
  const Numbers of_labels = conformance::numbers_of(*labels), of_weights = weights ? conformance::numbers_of(*weights) : Numbers();
  const int64_t inner = x->shape[0] > 0 ? positions / x->shape[0] : 1;
  Numbers logarithms = scores, losses = conformance::zeros(x->dtype, shape);
  logarithms.scale.assign(scores.values.size(), 0);
  losses.scale = losses.values;
  Scaled sum;
  Number weight_sum = 0;
  for (int64_t i = 0; i < positions; ++i) {
    const auto at = [&](int64_t c) { return static_cast<size_t>((i / inner * classes + c) * inner + i % inner); };
    Number most = -HUGE_VALL, exponentials = 0;
    for (int64_t c = 0; c < classes; ++c) most = std::max(most, scores.values[at(c)]);
    for (int64_t c = 0; c < classes; ++c) exponentials += std::exp(scores.values[at(c)] - most);
    const Number rest = std::log(exponentials);
    for (int64_t c = 0; c < classes; ++c) {
      logarithms.values[at(c)] -= most + rest;
      logarithms.scale[at(c)] = std::fabs(scores.values[at(c)] - most) + rest + 1;
    }
    const auto label = static_cast<int64_t>(of_labels.values[static_cast<size_t>(i)]);
    const bool counts = !(what.ignores && label == 1);
    const Number weight = !counts ? 0 : weights ? of_weights.values[static_cast<size_t>(label)] : 1;
    const Number loss = what.softmax ? -logarithms.values[at(label)] : -scores.values[at(label)];
    const Number scale = what.softmax ? logarithms.scale[at(label)] : std::fabs(loss);
    losses.values[static_cast<size_t>(i)] = counts ? weight * loss : 0;
    losses.scale[static_cast<size_t>(i)] = weight * scale;
    sum.value += losses.values[static_cast<size_t>(i)];
    sum.scale += weight * scale;
    weight_sum += weight;
  }
  GridCase one;
  one.name = std::string(what.softmax ? "cross entropy" : "likelihood") + " of " + to_string(x->dtype) + x->shape.text() + " by " +
             std::to_string(static_cast<int>(what.reduction));
  one.launches = std::move(launches);
  one.inputs = {x, labels, weights};
  Numbers total = conformance::zeros(x->dtype, Shape{});
  const Number divisor = what.reduction == LossReduction::mean ? weight_sum : 1;
  total.values = {sum.value / divisor};
  total.scale = {sum.scale / divisor};
  one.expected = {what.reduction == LossReduction::none ? losses : total};
  if (what.logarithms) one.expected.push_back(logarithms);
  one.varies = what.varies;
  one.host = what.softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss";
  one.attributes = {{"reduction", std::string(std::array{"none", "mean", "sum"}[static_cast<size_t>(what.reduction)])}};
  if (what.ignores) one.attributes.push_back({"ignore_index", int64_t{1}});
  return one;
}

TEST(LossSource, LikelihoodAndCrossEntropy) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const LossReduction reduction : {LossReduction::none, LossReduction::mean, LossReduction::sum})
      for (const bool softmax : {false, true}) {
        cases.push_back(
            loss_of(random_tensor(dtype, Shape{33, 10}, -4, 4, 1), DType::i64, {softmax, reduction, true, true, softmax, false}));
        cases.push_back(
            loss_of(random_tensor(dtype, Shape{2, 7, 5, 3}, -4, 4, 2), DType::i32, {softmax, reduction, false, false, false, false}));
        cases.push_back(
            loss_of(random_tensor(dtype, Shape{3, 5, 2}, -4, 4, 3), DType::i64, {softmax, reduction, true, false, softmax, true}));
      }
  cases.push_back(
      loss_of(random_tensor(DType::f32, Shape{5001, 3}, -4, 4, 4), DType::i64, {true, LossReduction::mean, true, true, true, false}));
  cases.push_back(
      loss_of(random_tensor(DType::f32, Shape{3, 2000}, -4, 4, 4), DType::i64, {true, LossReduction::sum, false, false, true, false}));
  cases.push_back(
      loss_of(random_tensor(DType::f32, Shape{0, 3}, -4, 4, 4), DType::i64, {true, LossReduction::mean, false, false, false, false}));
  cases.push_back(
      loss_of(random_tensor(DType::f32, Shape{0, 3}, -4, 4, 4), DType::i64, {false, LossReduction::sum, false, false, false, false}));
  run_on_grid(std::move(cases));
}

TEST(LossSource, ALabelThatNamesNoClassGivesNaN) {
  std::vector<GridCase> cases;
  for (const LossReduction reduction : {LossReduction::none, LossReduction::mean}) {
    GridCase one = loss_of(random_tensor(DType::f32, Shape{4, 3}, -4, 4, 1), DType::i64, {true, reduction, true, false, false, false});
    Numbers labels = conformance::numbers_of(*one.inputs[1]);
    labels.values[1] = 3;
    labels.values[2] = -1;
    one.inputs[1] = conformance::blob_of(labels);
    one.host.clear();  // it refuses
    Elements& losses = one.expected[0].values;
    for (size_t i = 0; i < losses.size(); ++i)
      if (losses.size() == 1 || i == 1 || i == 2) losses[i] = std::nanl("");
    cases.push_back(std::move(one));
  }
  run_on_grid(std::move(cases));
}

// ---------------------------------------------------------------- by channel

GridCase batch(const Tensor& x, DType scales, DType statistics, bool varies = false) {
  constexpr double epsilon = 1e-5;
  auto launches = std::make_unique<BatchLaunches>();
  launches->epsilon = epsilon;
  const int64_t channels = x->shape.rank() < 2 ? 1 : x->shape[1];
  const Shape of_channel{channels};
  GridCase one;
  one.name = "batch normalisation of " + std::string(to_string(x->dtype)) + x->shape.text();
  one.launches = std::move(launches);
  one.inputs = {x, random_tensor(scales, of_channel, -2, 2, 2), random_tensor(scales, of_channel, -2, 2, 3),
                random_tensor(statistics, of_channel, -2, 2, 4), random_tensor(statistics, of_channel, 0.25, 2, 5)};
  std::vector<Numbers> parameters;
  for (size_t i = 1; i < 5; ++i) parameters.push_back(conformance::numbers_of(*one.inputs[i]));
  Numbers y = conformance::numbers_of(*x);
  y.scale = y.values;
  for (int64_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    const size_t c = x->shape.rank() < 2 ? 0 : static_cast<size_t>(conformance::position_of(i, x->shape)[1]);
    const Number factor = parameters[0].values[c] / std::sqrt(parameters[3].values[c] + epsilon), bias = parameters[1].values[c];
    y.values[at] = (y.values[at] - parameters[2].values[c]) * factor;
    y.scale[at] = std::fabs(y.values[at]) + std::fabs(bias);
    y.values[at] += bias;
  }
  one.expected = {y};
  one.varies = varies;
  one.host = "BatchNormalization";
  if (x->dtype == DType::f64) one.host_ulps = 16;  // it multiplies the mean by the factor, which loses digits
  one.attributes = {{"epsilon", epsilon}};
  return one;
}

TEST(ChannelSource, BatchNormalization) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds) {
    cases.push_back(batch(random_tensor(dtype, Shape{2, 5, 4, 8}, -4, 4, 1), dtype, dtype));
    cases.push_back(batch(random_tensor(dtype, Shape{2, 8, 7, 7}, -4, 4, 1), DType::bf16, DType::f32));
    cases.push_back(batch(random_tensor(dtype, Shape{3, 33}, -4, 4, 1), dtype, dtype));
    cases.push_back(batch(random_tensor(dtype, Shape{7}, -4, 4, 1), dtype, dtype));
    cases.push_back(batch(random_tensor(dtype, Shape{1, 3, 1025}, -4, 4, 1), dtype, dtype, true));
  }
  heddle_layout last = {};
  last.rank = 4;
  for (int i = 0; i < 4; ++i) last.order[i] = static_cast<uint8_t>(std::array{0, 2, 3, 1}[static_cast<size_t>(i)]);
  for (const int64_t channels : {8, 5}) {
    cases.push_back(batch(random_tensor(DType::f32, Shape{2, channels, 3, 5}, -4, 4, 1), DType::f32, DType::f32));
    cases.back().layout = last;
    cases.back().inputs[0] = conformance::in_layout(cases.back().inputs[0], last);
  }
  run_on_grid(std::move(cases));
}

GridCase local(const Tensor& x, int64_t size, double alpha, double beta, double bias) {
  auto launches = std::make_unique<LocalLaunches>();
  launches->size = size;
  launches->alpha = alpha;
  launches->beta = beta;
  launches->bias = bias;
  GridCase one;
  one.name = "LRN of " + std::string(to_string(x->dtype)) + x->shape.text() + " with " + std::to_string(size);
  one.launches = std::move(launches);
  one.inputs = {x};
  const Numbers numbers = conformance::numbers_of(*x);
  Numbers y = numbers;
  for (int64_t i = 0; i < y.size(); ++i) {
    Ints position = conformance::position_of(i, x->shape);
    const int64_t channel = position[1];
    Number sum = 0;
    for (int64_t c = std::max<int64_t>(0, channel - (size - 1) / 2); c <= std::min(x->shape[1] - 1, channel + size / 2); ++c) {
      position[1] = c;
      const Number n = numbers.values[static_cast<size_t>(conformance::flat_of(position, x->shape))];
      sum += n * n;
    }
    y.values[static_cast<size_t>(i)] /= std::pow(bias + alpha / static_cast<double>(size) * sum, static_cast<Number>(beta));
  }
  one.expected = {y};
  one.host = "LRN";
  one.attributes = {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}};
  return one;
}

TEST(ChannelSource, LocalResponseNormalization) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const int64_t size : {1, 2, 3, 5, 20})
      cases.push_back(local(random_tensor(dtype, Shape{2, 7, 3, 5}, -4, 4, 1), size, 0.5, 0.75, 1.5));
  cases.push_back(local(random_tensor(DType::f32, Shape{2, 65}, -4, 4, 1), 5, 1e-4, 0.5, 1));
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test

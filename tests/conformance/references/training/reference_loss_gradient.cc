// Gradients of losses, and of their means.
#include <cmath>

#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_loss_gradient {
namespace {

bool counts(const Call& call, int64_t label) {
  return !(call.given("ignore_index") && label == call.i("ignore_index", 0));
}

// Calls f(the position's label, or -1 where it does not count; weight * dloss; the place of the scores' class c).
void each_position(const Call& call, const std::function<void(int64_t, Number, const std::function<size_t(int64_t)>&)>& f) {
  const Numbers &labels = call[1], &dloss = call[2];
  const int64_t classes = call[0].shape[1], step = labels.size() / std::max<int64_t>(1, call[0].shape[0]);
  for (int64_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<int64_t>(labels.values[static_cast<size_t>(i)]);
    const Number here = dloss.values[dloss.shape.rank() == 0 ? 0 : static_cast<size_t>(i)];
    const auto at = [&](int64_t c) { return static_cast<size_t>((i / step * classes + c) * step + i % step); };
    if (!counts(call, label))
      f(-1, 0, at);
    else
      f(label, here * (call.has(3) ? call[3].values[static_cast<size_t>(label)] : 1), at);
  }
}

std::vector<Numbers> negative_log_likelihood_gradient(const Call& call) {
  Numbers dx = zeros(call[0].dtype, call[0].shape);
  each_position(call, [&](int64_t label, Number factor, const auto& at) {
    if (label >= 0) dx.values[at(label)] = -factor;
  });
  return {dx};
}

std::vector<Numbers> cross_entropy_gradient(const Call& call) {
  const Numbers& x = call[0];
  Numbers dx = zeros(x.dtype, x.shape);
  dx.scale = dx.values;
  const int64_t classes = x.shape[1];
  each_position(call, [&](int64_t label, Number factor, const auto& at) {
    if (label < 0) return;
    Number largest = -HUGE_VALL, sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const Number score = x.values[at(c)];
      largest = std::isnan(score) || score > largest ? score : largest;
    }
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x.values[at(c)] - largest);
    for (int64_t c = 0; c < classes; ++c) {
      const Number difference = x.values[at(c)] - largest, probability = std::exp(difference) / sum;
      dx.values[at(c)] = (probability - (c == label ? 1 : 0)) * factor;
      // The absolute error of the exponent is the relative error of the exponential. In f64 the logarithm of the sum contributes to it,
      // too.
      const Number exponent = x.dtype == DType::f64 ? std::fabs(x.values[at(c)]) + std::fabs(largest) : std::fabs(difference);
      const Number of_sum = x.dtype == DType::f64 ? walk(static_cast<size_t>(classes)) : 1;
      const Number scale = probability == 0 ? 0 : probability * (1 + exponent + of_sum);
      dx.scale[at(c)] = once_rounded(x.dtype, std::fabs(factor) * (scale + (c == label ? 1 : 0)));
    }
  });
  return {dx};
}

std::vector<Numbers> label_mean_gradient(const Call& call) {
  Number sum = 0;
  for (const Number n : call[1].values) {
    const auto label = static_cast<int64_t>(n);
    if (counts(call, label)) sum += call.has(2) ? call[2].values[static_cast<size_t>(label)] : 1;
  }
  Numbers dsum = zeros(call[0].dtype, {});
  dsum.values[0] = call[0].values[0] / sum;
  const Number error = dsum.dtype == DType::f64 && call.has(2) ? walk(call[1].values.size()) : 1;
  dsum.scale = {once_rounded(dsum.dtype, std::fabs(dsum.values[0]) * error)};
  return {dsum};
}

std::vector<Case> loss_gradient_cases() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& images, const std::string& classes, const std::string& behind,
                       const std::string& more) {
    const std::string separator = behind.empty() ? "" : ",", positions = "[" + images + separator + behind + "]";
    const std::string scores = "T[" + images + "," + classes + separator + behind + "] = -9..0, U" + positions + " = 0.." + classes;
    cases.push_back({kind, scores + ", T[] = 0.75" + more});
    cases.push_back({kind, scores + ", T" + positions + more});
  };
  for (const char* classes : {"1", "3", "8", "17", "33", "65"}) {
    const std::string weights = ", T[" + std::string(classes) + "] = 0.25..2";
    add(Kind::odd, "7", classes, "", "");
    add(Kind::odd, "5", classes, "", weights);
    add(Kind::strided, "2", classes, "5,7", weights + "; ignore_index=2");
  }
  add(Kind::strided, "3", "5", "17", "; ignore_index=0");
  add(Kind::strided, "2", "3", "129", "");
  add(Kind::rank, "2", "3", "1,2,1,2,1,2", "");
  add(Kind::empty, "0", "3", "", "");
  add(Kind::empty, "2", "3", "0", ", T[3]");
  add(Kind::large, "301", "257", "", ", T[257] = 0.25..2");
  cases.push_back({Kind::large, "f32[3,7,161,167], i64[3,161,167] = 0..7, f32[3,161,167]; ignore_index=3"});
  cases.push_back({Kind::large, "f32[177003,3], i64[177003] = 0..2, f32[] = 0.25"});
  cases.push_back({Kind::strided, "T[3,5,7] = -300..300, U[3,7] = 0..5, T[] = 1"});
  cases.push_back({Kind::odd, "T[1,1], U[1] = 0, T[] = 1"});
  cases.push_back({Kind::odd, "T[3,2], U[3] = 1, T[] = inf; ignore_index=1"});
  cases.push_back({Kind::odd, "T[4,2] = -1 -2 nan nan -3 -4 -5 -6, U[4] = 0 -100 1 0, T[4] = 1 1 nan inf; ignore_index=-100"});
  cases.push_back({Kind::strided, "T[1,2,3] = -1 nan -3 -4 nan -6, U[1,3] = 0 -100 1, T[] = 1; ignore_index=-100"});
  return cases;
}

Row loss_gradient(const char* type, Reference reference, double ulps) {
  return {.type = type,
          .reference = std::move(reference),
          .cases = loss_gradient_cases(),
          .ulps = ulps,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a label for each position, a weight for each class"}},
          .signed_zeros = false};
}

Row label_mean() {
  std::vector<Case> cases = {{Kind::odd, "T[] = 3, U[1] = 0"},
                             {Kind::odd, "T[] = 3, U[7] = 0..3, T[3] = 0.25..2"},
                             {Kind::odd, "T[] = -2, U[7] = 0..3; ignore_index=1"},
                             {Kind::odd, "T[] = -2, U[65] = 0..5, T[5] = 0.25..2; ignore_index=2"},
                             {Kind::odd, "T[] = 1, U[3] = 1; ignore_index=1"},
                             {Kind::odd, "T[] = 1, U[3] = -7 0 -7, T[1] = 3; ignore_index=-7"},
                             {Kind::odd, "T[] = nan, U[3] = 1"},
                             {Kind::empty, "T[] = 1, U[0]"},
                             {Kind::empty, "T[] = 1, U[2,0], T[3]"},
                             {Kind::rank, "T[] = 1, U[1,2,1,3,2,1,2,3] = 0..5, T[5] = 0.25..2"},
                             {Kind::large, "T[] = 1, U[513,257] = 0..5, T[5] = 0.25..2"}};
  cases.push_back({Kind::large, "f32[] = 1, i64[77003,3] = 0..5; ignore_index=3"});
  return {.type = "LabelMeanGradient",
          .reference = label_mean_gradient,
          .cases = cases,
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a scalar and labels"}, {Kind::strided, "labels are taken in order"}}};
}

}  // namespace
}  // namespace reference_loss_gradient

std::vector<Row> loss_gradient_rows() {
  using namespace reference_loss_gradient;
  return {loss_gradient("NegativeLogLikelihoodLossGradient", negative_log_likelihood_gradient, 0.5),
          loss_gradient("SoftmaxCrossEntropyLossGradient", cross_entropy_gradient, 3), label_mean()};
}

}  // namespace heddle::conformance

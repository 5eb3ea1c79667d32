// Losses, and updates of variables.
#include <cmath>

#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_training {
namespace {

// ---------------------------------------------------------------- losses

// Returns the error of sums of n terms, in units of the last place: f64 has nothing wider to add in.
Number error_of(DType dtype, int64_t n) {
  return dtype == DType::f64 ? walk(static_cast<size_t>(n)) : 1;
}

// Returns the logarithms of the probabilities of all classes, which are dimension 1.
Numbers log_softmax(const Numbers& scores) {
  Numbers y = scores;
  y.scale = y.values;
  const int64_t classes = scores.shape[1];
  int64_t step = 1;
  for (int axis = 2; axis < scores.shape.rank(); ++axis) step *= scores.shape[axis];
  for (int64_t i = 0; i < scores.size(); ++i) {
    if (i / step % classes != 0) continue;
    const auto at = [&](int64_t c) { return static_cast<size_t>(i + c * step); };
    Number largest = -HUGE_VALL, sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const Number score = scores.values[at(c)];
      largest = std::isnan(score) || score > largest ? score : largest;
    }
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(scores.values[at(c)] - largest);
    for (int64_t c = 0; c < classes; ++c) {
      const Number difference = scores.values[at(c)] - largest;
      y.values[at(c)] = difference - std::log(sum);
      // In f64 the result is the difference of the score and the logarithm of the sum of all exponentials, which are as large as the
      // scores.
      const Number terms = y.dtype == DType::f64 ? std::fabs(scores.values[at(c)]) + std::fabs(largest) : std::fabs(difference);
      y.scale[at(c)] = once_rounded(y.dtype, terms + std::max(error_of(y.dtype, classes), std::log(sum)));
    }
  }
  return y;
}

// Takes logarithms of probabilities with the scale of their errors, and returns the loss at each label's position, summed or averaged.
Numbers loss_of(const Call& call, const Numbers& logarithms) {
  const Numbers& labels = call[1];
  const int64_t classes = logarithms.shape[1], step = labels.size() / std::max<int64_t>(1, logarithms.shape[0]);
  Numbers losses = zeros(logarithms.dtype, labels.shape);
  losses.scale = losses.values;
  Number sum = 0, magnitude = 0, weights = 0;
  for (int64_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<int64_t>(labels.values[static_cast<size_t>(i)]);
    if (call.given("ignore_index") && label == call.i("ignore_index", 0)) continue;
    const auto at = static_cast<size_t>((i / step * classes + label) * step + i % step);
    const Number weight = call.has(2) ? call[2].values[static_cast<size_t>(label)] : 1;
    losses.values[static_cast<size_t>(i)] = -weight * logarithms.values[at];
    losses.scale[static_cast<size_t>(i)] = std::fabs(weight) * logarithms.scale[at];
    sum += losses.values[static_cast<size_t>(i)];
    magnitude += losses.scale[static_cast<size_t>(i)];
    weights += weight;
  }
  const std::string reduction = call.s("reduction", "mean");
  if (reduction == "none") return losses;
  const Number divisor = reduction == "sum" ? 1 : weights;
  Numbers reduced = zeros(logarithms.dtype, {});
  reduced.values[0] = sum / divisor;
  reduced.scale = {magnitude / std::fabs(divisor) * error_of(logarithms.dtype, labels.size())};
  return reduced;
}

std::vector<Numbers> negative_log_likelihood(const Call& call) {
  Numbers logarithms = call[0];
  for (const Number n : logarithms.values) logarithms.scale.push_back(once_rounded(logarithms.dtype, std::fabs(n)));
  return {loss_of(call, logarithms)};
}
std::vector<Numbers> cross_entropy(const Call& call) {
  const Numbers logarithms = log_softmax(call[0]);
  return {loss_of(call, logarithms), logarithms};
}

std::vector<Case> loss_cases() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& images, const std::string& classes, const std::string& behind,
                       const std::string& more) {
    const std::string separator = behind.empty() ? "" : ",";
    cases.push_back({kind, "T[" + images + "," + classes + separator + behind + "] = -9..0, U[" + images + separator + behind + "] = 0.." +
                               classes + more});
  };
  for (const char* reduction : {"mean", "sum", "none"}) {
    const std::string r = "; reduction=\"" + std::string(reduction) + "\"";
    for (const char* classes : {"1", "3", "8", "17", "33", "65"}) {
      add(Kind::odd, "7", classes, "", r);
      add(Kind::odd, "5", classes, "", ", T[" + std::string(classes) + "] = 0.25..2" + r);
      add(Kind::strided, "2", classes, "5,7", ", T[" + std::string(classes) + "] = 0.25..2" + r + ", ignore_index=2");
    }
    add(Kind::strided, "3", "5", "17", r + ", ignore_index=0");
    add(Kind::rank, "2", "3", "1,2,1,2,1,2", r);
    cases.push_back({Kind::strided, "T[3,5,7] = -300..300, U[3,7] = 0..5" + r});
    add(Kind::empty, "0", "3", "", r);
    add(Kind::empty, "2", "3", "0", ", T[3]" + r);
    add(Kind::large, "301", "257", "", ", T[257] = 0.25..2" + r);
    cases.push_back({Kind::large, "f32[3,7,61,67], i64[3,61,67] = 0..7" + r + ", ignore_index=3"});
    cases.push_back({Kind::large, "f32[77003,2], i64[77003] = 0..2" + r});
    // Only ignored labels, and labels that are no class.
    cases.push_back({Kind::odd, "T[3,2], U[3] = 1" + r + ", ignore_index=1"});
    cases.push_back({Kind::odd, "T[4,2] = -1 -2 nan nan -3 -4 -5 -6, U[4] = 0 -100 1 0" + r + ", ignore_index=-100"});
    cases.push_back({Kind::odd, "T[4,3] = -1 -2 0 -3 -inf -1 -0 -inf -inf inf 0 1, U[4] = 0 1 0 1, T[3] = 0.5 2 0" + r});
  }
  return cases;
}

// The difference from the largest score, the logarithm of the sum, their difference, and the product with the weight.
Row loss(const char* type, Reference reference) {
  return {.type = type,
          .reference = std::move(reference),
          .cases = loss_cases(),
          .ulps = 2,
          .without = {{Kind::broadcast, "a label for each position, a weight for each class"}}};
}

// ---------------------------------------------------------------- updates

// Returns calls with a variable and the value that updates it, followed by `more`.
std::vector<Case> updates(const std::string& more) {
  const auto call = [&](const std::string& x) { return "T" + x + ", T" + x + more; };
  std::vector<Case> cases = {{Kind::odd, call("[]")},         {Kind::odd, call("[7]")},     {Kind::odd, call("[3,5,17]")},
                             {Kind::empty, call("[0]")},      {Kind::empty, call("[3,0]")}, {Kind::rank, call("[1,2,1,3,2,1,2,3]")},
                             {Kind::large, call("[301,257]")}};
  cases.push_back({Kind::large, "f32[513,257], f32[513,257]" + more});
  if (more.empty()) cases.push_back({Kind::large, "i64[301,257], i64[301,257]"});
  for (const char* n : {"[1]", "[8]", "[16]", "[33]", "[64]", "[65]"}) cases.push_back({Kind::odd, call(n)});
  for (const char* dtype : {"f16", "bf16", "f32", "f64"})
    cases.push_back({Kind::odd, std::string(dtype) + "[7] = nan inf -inf inf 0 -0 1, " + dtype + "[7] = 1 inf inf 3 -0 -0 nan" + more});
  return cases;
}
const std::map<Kind, std::string> of_one_shape = {{Kind::broadcast, "a variable and its update have one shape"},
                                                  {Kind::strided, "it takes whole tensors"}};

// Returns the reference of an operator whose input `port` says whether it updates its first input at all.
Reference applied(size_t port, const Reference& updated) {
  return [=](const Call& call) { return call.has(port) && call[port].values[0] == 0 ? std::vector{call[0]} : updated(call); };
}
// Returns the cases, and some of them with the input `apply`.
std::vector<Case> with_apply(std::vector<Case> cases) {
  for (size_t i = 0; i < 3; ++i)
    for (const char* more : {", bool[] = 0", ", bool[] = 1"}) cases.push_back({cases[i].kind, cases[i].call + more});
  return cases;
}

// w - lr * g: the product and the difference may round.
Row sgd() {
  std::vector<Case> cases = updates(", U[] = 0.3125");
  for (const Case& more : updates(", U[1] = -1..1")) cases.push_back(more);
  return {.type = "SgdUpdate",
          .reference = applied(3,
                               [](const Call& c) {
                                 Numbers y = zeros(c[0].dtype, c[0].shape);
                                 for (size_t i = 0; i < y.values.size(); ++i) {
                                   const Number w = c[0].values[i], step = c[2].values[0] * c[1].values[i];
                                   y.values[i] = w - step;
                                   y.scale.push_back(once_rounded(y.dtype, std::fabs(w) + std::fabs(step)));
                                 }
                                 return std::vector{y};
                               }),
          .cases = with_apply(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = of_one_shape,
          .ulps_of = {{DType::f16, 0.5}, {DType::bf16, 0.5}}};  // computed in f32
}

Row assign() {
  return {.type = "Assign",
          .reference = applied(2, [](const Call& c) { return std::vector{c[1]}; }),
          .cases = with_apply(updates("")),
          .domain = "heddle",
          .without = of_one_shape};
}

// Integers wrap around.
Row accumulate() {
  std::vector<Case> cases = updates("");
  cases.push_back({Kind::odd, "i8[4] = 100 -100 127 -128, i8[4] = 100 -100 1 -1"});
  cases.push_back({Kind::odd, "u8[2] = 200 255, u8[2] = 100 1"});
  cases.push_back({Kind::odd, "i64[2] = 9007199254740993 9223372036854775807, i64[2] = 2 1"});
  cases.push_back({Kind::odd, "u64[2] = 18446744073709551615 9223372036854775809, u64[2] = 3 1"});
  return {.type = "AccumulateAdd",
          .reference = applied(2,
                               [](const Call& c) {
                                 return std::vector{elementwise(c, c[0].dtype, [](const std::vector<Number>& x) { return x[0] + x[1]; })};
                               }),
          .cases = with_apply(cases),
          .ulps = 0.5,
          .domain = "heddle",
          .without = of_one_shape};
}

Row step_increment() {
  const char* const one = "it has one element";
  return {
      .type = "StepIncrement",
      .reference = applied(
          1, [](const Call& c) { return std::vector{elementwise(c, DType::i64, [](const std::vector<Number>& x) { return x[0] + 1; })}; }),
      .cases = {{Kind::odd, "i64[] = 41, bool[] = 0"},
                {Kind::odd, "i64[1] = 41, bool[] = 1"},
                {Kind::odd, "i64[] = 41"},
                {Kind::odd, "i64[1] = -1"},
                {Kind::odd, "i64[] = 9007199254740993"},
                {Kind::odd, "i64[] = 9223372036854775807"},
                {Kind::rank, "i64[1,1,1,1,1,1,1,1] = 7"}},
      .domain = "heddle",
      .without = {{Kind::empty, one}, {Kind::broadcast, one}, {Kind::strided, one}, {Kind::large, one}}};
}

}  // namespace
}  // namespace reference_training

std::vector<Row> training_rows() {
  using namespace reference_training;
  return {loss("NegativeLogLikelihoodLoss", negative_log_likelihood),
          loss("SoftmaxCrossEntropyLoss", cross_entropy),
          sgd(),
          assign(),
          accumulate(),
          step_increment()};
}

}  // namespace heddle::conformance

// Normalisations of rows and lines: LayerNormalization, RMSNormalization, LpNormalization, MeanVarianceNormalization.
#include "conformance/computations/normalization_reference.h"

namespace heddle::conformance {
namespace reference_normalization {
namespace {

using Elements = std::vector<Number>;

// ---------------------------------------------------------------- LayerNormalization, RMSNormalization

// Returns the shape of the values that each row has once: the dimensions before the axis, then ones.
Shape shape_of_rows(const Call& call) {
  const Shape& shape = call[0].shape;
  const int64_t axis = positive_axis(call.i("axis", -1), shape.rank());
  Shape rows;
  for (int i = 0; i < shape.rank(); ++i) rows.push_back(i < axis ? shape[i] : 1);
  return rows;
}
std::vector<Elements> rows_of(const Call& call, const Shape& rows) {
  std::vector<Elements> all(static_cast<size_t>(rows.element_count()));
  for (int64_t i = 0; i < call[0].size(); ++i)
    all[static_cast<size_t>(i / (call[0].size() / rows.element_count()))].push_back(call[0].values[static_cast<size_t>(i)]);
  return all;
}
// Returns an element of a parameter that is broadcast to X.
Number parameter(const Call& call, size_t input, const Ints& position, Number otherwise) {
  return call.has(input) ? call[input].values[static_cast<size_t>(broadcast_flat(position, call[input].shape))] : otherwise;
}

// All dtypes are computed exactly, whatever stash_type is: it is the minimum precision of the first stage, and the dtype of statistics.
std::vector<Numbers> layer_normalization(const Call& call) {
  const Numbers& x = call[0];
  const Shape rows = shape_of_rows(call);
  const DType stash = onnx_dtypes().at(call.i("stash_type", 1));
  Numbers y = zeros_with_scale(x.dtype, x.shape), mean = zeros_with_scale(stash, rows), inverse = zeros(stash, rows);
  std::vector<Moments> moments;
  for (const Elements& row : rows_of(call, rows)) {
    const Moments m = moments_of(row, x.dtype);
    mean.values[moments.size()] = m.mean;
    mean.scale[moments.size()] = m.magnitude;
    inverse.values[moments.size()] = 1 / std::sqrt(m.variance + static_cast<Number>(call.f("epsilon", 1e-5)));
    moments.push_back(m);
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    const Ints position = position_of(i, x.shape);
    const auto at = static_cast<size_t>(i), row = static_cast<size_t>(broadcast_flat(position, rows));
    const Normalized n = centred(x.values[at], moments[row], 1 / inverse.values[row], x.dtype);
    store(y, at, scaled(n, parameter(call, 1, position, 1), parameter(call, 2, position, 0)));
  }
  if (x.size() == 0)  // the mean of nothing
    for (Numbers* statistic : {&mean, &inverse})
      std::fill(statistic->values.begin(), statistic->values.end(), std::numeric_limits<Number>::quiet_NaN());
  return {y, mean, inverse};
}

// The dtype of Y is that of X, as in ONNX's inference and its reference (its list of types gives that of scale).
std::vector<Numbers> rms_normalization(const Call& call) {
  const Numbers& x = call[0];
  const Shape rows = shape_of_rows(call);
  Numbers y = zeros_with_scale(x.dtype, x.shape);
  std::vector<Moments> moments;
  for (Elements row : rows_of(call, rows)) {
    for (Number& n : row) n *= n;
    moments.push_back(moments_of(row, x.dtype));
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    const Ints position = position_of(i, x.shape);
    const auto at = static_cast<size_t>(i);
    const Moments& m = moments[static_cast<size_t>(broadcast_flat(position, rows))];
    const Number value = x.values[at] / std::sqrt(m.mean + static_cast<Number>(call.f("epsilon", 1e-5)));
    store(y, at, scaled({value, std::fabs(value) * m.error}, parameter(call, 1, position, 1), 0));
  }
  return {y};
}

// ---------------------------------------------------------------- LpNormalization

std::vector<Numbers> lp_normalization(const Call& call) {
  const Numbers& x = call[0];
  const int64_t axis = positive_axis(call.i("axis", -1), x.shape.rank()), p = call.i("p", 2);
  Shape lines;
  for (int i = 0; i < x.shape.rank(); ++i) lines.push_back(i == axis ? 1 : x.shape[i]);
  Elements norm(static_cast<size_t>(lines.element_count()), 0);
  const auto line_of = [&](int64_t i) { return static_cast<size_t>(broadcast_flat(position_of(i, x.shape), lines)); };
  for (int64_t i = 0; i < x.size(); ++i) {
    const Number n = std::fabs(x.values[static_cast<size_t>(i)]);
    norm[line_of(i)] += p == 1 ? n : n * n;
  }
  Numbers y = zeros_with_scale(x.dtype, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const Number of_line = p == 1 ? norm[line_of(i)] : std::sqrt(norm[line_of(i)]);
    const Number value = of_line == 0 ? 0 : x.values[static_cast<size_t>(i)] / of_line;
    const Number error = x.dtype == DType::f64 ? walk(static_cast<size_t>(x.shape[static_cast<int>(axis)])) : 1;
    store(y, static_cast<size_t>(i), {value, std::fabs(value) * error});
  }
  return {y};
}

// ---------------------------------------------------------------- MeanVarianceNormalization

std::vector<Numbers> mean_variance_normalization(const Call& call) {
  const Numbers& x = call[0];
  Shape groups = x.shape;
  for (const int64_t axis : call.ints("axes", {0, 2, 3})) groups[static_cast<int>(positive_axis(axis, groups.rank()))] = 1;
  std::vector<Elements> elements(static_cast<size_t>(groups.element_count()));
  const auto group_of = [&](int64_t i) { return static_cast<size_t>(broadcast_flat(position_of(i, x.shape), groups)); };
  for (int64_t i = 0; i < x.size(); ++i) elements[group_of(i)].push_back(x.values[static_cast<size_t>(i)]);
  std::vector<Moments> moments;
  for (const Elements& group : elements) moments.push_back(moments_of(group, x.dtype));
  Numbers y = zeros_with_scale(x.dtype, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const Moments& m = moments[group_of(i)];
    // f64 is summed in f64.
    const Number terms = x.dtype == DType::f64 ? m.magnitude : 0;
    store(y, static_cast<size_t>(i), normalized(x.values[static_cast<size_t>(i)], m, std::sqrt(m.variance) + 1e-9L, terms));
  }
  return {y};
}

// ---------------------------------------------------------------- cases

// Returns rows of all lengths along the last axes, and axes before them. `call` writes one; `parameter` is the shape of the parameters, of
// trailing dimensions in "[...]".
std::vector<Case> of_rows(
    const std::function<std::string(const std::string& x, const std::string& parameter, const std::string& more)>& call) {
  std::vector<Case> cases = {{Kind::odd, call("[7]", "[7]", "")},
                             {Kind::odd, call("[3,5,17]", "[5,17]", "axis=1")},
                             {Kind::odd, call("[3,5,17]", "[3,5,17]", "axis=0, epsilon=0.25")},
                             {Kind::odd, call("[3,5,17] = 1000..1010", "[17]", "")},
                             {Kind::odd, call("[3,5,17] = -9..9", "[17]", "stash_type=16")},
                             {Kind::odd, call("[2,5] = 3 3 3 3 3 -0.5 -0.5 -0.5 -0.5 -0.5", "[5]", "")},
                             {Kind::odd, call("[5,4] = nan 1 2 3 inf 1 2 3 0 -0 0 0 -inf 0 0 0 1 2 3 5", "[4]", "epsilon=0.5")},
                             {Kind::empty, call("[0,5]", "[5]", "")},
                             {Kind::empty, call("[3,0]", "[0]", "")},
                             {Kind::broadcast, call("[2,3,17]", "[17]", "axis=1")},
                             {Kind::broadcast, call("[2,3,17]", "[1,17]", "axis=-2")},
                             {Kind::broadcast, call("[2,3,17]", "[1]", "axis=-2")},
                             {Kind::broadcast, call("[3,33]", "[]", "")},
                             {Kind::strided, call("[2,3,4,5]", "[4,5]", "axis=-2")},
                             {Kind::strided, call("[2,3,4,5]", "[3,4,5]", "axis=-3")},
                             {Kind::rank, call("[1,2,1,3,2,1,2,3]", "[2,1,2,3]", "axis=4")},
                             {Kind::rank, call("[2,1,2,1,2,3,1,2]", "[2]", "axis=-1")},
                             {Kind::large, call("[301,257]", "[257]", "")},
                             {Kind::large, call("[3,25787]", "[25787]", "")}};
  for (const char* n : {"1", "8", "16", "17", "33", "64", "65"})
    cases.push_back({Kind::odd, call("[5," + std::string(n) + "]", "[" + std::string(n) + "]", "")});
  return cases;
}
std::string behind(const std::string& attributes) {
  return attributes.empty() ? "" : "; " + attributes;
}

// f32 and f64 round the difference from the mean, the deviation, its product with it, with Scale and the sum with B. 16-bit floats are
// computed in f32 and rounded once.
const std::map<DType, double> halves = {{DType::f16, 1}, {DType::bf16, 1}};

Row layer() {
  std::vector<Case> cases = of_rows([](const std::string& x, const std::string& p, const std::string& more) {
    return "T" + x + ", T" + p + ", T" + p + " = -3..3" + behind(more);
  });
  cases.push_back({Kind::large, "f32[801,257], f32[257], f32[257]"});
  cases.push_back({Kind::odd, "T[3,5], T[5]"});
  cases.push_back({Kind::odd, "T[3,65], T[65], -; epsilon=0"});
  cases.push_back({Kind::broadcast, "T[3,5,7], T[5,7], T[7]; axis=1"});
  return {.type = "LayerNormalization", .reference = layer_normalization, .cases = cases, .ulps = 2.5, .ulps_of = halves};
}

Row rms() {
  std::vector<Case> cases =
      of_rows([](const std::string& x, const std::string& p, const std::string& more) { return "T" + x + ", U" + p + behind(more); });
  cases.push_back({Kind::large, "f32[801,257], f32[257]"});
  for (const char* stash : {"1", "10", "11"}) cases.push_back({Kind::odd, "T[3,5,17] = -9..9, U[17]; stash_type=" + std::string(stash)});
  // Their squares are beyond the range of f32.
  cases.push_back({Kind::odd, "f32[2,4] = 1e25 2e25 -1e25 3e25 1 2 3 4, f32[4]; stash_type=11"});
  return {.type = "RMSNormalization", .reference = rms_normalization, .cases = cases, .ulps = 2.5, .ulps_of = halves};
}

const std::map<Kind, std::string> no_broadcast = {{Kind::broadcast, "one input"}};

Row lp() {
  std::vector<Case> cases = {{Kind::odd, "T[7]"},
                             {Kind::odd, "T[3,5,17]"},
                             {Kind::odd, "T[3,5,17] = -9..9; p=1"},
                             {Kind::odd, "T[4,3] = 0 -0 0 nan 1 2 inf 1 2 -3 0 4"},
                             {Kind::strided, "T[3,4] = 0 nan inf -3 -0 1 1 0 0 2 2 4; axis=0, p=1"},
                             {Kind::empty, "T[0,3]"},
                             {Kind::empty, "T[3,0,2]; axis=1"},
                             {Kind::strided, "T[3,5,17]; axis=1"},
                             {Kind::strided, "T[3,5,17]; axis=-3, p=1"},
                             {Kind::strided, "T[65,3]; axis=0"},
                             {Kind::rank, "T[1,2,1,3,2,1,2,3]; axis=3"},
                             {Kind::rank, "T[2,1,2,1,2,3,1,2]; axis=-3, p=1"},
                             {Kind::large, "T[301,257]"},
                             {Kind::large, "T[301,257]; axis=0, p=1"}};
  for (const char* n : {"1", "8", "16", "33", "64"}) cases.push_back({Kind::odd, "T[3," + std::string(n) + "]; axis=1"});
  return {.type = "LpNormalization", .reference = lp_normalization, .cases = cases, .ulps = 1, .without = no_broadcast};
}

Row mean_variance() {
  std::vector<Case> cases = {{Kind::odd, "T[3,5,7,3]"},
                             {Kind::odd, "T[2,3,5,5] = 1000..1010"},
                             {Kind::odd, "T[3,5]; axes=[1]"},
                             {Kind::odd, "T[3,5] = 2; axes=[1]"},
                             {Kind::odd, "T[3,4] = nan 1 2 3 inf 1 2 3 0 -0 0 1; axes=[1]"},
                             {Kind::odd, "T[3,5,17]; axes=[]"},
                             {Kind::empty, "T[0,3]; axes=[1]"},
                             {Kind::empty, "T[2,0,3,3]"},
                             {Kind::empty, "T[2,3,0,3]"},
                             {Kind::strided, "T[33,5]; axes=[0]"},
                             {Kind::strided, "T[3,5,17]; axes=[-2]"},
                             {Kind::strided, "T[3,4,5,6]; axes=[-3,3]"},
                             {Kind::strided, "T[3,4,5,6]; axes=[0,2]"},
                             {Kind::rank, "T[1,2,1,3,2,1,2,3]; axes=[1,-1,4]"},
                             {Kind::rank, "T[2,1,2,3,2,1,2,2]; axes=[3]"},
                             {Kind::large, "T[13,3,31,65]"},
                             {Kind::large, "T[301,257]; axes=[1]"},
                             {Kind::large, "T[301,257]; axes=[0]"}};
  for (const char* n : {"1", "8", "16", "17", "33", "65"}) cases.push_back({Kind::odd, "T[3," + std::string(n) + "]; axes=[1]"});
  return {
      .type = "MeanVarianceNormalization", .reference = mean_variance_normalization, .cases = cases, .ulps = 1, .without = no_broadcast};
}

}  // namespace
}  // namespace reference_normalization

std::vector<Row> normalization_rows() {
  using namespace reference_normalization;
  return {layer(), rms(), lp(), mean_variance()};
}

}  // namespace heddle::conformance

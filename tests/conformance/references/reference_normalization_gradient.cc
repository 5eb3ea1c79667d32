// Gradients of normalisations: of rows, with one scale per column, and of channels.
#include "conformance/computations/normalization_reference.h"

namespace heddle::conformance {
namespace reference_normalization_gradient {
namespace {

using Elements = std::vector<Number>;

// Elements that were normalised together, and the values that belong to each of them.
struct Set {
  std::vector<size_t> at;  // their places
  Elements x, dy, scale;
  Number dmean = 0;  // further gradients that reach the mean and the variance
  Number dvariance = 0;

  void add(size_t i, Number x_here, Number dy_here, Number scale_here) {
    at.push_back(i);
    x.push_back(x_here);
    dy.push_back(dy_here);
    scale.push_back(scale_here);
  }
};

// The gradients of one set, with the magnitudes that their errors are relative to.
struct Gradients {
  std::vector<Normalized> dx, dscale, dbias;
};
// `centred`: normalised about the mean; otherwise by the mean of the squares alone.
Gradients gradients_of(const Set& set, Number epsilon, bool centred, DType dtype) {
  Elements x = set.x;
  if (!centred)
    for (Number& n : x) n *= n;
  const Moments m = moments_of(x, dtype);
  const Number mean = centred ? m.mean : 0, inverse = 1 / std::sqrt((centred ? m.variance : m.mean) + epsilon);
  const auto count = static_cast<Number>(x.size());
  Number sum = 0, sum_scale = 0, along = 0, along_scale = 0;
  Elements unit, unit_scale;
  for (size_t i = 0; i < x.size(); ++i) {
    const Number h = set.dy[i] * set.scale[i];
    unit.push_back((set.x[i] - mean) * inverse);
    unit_scale.push_back(std::fabs(unit[i]) + (centred ? m.deviation * inverse : 0));
    sum += h / count;
    sum_scale += std::fabs(h) / count;
    along += h * unit[i] / count;
    along_scale += std::fabs(h) * unit_scale[i] / count;
  }
  Gradients g;
  for (size_t i = 0; i < x.size(); ++i) {
    const Number h = set.dy[i] * set.scale[i], of_mean = centred ? sum : 0, of_mean_scale = centred ? sum_scale * m.error : 0;
    const Number besides = set.dmean / count + 2 * set.dvariance * (set.x[i] - mean) / count;
    const Number besides_scale = (std::fabs(set.dmean) + 2 * std::fabs(set.dvariance) * unit_scale[i] / inverse) / count;
    g.dx.push_back({inverse * (h - of_mean - unit[i] * along) + besides,
                    inverse * (std::fabs(h) * m.error + of_mean_scale + unit_scale[i] * along_scale * m.error) + besides_scale * m.error});
    g.dscale.push_back({set.dy[i] * unit[i], std::fabs(set.dy[i]) * unit_scale[i] * m.error});
    g.dbias.push_back({set.dy[i], std::fabs(set.dy[i])});
  }
  return g;
}

// Sums in f64 have nothing wider to be added in; those in f32 are no better if they are stored in f64.
Number error_of_sums(DType computed, DType kept, size_t terms) {
  if (computed == DType::f64) return walk(terms);
  const bool is_half =
      computed != DType::f32;  // then the error is in units of f32, though those of the dtype, which are larger, are allowed
  return (is_half ? 4 : 1) * (kept == DType::f64 ? 0x1p29L : 1);
}
void add_to(Numbers& sums, size_t i, const Normalized& n, Number error) {
  sums.values[i] += n.value;
  sums.scale[i] += once_rounded(sums.dtype, n.scale * error);
}

// ---------------------------------------------------------------- rows

// Inputs: dY, X and scale; for LayerNormalization also the gradients of the outputs Mean and InvStdDev.
std::vector<Numbers> row_gradient(const Call& call, bool centred) {
  const Numbers& x = call[1];
  const auto axis = static_cast<int>(positive_axis(call.i("axis", -1), x.shape.rank()));
  size_t rows = 1;
  for (int i = 0; i < axis; ++i) rows *= static_cast<size_t>(x.shape[i]);
  const size_t columns = rows > 0 ? x.values.size() / rows : 0;
  const auto epsilon = static_cast<Number>(call.f("epsilon", 1e-5));
  Numbers dx = zeros_with_scale(x.dtype, x.shape), dscale = zeros_with_scale(call[2].dtype, call[2].shape), dbias = dscale;
  const Number error = error_of_sums(x.dtype, dscale.dtype, x.values.size() / std::max<size_t>(1, dscale.values.size()));
  const auto parameter_at = [&](size_t i) {
    return static_cast<size_t>(broadcast_flat(position_of(static_cast<int64_t>(i), x.shape), dscale.shape));
  };
  for (size_t row = 0; row < rows && columns > 0; ++row) {
    Set set;
    for (size_t i = row * columns; i < (row + 1) * columns; ++i)
      set.add(i, x.values[i], call[0].values[i], call[2].values[parameter_at(i)]);
    if (call.has(3)) set.dmean = call[3].values[row];
    if (call.has(4)) {  // the inverse has the derivative -inverse^3 / 2
      const Number variance = moments_of(set.x, x.dtype).variance + epsilon;
      set.dvariance = -call[4].values[row] / (2 * variance * std::sqrt(variance));
    }
    const Gradients g = gradients_of(set, epsilon, centred, x.dtype);
    for (size_t i = 0; i < set.at.size(); ++i) {
      store(dx, set.at[i], g.dx[i]);
      add_to(dscale, parameter_at(set.at[i]), g.dscale[i], error);
      add_to(dbias, parameter_at(set.at[i]), g.dbias[i], error);
    }
  }
  if (!centred) return {dx, dscale};
  return {dx, dscale, dbias};
}

std::vector<Case> row_cases(const std::function<std::string(const std::string& x, const std::string& parameter)>& call) {
  const auto with = [&](const std::string& x, const std::string& p, const std::string& more) {
    return call(x, p) + (more.empty() ? "" : "; " + more);
  };
  std::vector<Case> cases = {{Kind::odd, with("[1]", "[1]", "epsilon=0.25")},
                             {Kind::odd, with("[7]", "[7]", "")},
                             {Kind::odd, with("[3,5,17]", "[5,17]", "axis=1")},
                             {Kind::odd, with("[3,5,17]", "[3,5,17]", "axis=0, epsilon=0.25")},
                             {Kind::odd, with("[3,5,17] = 1000..1010", "[17]", "")},
                             {Kind::odd, with("[3,5,17] = -9..9", "[17]", "")},
                             {Kind::odd, with("[2,5] = 3 3 3 3 3 -0.5 -0.5 -0.5 -0.5 -0.5", "[5]", "")},
                             {Kind::odd, with("[4,4] = nan 1 2 3 0 -0 0 0 1 2 3 5 -inf 0 0 0", "[4]", "epsilon=0.5")},
                             {Kind::empty, with("[0,5]", "[5]", "")},
                             {Kind::empty, with("[3,0]", "[0]", "")},
                             {Kind::empty, with("[0,5]", "[1]", "")},
                             {Kind::broadcast, with("[2,3,17]", "[17]", "axis=1")},
                             {Kind::broadcast, with("[2,3,17]", "[1,17]", "axis=-2")},
                             {Kind::broadcast, with("[2,3,17]", "[1]", "axis=-2")},
                             {Kind::broadcast, with("[3,33]", "[]", "")},
                             {Kind::strided, with("[2,3,4,5]", "[4,5]", "axis=-2")},
                             {Kind::strided, with("[2,3,4,5]", "[3,4,5]", "axis=-3")},
                             {Kind::rank, with("[1,2,1,3,2,1,2,3]", "[2,1,2,3]", "axis=4")},
                             {Kind::rank, with("[2,1,2,1,2,3,1,2]", "[2]", "axis=-1")},
                             {Kind::large, with("[301,257]", "[257]", "")},
                             {Kind::large, with("[3,25787]", "[25787]", "")}};
  for (const char* n : {"8", "16", "17", "33", "64", "65"})
    cases.push_back({Kind::odd, with("[5," + std::string(n) + "]", "[" + std::string(n) + "]", "")});
  return cases;
}
// Returns the extents of a shape that may be followed by values.
std::string extents(const std::string& x) {
  return x.substr(0, x.find(']') + 1);
}

const std::map<DType, double> halves = {{DType::f16, 1}, {DType::bf16, 1}};

Row layer() {
  std::vector<Case> cases = row_cases([](const std::string& x, const std::string& p) { return "T" + extents(x) + ", T" + x + ", T" + p; });
  cases.push_back({Kind::large, "f32[801,257], f32[801,257], f32[257]"});
  cases.push_back({Kind::odd, "T[3,65], T[3,65], T[65]; epsilon=0"});
  cases.push_back({Kind::odd, "T[3,17], T[3,17], T[17], U[3,1], U[3,1]; epsilon=0.25"});
  cases.push_back({Kind::odd, "T[3,5,2], T[3,5,2], T[5,2], U[3,1,1]; axis=1"});
  cases.push_back({Kind::odd, "T[3,17], T[3,17], T[17], -, U[3,1]; epsilon=0.25"});
  return {.type = "LayerNormalizationGradient",
          .reference = [](const Call& call) { return row_gradient(call, true); },
          .cases = cases,
          .ulps = 4,
          .domain = "heddle",
          .ulps_of = halves,
          .signed_zeros = false};
}

Row rms() {
  std::vector<Case> cases = row_cases([](const std::string& x, const std::string& p) { return "T" + extents(x) + ", T" + x + ", U" + p; });
  cases.push_back({Kind::large, "f32[801,257], f32[801,257], f32[257]"});
  for (const char* stash : {"1", "10", "11", "16"})
    cases.push_back({Kind::odd, "T[3,5,17], T[3,5,17] = -9..9, U[17]; stash_type=" + std::string(stash)});
  return {.type = "RMSNormalizationGradient",
          .reference = [](const Call& call) { return row_gradient(call, false); },
          .cases = cases,
          .ulps = 4,
          .domain = "heddle",
          .ulps_of = halves,
          .signed_zeros = false};
}

// ---------------------------------------------------------------- channels

size_t channel_of(size_t i, const Shape& shape) {
  return shape.rank() > 1 ? static_cast<size_t>(position_of(static_cast<int64_t>(i), shape)[1]) : 0;
}

std::vector<Numbers> batch_gradient(const Call& call) {
  const Numbers& x = call[1];
  const auto epsilon = static_cast<Number>(call.f("epsilon", 1e-5));
  const bool training = call.i("training_mode", 0) != 0;
  Numbers dx = zeros_with_scale(x.dtype, x.shape), dscale = zeros_with_scale(call[2].dtype, call[2].shape), dbias = dscale;
  std::vector<Set> sets(dscale.values.size());
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t c = channel_of(i, x.shape);
    sets[c].add(i, x.values[i], call[0].values[i], call[2].values[c]);
  }
  for (size_t c = 0; c < sets.size(); ++c) {
    Set& set = sets[c];
    const Number error = error_of_sums(x.dtype, dscale.dtype, set.at.size());
    if (call.has(5)) set.dmean = call[5].values[c];
    if (call.has(6)) set.dvariance = call[6].values[c];
    if (training) {
      const Gradients g = gradients_of(set, epsilon, true, x.dtype);
      for (size_t i = 0; i < set.at.size(); ++i) {
        store(dx, set.at[i], g.dx[i]);
        add_to(dscale, c, g.dscale[i], error);
        add_to(dbias, c, g.dbias[i], error);
      }
      continue;
    }
    const Number mean = call[3].values[c], inverse = 1 / std::sqrt(call[4].values[c] + epsilon);
    for (size_t i = 0; i < set.at.size(); ++i) {
      const Number value = set.dy[i] * set.scale[i] * inverse, along = set.dy[i] * (set.x[i] - mean) * inverse;
      store(dx, set.at[i], {value, std::fabs(value)});
      add_to(dscale, c, {along, std::fabs(set.dy[i]) * (std::fabs(set.x[i]) + std::fabs(mean)) * inverse}, error);
      add_to(dbias, c, {set.dy[i], std::fabs(set.dy[i])}, error);
    }
  }
  return {dx, dscale, dbias};
}

std::vector<Numbers> group_gradient(const Call& call) {
  const Numbers& x = call[1];
  const auto epsilon = static_cast<Number>(call.f("epsilon", 1e-5));
  const int64_t channels = x.shape[1], given = call.i("num_groups", 0), groups = given > 0 ? given : channels;
  Numbers dx = zeros_with_scale(x.dtype, x.shape), dscale = zeros_with_scale(x.dtype, call[2].shape), dbias = dscale;
  const size_t elements = x.values.size() / static_cast<size_t>(std::max<int64_t>(1, x.shape[0] * groups));
  if (elements == 0) return {dx, dscale, dbias};
  const Number error = error_of_sums(x.dtype, x.dtype, x.values.size() / static_cast<size_t>(channels));
  for (size_t begin = 0; begin < x.values.size(); begin += elements) {
    Set set;
    for (size_t i = begin; i < begin + elements; ++i) set.add(i, x.values[i], call[0].values[i], call[2].values[channel_of(i, x.shape)]);
    const Gradients g = gradients_of(set, epsilon, true, x.dtype);
    for (size_t i = 0; i < elements; ++i) {
      store(dx, set.at[i], g.dx[i]);
      add_to(dscale, channel_of(set.at[i], x.shape), g.dscale[i], error);
      add_to(dbias, channel_of(set.at[i], x.shape), g.dbias[i], error);
    }
  }
  return {dx, dscale, dbias};
}

struct Image {
  Kind kind;
  std::string shape, channels;
};
const std::vector<Image>& images() {
  static const auto& all = *new std::vector<Image>{{Kind::odd, "[1,1,1]", "[1]"},
                                                   {Kind::odd, "[3,5]", "[5]"},
                                                   {Kind::odd, "[2,3,17]", "[3]"},
                                                   {Kind::odd, "[2,4,5,7]", "[4]"},
                                                   {Kind::odd, "[3,33,3,3]", "[33]"},
                                                   {Kind::odd, "[1,6,1,1]", "[6]"},
                                                   {Kind::odd, "[2,1,65]", "[1]"},
                                                   {Kind::odd, "[5,8,8]", "[8]"},
                                                   {Kind::odd, "[2,3,17] = 1000..1010", "[3]"},
                                                   {Kind::empty, "[0,4,3]", "[4]"},
                                                   {Kind::empty, "[0,4]", "[4]"},
                                                   {Kind::empty, "[2,4,0]", "[4]"},
                                                   {Kind::rank, "[2,4,1,2,1,2,3,1]", "[4]"},
                                                   {Kind::large, "[3,6,61,67]", "[6]"},
                                                   {Kind::large, "[257,300]", "[300]"},
                                                   {Kind::large, "[1,2,38700]", "[2]"}};
  return all;
}
const char* const whole_tensors = "parameters are one number a channel; images have no steps";
// Channels of numbers, separate from channels with special ones.
const char* const special = "[2,4,3] = nan 1 2 4 1 2 0 -0 0 3 3 3 1 2 -inf -1 0 1 1e-3 2e-3 0 -3 -3 -3";

Row batch() {
  std::vector<Case> cases;
  for (const Image& image : images()) {
    const std::string start = "T" + extents(image.shape) + ", T" + image.shape + ", T" + image.channels;
    cases.push_back({image.kind, start + ", T" + image.channels + ", T" + image.channels + " = 0.25..2"});
    cases.push_back({image.kind, start + "; epsilon=0.125, training_mode=1"});
  }
  cases.push_back({Kind::odd, "T[7], T[7], T[1], T[1], T[1] = 1"});
  cases.push_back({Kind::odd, "T[7], T[7], T[1]; training_mode=1"});
  cases.push_back({Kind::odd, "T[2,4,3], T" + std::string(special) + ", T[4]; epsilon=0.5, training_mode=1"});
  for (const char* x : {"[3,5]", "[2,5,17]"}) {
    const std::string start = "T" + std::string(x) + ", T" + x;
    cases.push_back({Kind::odd, start + ", U[5], f32[5], f32[5] = 0.25..2"});
    cases.push_back({Kind::odd, start + ", f32[5], U[5], U[5] = 0.25..2"});
    cases.push_back({Kind::odd, start + ", T[5], -, -, U[5], U[5]; epsilon=0.25, training_mode=1"});
    cases.push_back({Kind::odd, start + ", T[5], -, -, T[5]; epsilon=0.25, training_mode=1"});
    cases.push_back({Kind::odd, start + ", T[5], -, -, -, T[5]; epsilon=0.25, training_mode=1"});
  }
  cases.push_back({Kind::large, "f32[5,6,81,83], f32[5,6,81,83], f32[6], f32[6], f32[6] = 0.25..2"});
  cases.push_back({Kind::large, "f32[5,6,81,83], f32[5,6,81,83], f32[6]; training_mode=1"});
  cases.push_back({Kind::large, "f32[691,301], f32[691,301], f32[301]; training_mode=1"});
  cases.push_back({Kind::empty, "T[2,0,3], T[2,0,3], T[0]; training_mode=1"});
  return {.type = "BatchNormalizationGradient",
          .reference = batch_gradient,
          .cases = cases,
          .ulps = 4,
          .domain = "heddle",
          .without = {{Kind::broadcast, whole_tensors}, {Kind::strided, whole_tensors}},
          .ulps_of = halves,
          .signed_zeros = false};
}

Row group() {
  std::vector<Case> cases;
  for (const Image& image : images()) {
    const std::string start = "T" + extents(image.shape) + ", T" + image.shape + ", T" + image.channels;
    const int64_t channels = std::stoll(image.channels.substr(1));
    cases.push_back({image.kind, start + "; epsilon=0.125"});
    cases.push_back({image.kind, start + "; num_groups=1"});
    cases.push_back({image.kind, start + "; epsilon=0.125, num_groups=" + std::to_string(channels % 2 == 0 ? channels / 2 : channels)});
  }
  for (const char* stash : {"1", "10", "11", "16"})
    cases.push_back({Kind::odd, "T[2,6,5,3], T[2,6,5,3] = -9..9, T[6]; num_groups=3, stash_type=" + std::string(stash)});
  cases.push_back({Kind::large, "f32[5,6,81,83], f32[5,6,81,83], f32[6]; num_groups=3"});
  cases.push_back({Kind::odd, "T[2,4,3], T" + std::string(special) + ", T[4]; num_groups=2, epsilon=0.5"});
  cases.push_back({Kind::empty, "T[2,0,3], T[2,0,3], T[0]"});
  return {.type = "GroupNormalizationGradient",
          .reference = group_gradient,
          .cases = cases,
          .ulps = 4,
          .domain = "heddle",
          .without = {{Kind::broadcast, whole_tensors}, {Kind::strided, whole_tensors}},
          .ulps_of = halves,
          .signed_zeros = false};
}

}  // namespace
}  // namespace reference_normalization_gradient

std::vector<Row> normalization_gradient_rows() {
  using namespace reference_normalization_gradient;
  return {layer(), rms(), batch(), group()};
}

}  // namespace heddle::conformance

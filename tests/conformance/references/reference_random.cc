// Random operators, by docs/operators.md, "Random numbers". In a call of their own they have stream 0 and trip 0.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "conformance/computations/philox_reference.h"

namespace heddle::conformance {
namespace reference_random {
namespace {

DType output_dtype(const Call& call, DType otherwise) {
  return call.given("dtype") ? onnx_dtypes().at(call.i("dtype", 0)) : otherwise;
}

uint64_t bits_of(double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}
// For all but Dropout the attribute is a number: its bits as f64.
Randomness randomness(const Call& call) {
  return {call.given("seed") ? bits_of(call.f("seed", 0)) : call.seed, 0, call.step, 0};
}
constexpr uint64_t step_of_calls = 3;  // the step of the suite's calls

// ---------------------------------------------------------------- uniform and normal numbers

// Returns zeros of the shape and dtype of the call's output.
Numbers output_of(const Call& call) {
  if (!call.inputs.empty()) return zeros(output_dtype(call, call[0].dtype), call[0].shape);
  Shape shape;
  for (const int64_t extent : call.ints("shape")) shape.push_back(extent);
  return zeros(output_dtype(call, DType::f32), shape);
}
Number unit(const Randomness& random, DType dtype, size_t i) {
  return dtype == DType::f64 ? random.unit_53(i) : random.unit_24(i);
}

// Returns the largest number of the dtype below the bound, which is not tiny.
Number below(DType dtype, Number bound) {
  const Number near = rounded(dtype, bound);
  if (near < bound) return near;
  int exponent = 0;
  const Number mantissa = std::frexp(near, &exponent);
  const int digits = dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
  // The numbers just below a power of two are half as far apart as those above it.
  return near - std::ldexp(Number{1}, exponent - digits - (mantissa == 0.5L ? 1 : 0));
}

// low + (high - low) * u with all operations in f64, then rounded, to 16 bits through f32; a number that is rounded up to high becomes the
// number before it.
std::vector<Numbers> uniform(const Call& call) {
  const Randomness random = randomness(call);
  const double low = call.f("low", 0), high = call.f("high", 1);
  Numbers y = output_of(call);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double share = (high - low) * static_cast<double>(unit(random, y.dtype, i));
    y.values[i] = low + share;
    if (y.dtype != DType::f64) y.values[i] = rounded(y.dtype, rounded(DType::f32, y.values[i]));
    if (low < high && y.values[i] >= high) y.values[i] = below(y.dtype, high);
  }
  return {y};
}

// The method of Box and Muller: numbers 2k and 2k + 1 of [0, 1) become two normal ones.
std::vector<Numbers> normal(const Call& call) {
  const Randomness random = randomness(call);
  const Number mean = static_cast<Number>(call.f("mean", 0)), scale = static_cast<Number>(call.f("scale", 1));
  const Number full_turn = 2 * std::acos(Number{-1});
  Numbers y = output_of(call);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const Number u = unit(random, y.dtype, i / 2 * 2), v = unit(random, y.dtype, i / 2 * 2 + 1);
    const Number radius = std::sqrt(-2 * std::log(1 - u));
    y.values[i] = mean + scale * radius * (i % 2 == 0 ? std::cos(full_turn * v) : std::sin(full_turn * v));
    // Narrower dtypes are rounded once from f64. In f64 an angle of up to 2 pi is rounded, to half of 2^-50, then its sine by the radius.
    y.scale.push_back((std::fabs(mean) + std::fabs(scale) * radius) * (y.dtype == DType::f64 ? 8 : 1));
  }
  return {y};
}

// ---------------------------------------------------------------- Bernoulli, Multinomial, Dropout

std::vector<Numbers> bernoulli(const Call& call) {
  const Randomness random = randomness(call);
  Numbers y = zeros(output_dtype(call, call[0].dtype), call[0].shape);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] = random.unit_32(i) < call[0].values[i] ? 1 : 0;
  return {y};
}

// Returns the first class at which the sum of probabilities exceeds a number in [0, 1).
std::vector<Numbers> multinomial(const Call& call) {
  const Randomness random = randomness(call);
  const auto classes = static_cast<size_t>(call[0].shape[1]);
  const int64_t samples = call.i("sample_size", 1);
  Numbers y = zeros(output_dtype(call, DType::i32), {call[0].shape[0], samples});
  for (size_t i = 0; i < y.values.size(); ++i) {
    const Number* const logarithms = &call[0].values[i / static_cast<size_t>(samples) * classes];
    Number all = 0, sum = 0;
    for (size_t c = 0; c < classes; ++c) all += std::exp(logarithms[c]);
    size_t drawn = 0;
    while (drawn + 1 < classes && (sum += std::exp(logarithms[drawn])) <= random.unit_53(i) * all) ++drawn;
    y.values[i] = static_cast<Number>(drawn);
  }
  return {y};
}

std::vector<Numbers> dropout(const Call& call) {
  Numbers y = call[0], mask = zeros(DType::boolean, y.shape);
  const Number ratio = call.has(1) ? call[1].values[0] : 0.5L;
  const bool training = call.has(2) && call[2].values[0] != 0;
  const Randomness random{call.given("seed") ? static_cast<uint64_t>(call.i("seed", 0)) : call.seed, 0, call.step, 0};
  const Number threshold = training ? std::floor(std::ldexp(ratio, 32)) : 0;
  for (size_t i = 0; i < y.values.size(); ++i) {
    const bool kept = static_cast<Number>(random.word(i)) >= threshold;
    mask.values[i] = kept;
    y.values[i] = !kept ? 0 : training ? y.values[i] / (1 - ratio) : y.values[i];
  }
  return {y, mask};
}

// ---------------------------------------------------------------- cases

const char* const any_element = "every element is drawn by its number";

struct Shaped {
  Kind kind;
  const char* shape;
};
const Shaped shapes[] = {{Kind::odd, "[]"},         {Kind::odd, "[1]"},   {Kind::odd, "[2]"},       {Kind::odd, "[3]"},
                         {Kind::odd, "[5]"},        {Kind::odd, "[7,3]"}, {Kind::odd, "[3,5,17]"},  {Kind::odd, "[64]"},
                         {Kind::odd, "[65]"},       {Kind::empty, "[0]"}, {Kind::empty, "[3,0,2]"}, {Kind::rank, "[1,2,1,3,2,1,2,3]"},
                         {Kind::large, "[401,257]"}};

// Returns a row with each dtype of real numbers; `options`: attributes of several ways to call it.
Row generator(const char* type, Reference reference, const std::vector<std::string>& options) {
  std::vector<Case> cases;
  for (const Shaped& one : shapes)
    for (const std::string& more : options) {
      if (one.kind == Kind::large && &more != options.data()) continue;  // once is enough
      for (const char* dtype : {"", ", dtype=1", ", dtype=10", ", dtype=11", ", dtype=16"})
        cases.push_back({one.kind, std::string("; shape=") + one.shape + more + dtype});
    }
  return {.type = type,
          .reference = std::move(reference),
          .cases = cases,
          .ulps = 0.5,
          .without = {{Kind::broadcast, "no input"}, {Kind::strided, any_element}}};
}
Row like(const char* type, Reference reference, const std::vector<std::string>& options) {
  std::vector<Case> cases;
  for (const std::string& more : options) {
    for (const Shaped& one : shapes) {
      if (one.kind == Kind::large && &more != options.data()) continue;
      const std::string t = one.kind == Kind::large ? "f32" : "T";
      for (const char* dtype : {"1", "10", "11", "16"}) cases.push_back({one.kind, t + one.shape + "; dtype=" + dtype + more});
    }
    for (const char* dtype : {"f16", "bf16", "f32", "f64"})
      cases.push_back({Kind::odd, dtype + std::string("[3,5,17]") + (more.empty() ? "" : "; " + more.substr(2))});
  }
  return {.type = type,
          .reference = std::move(reference),
          .cases = cases,
          .ulps = 0.5,
          .without = {{Kind::broadcast, "one input, of which the shape counts"}, {Kind::strided, any_element}}};
}

Row bernoulli_row() {
  std::vector<Case> cases;
  for (const Shaped& one : shapes) {
    cases.push_back({one.kind, std::string("T") + one.shape + " = 0..1"});
    cases.push_back({one.kind, std::string("f32") + one.shape + " = 0..1; dtype=7, seed=2.5"});
  }
  for (const int dtype : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16})
    cases.push_back({Kind::odd, "T[3,5,17] = 0..1; seed=-3.0, dtype=" + std::to_string(dtype)});
  cases.push_back({Kind::odd, "T[9] = 0 1 0 1 nan 0 1 -0 0.5; dtype=9"});
  // Probabilities equal to the number drawn, and to the next.
  const Randomness drawn{bits_of(2.5), 0, step_of_calls, 0};
  std::string list;
  for (uint64_t i = 0; i < 4; ++i)
    list += fmt::format(" {:.17g} {:.17g}", static_cast<double>(drawn.unit_32(2 * i)),
                        static_cast<double>(drawn.unit_32(2 * i + 1) + 0x1p-32L));
  cases.push_back({Kind::odd, "f64[8] =" + list + "; seed=2.5"});
  return {.type = "Bernoulli",
          .reference = bernoulli,
          .cases = cases,
          .without = {{Kind::broadcast, "one input"}, {Kind::strided, any_element}}};
}

Row multinomial_row() {
  std::vector<Case> cases;
  for (const char* more : {"", ", dtype=7", ", dtype=6, seed=2.5"})
    for (const char* samples : {"1", "2", "7", "33"}) {
      const std::string s = "; sample_size=" + std::string(samples) + more;
      for (const char* shape : {"[1,1]", "[3,2]", "[5,7]", "[2,65]"})
        cases.push_back({Kind::odd, "T" + std::string(shape) + " = -9..3" + s});
      cases.push_back({Kind::empty, "T[0,3]" + s});
    }
  cases.push_back({Kind::empty, "T[3,2]; sample_size=0"});
  cases.push_back({Kind::odd, "T[3,5]"});
  cases.push_back({Kind::odd, "T[2,4] = -inf 0 -inf 0 -1000 -1000 -inf -1000; sample_size=17"});
  cases.push_back({Kind::large, "T[301,257]; sample_size=9"});
  cases.push_back({Kind::large, "f32[7,3]; sample_size=11003"});
  const char* const matrix = "its input is a matrix";
  return {.type = "Multinomial",
          .reference = multinomial,
          .cases = cases,
          .without = {{Kind::broadcast, "one input"}, {Kind::strided, matrix}, {Kind::rank, matrix}}};
}

Row dropout_row() {
  std::vector<Case> cases;
  for (const Shaped& one : shapes) {
    cases.push_back({one.kind, std::string("T") + one.shape});
    cases.push_back({one.kind, std::string("T") + one.shape + ", T[] = 0.3, bool[] = 1"});
    cases.push_back({one.kind, std::string("T") + one.shape + ", f32[1] = 0.9, bool[1] = 1; seed=-7"});
  }
  for (const char* training : {"", ", bool[] = 0", ", bool[] = 1"}) {
    cases.push_back({Kind::odd, "T[3,5,17], U[] = 0.7" + std::string(training)});
    cases.push_back({Kind::odd, "T[7] = nan inf -inf 0 -0 1 2, U[] = 0" + std::string(training)});
  }
  cases.push_back({Kind::odd, "T[3,5,17], -, bool[] = 1"});
  cases.push_back({Kind::large, "f32[801,257]"});
  // Ratios equal to the number drawn, and to the next.
  const Randomness drawn{5, 0, step_of_calls, 0};
  for (const Number next : {0.0L, 0x1p-32L})
    cases.push_back({Kind::odd, fmt::format("f32[1], f64[] = {:.17g}, bool[] = 1; seed=5", static_cast<double>(drawn.unit_32(0) + next))});
  // A dropped element is 0 whatever it was.
  cases.push_back({Kind::odd, "T[8] = inf, U[] = 0.75, bool[] = 1; seed=5"});
  // 1 / (1 - ratio) and the product are rounded.
  return {.type = "Dropout",
          .reference = dropout,
          .cases = cases,
          .ulps = 1.5,
          .without = {{Kind::broadcast, "ratio and mode are one number each"}, {Kind::strided, any_element}}};
}

}  // namespace
}  // namespace reference_random

std::vector<Row> random_rows() {
  using namespace reference_random;
  const std::vector<std::string> of_uniform = {"", ", low=-1.0, high=3.0, seed=2.5", ", low=0.25, high=0.3125", ", low=-3.0, high=-1.1"},
                                 of_normal = {"", ", mean=3.0, scale=0.25, seed=2.5", ", mean=-1.0, scale=2.0"};
  return {generator("RandomUniform", uniform, of_uniform),
          like("RandomUniformLike", uniform, of_uniform),
          generator("RandomNormal", normal, of_normal),
          like("RandomNormalLike", normal, of_normal),
          bernoulli_row(),
          multinomial_row(),
          dropout_row()};
}

}  // namespace heddle::conformance

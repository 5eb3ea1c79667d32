// Operators that compute a mathematical function of their input: Abs ... Tanh.
#include <cmath>
#include <cstdio>

#include "conformance/cases/pointwise_cases.h"
#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_pointwise_unary {
namespace {

struct Function {
  const char* type;
  Number (*of)(Number);
  // Ranges of the input; the first is for all shapes.
  Names ranges;
  double ulps_f32, ulps_f64;
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"Abs", [](Number x) { return std::fabs(x); }, {"-100..100"}, 0, 0},
      {"Neg", [](Number x) { return -x; }, {"-100..100"}, 0, 0},
      {"Sign", [](Number x) { return x > 0    ? 1
                                     : x < 0  ? -1
                                     : x == 0 ? 0
                                              : x; }, {"-3..3"}, 0, 0},
      {"Ceil", [](Number x) { return std::ceil(x); }, {"-9..9", "-1..1", "-6e4..6e4"}, 0, 0},
      {"Floor", [](Number x) { return std::floor(x); }, {"-9..9", "-1..1", "-6e4..6e4"}, 0, 0},
      {"Round", [](Number x) { return std::nearbyint(x); }, {"-9..9", "-1..1", "-6e4..6e4"}, 0, 0},
      // The reference's 64 bits are themselves rounded, which shows in f64 next to a tie.
      {"Reciprocal", [](Number x) { return 1 / x; }, {"-3..3", "1e-3..1", "1..6e4"}, 0, 0.01},
      {"Sqrt", [](Number x) { return std::sqrt(x); }, {"0..9", "0..1e-3", "0..6e4"}, 0, 0.01},
      {"Exp", [](Number x) { return std::exp(x); }, {"-3..3", "-20..11", "-105..90", "-1e-3..1e-3"}, 1, 1},
      {"Log", [](Number x) { return std::log(x); }, {"0..9", "0.9..1.1", "0..1e-4", "1..6e4"}, 1, 1},
      {"Erf", [](Number x) { return std::erf(x); }, {"-3..3", "-1e-3..1e-3", "-6..6", "-1..1"}, 1, 1},
      {"Tanh", [](Number x) { return std::tanh(x); }, {"-3..3", "-1e-3..1e-3", "-12..12", "-0.7..0.7"}, 1, 2},
      {"Sin", [](Number x) { return std::sin(x); }, {"-4..4", "-1e-3..1e-3", "-100..100", "-6e4..6e4"}, 0.5, 1},
      {"Cos", [](Number x) { return std::cos(x); }, {"-4..4", "-1e-3..1e-3", "-100..100", "-6e4..6e4"}, 0.5, 1},
      {"Tan", [](Number x) { return std::tan(x); }, {"-4..4", "-1e-3..1e-3", "-100..100", "-6e4..6e4"}, 0.5, 1},
      {"Asin", [](Number x) { return std::asin(x); }, {"-1..1", "-1e-3..1e-3", "0.99..1"}, 1, 1},
      {"Acos", [](Number x) { return std::acos(x); }, {"-1..1", "-1e-3..1e-3", "0.99..1"}, 1, 1},
      {"Atan", [](Number x) { return std::atan(x); }, {"-3..3", "-1e-3..1e-3", "-6e4..6e4"}, 1, 1},
      {"Sinh", [](Number x) { return std::sinh(x); }, {"-3..3", "-1e-3..1e-3", "-90..90"}, 2, 2},
      {"Cosh", [](Number x) { return std::cosh(x); }, {"-3..3", "-1e-3..1e-3", "-90..90"}, 2, 2},
      {"Asinh", [](Number x) { return std::asinh(x); }, {"-3..3", "-1e-3..1e-3", "-6e4..6e4"}, 2, 2},
      {"Acosh", [](Number x) { return std::acosh(x); }, {"1..9", "1..1.001", "1..6e4"}, 2, 2},
      {"Atanh", [](Number x) { return std::atanh(x); }, {"-1..1", "-1e-3..1e-3", "0.99..1"}, 2, 2},
  };
  return all;
}

// The f32 nearest to multiples of pi/2: there sine, cosine and tangent are so small, or large, that the reduction of their argument shows.
Cases about_their_zeros(const std::string& type) {
  if (type != "Sin" && type != "Cos" && type != "Tan") return {};
  Names words;
  for (int i = 1; i <= 400; ++i) {
    const int quarters = i < 200 ? i : i * i * i / 100;
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(static_cast<float>(quarters * std::acos(0.0))));
    words.emplace_back(text);
  }
  return each({"f32", "f64"}, Kind::odd, "T[400] = " + repeated(words, 400));
}

}  // namespace
}  // namespace reference_pointwise_unary

std::vector<Row> pointwise_unary_rows() {
  using namespace reference_pointwise_unary;
  std::vector<Row> rows;
  for (const Function& f : functions()) {
    Cases cases =
        joined({one_input_cases(f.ranges[0]), over_ranges(Kind::odd, "T[2049]@", f.ranges), over_special(Kind::odd, "T[18] = SPECIAL"),
                about_their_zeros(f.type), each(float_names, Kind::odd, "T[9] = -2.5 -1.5 -0.5 0.5 1.5 2.5 3.5 1.25 -0.75")});
    std::map<DType, double> ulps_of = beside_f32(f.ulps_f32, f.ulps_f64);
    Row row = {
        .type = f.type, .reference = of_one(f.of), .cases = cases, .ulps = f.ulps_f32, .without = one_input_only, .ulps_of = ulps_of};
    row.signed_zeros = true;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace heddle::conformance

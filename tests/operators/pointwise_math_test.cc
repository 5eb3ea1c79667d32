// The f32 functions of pointwise programs against libm in double precision: error in ulp over their whole range, and special values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "operators/layouts/layout_support.h"
#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

// Distance in units of the last place of the exact value, rounded to f32.
double ulps(float got, double exact) {
  const float want = static_cast<float>(exact);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  if (std::isinf(want) || std::isinf(got)) return want == got ? 0 : 1e9;
  const float next = std::nextafter(std::fabs(want), inf);
  const double unit = std::isinf(next) ? std::fabs(want) - std::nextafter(std::fabs(want), 0.0f) : double(next) - std::fabs(want);
  return std::fabs(double(got) - exact) / unit;
}

// Returns every exponent and sign, a spread of mantissas, and the values where functions change their behaviour.
std::vector<float> samples() {
  std::vector<float> x = {0.0f,    -0.0f,  1.0f,    -1.0f,           inf,          -inf,    nan,  0.5f,   -0.5f,     88.0f,
                          88.8f,   89.5f,  -87.5f,  -100.0f,         -103.9f,      -104.5f, 2.0f, 0.625f, 0.921875f, 4.0f,
                          3.9999f, 1e-45f, -1e-45f, 1.17549435e-38f, 3.4028235e38f};
  std::mt19937 random(11);
  for (uint32_t exponent = 0; exponent < 255; ++exponent)
    for (int i = 0; i < 64; ++i) {
      const uint32_t bits = (exponent << 23) | (random() & 0x807fffff);
      float f;
      std::memcpy(&f, &bits, 4);
      x.push_back(f);
    }
  for (int i = 0; i < 40000; ++i) x.push_back(static_cast<float>((static_cast<double>(random()) / 4294967296.0 - 0.5) * 40));
  return x;
}

struct Function {
  const char* program;
  double (*exact)(double);
  double max_ulps;
};

class ElementaryFunction : public ::testing::TestWithParam<Function> {};

TEST_P(ElementaryFunction, StaysWithinAFewUlpOfLibm) {
  const std::vector<float> x = samples();
  const std::vector<float> y = values<float>(*evaluate(GetParam().program, {tensor<float>(Shape{static_cast<int64_t>(x.size())}, x)}));
  ASSERT_EQ(y.size(), x.size());
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], GetParam().exact(x[i]));
    if (error > worst) worst = error, at = x[i];
  }
  RecordProperty("worst_ulps", std::to_string(worst));
  EXPECT_LE(worst, GetParam().max_ulps) << "at " << at;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

INSTANTIATE_TEST_SUITE_P(
    F32, ElementaryFunction,
    ::testing::Values(Function{"exp(x0)", std::exp, 1.5}, Function{"log(x0)", std::log, 1.5}, Function{"tanh(x0)", std::tanh, 2.5},
                      Function{"erf(x0)", std::erf, 2}, Function{"sigmoid(x0)", sigmoid, 3}, Function{"log1p(x0)", std::log1p, 0.6},
                      Function{"expm1(x0)", std::expm1, 0.6}, Function{"sin(x0)", std::sin, 1}, Function{"cos(x0)", std::cos, 1},
                      Function{"tan(x0)", std::tan, 1}, Function{"sqrt(x0)", std::sqrt, 0.5}, Function{"floor(x0)", std::floor, 0},
                      Function{"ceil(x0)", std::ceil, 0}, Function{"round(x0)", std::nearbyint, 0}, Function{"asinh(x0)", std::asinh, 2},
                      Function{"atanh(x0)", std::atanh, 2}, Function{"atan(x0)", std::atan, 1}, Function{"asin(x0)", std::asin, 1},
                      Function{"acos(x0)", std::acos, 1}),
    [](const auto& info) { return std::string(info.param.program, std::strcspn(info.param.program, "(")); });

TEST(Pow, IsLibmsOverPairsAndSpecialValues) {
  std::vector<float> x, y;
  const std::vector<float> special = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 0.5f, -0.5f, 3.0f, inf, -inf, nan, 1e-45f, 3e38f, -3e38f};
  for (float a : special)
    for (float b : special) x.push_back(a), y.push_back(b);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> base(0.0f, 20.0f), exponent(-12.0f, 12.0f);
  for (int i = 0; i < 20000; ++i) x.push_back(base(random)), y.push_back(exponent(random));
  const Shape shape{static_cast<int64_t>(x.size())};
  const std::vector<float> z = values<float>(*evaluate("pow(x0, x1)", {tensor(shape, x), tensor(shape, y)}));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulps(z[i], std::pow(double(x[i]), double(y[i]))), 1.0) << x[i] << " ^ " << y[i] << " = " << z[i];
}

// Powers that are numbers become cheaper operations; those that are not have the bits of these.
TEST(Pow, ByANumberHasTheBitsOfAPowerThatIsNone) {
  const std::vector<float> x = samples();
  const Shape shape{static_cast<int64_t>(x.size())};
  const Tensor f32 = tensor(shape, x), f64 = tensor(shape, std::vector<double>(x.begin(), x.end()));
  for (const double exponent : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0}) {
    const std::string by_number = fmt::format("pow(x0, {})", exponent);
    const Tensor y = evaluate(by_number, {f32});
    expect_same_bits(y, evaluate("pow(x0, x1)", {f32, tensor(shape, std::vector<float>(x.size(), static_cast<float>(exponent)))}),
                     by_number);
    expect_same_bits(evaluate(by_number, {f64}), evaluate("pow(x0, x1)", {f64, tensor(shape, std::vector<double>(x.size(), exponent))}),
                     by_number);
    const std::vector<float> found = values<float>(*y);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(ulps(found[i], std::pow(static_cast<double>(x[i]), exponent)), 1.5) << x[i] << " ^ " << exponent << " = " << found[i];
  }
}

}  // namespace
}  // namespace heddle::testing

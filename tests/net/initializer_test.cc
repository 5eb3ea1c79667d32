// Rules that fill variables: what they draw, from which seed and name, and what is refused.
#include "net/initializer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace heddle {
namespace {

std::vector<double> filled(const std::string& text, const Shape& shape, uint64_t seed = 1, const std::string& name = "w") {
  const auto rule = Initializer::parse(text);
  EXPECT_TRUE(rule.ok()) << rule.status().text();
  EXPECT_TRUE(rule->check(DType::f64, shape).ok());
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  rule->fill(DType::f64, shape, name, seed, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};
Moments moments(const std::vector<double>& values) {
  Moments m;
  for (const double v : values) m.mean += v / static_cast<double>(values.size());
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  m.low = *std::min_element(values.begin(), values.end());
  m.high = *std::max_element(values.begin(), values.end());
  return m;
}

TEST(Initializer, EachRuleDrawsWhatItSays) {
  const Shape shape{100, 50, 2};
  EXPECT_EQ(filled("constant(0.25)", Shape{3}), (std::vector<double>{0.25, 0.25, 0.25}));
  const Moments uniform = moments(filled("uniform(-1, 3)", shape)), normal = moments(filled("normal(2, 0.5)", shape));
  EXPECT_NEAR(uniform.mean, 1, 0.05);
  EXPECT_GE(uniform.low, -1);
  EXPECT_LT(uniform.high, 3);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12), 0.03);
  EXPECT_NEAR(normal.mean, 2, 0.03);
  EXPECT_NEAR(normal.deviation, 0.5, 0.02);
  // fan_in 50 x 2, fan_out 100 x 2.
  for (const char* rule : {"xavier_uniform", "xavier_normal"})
    EXPECT_NEAR(moments(filled(rule, shape)).deviation, std::sqrt(2.0 / 300), 0.003) << rule;
  for (const char* rule : {"kaiming_uniform", "kaiming_normal"})
    EXPECT_NEAR(moments(filled(rule, shape)).deviation, std::sqrt(2.0 / 100), 0.005) << rule;
  EXPECT_NEAR(moments(filled("kaiming_normal(1, fan_out)", shape)).deviation, std::sqrt(1.0 / 200), 0.003);
  EXPECT_LE(moments(filled("xavier_uniform(2)", shape)).high, 2 * std::sqrt(6.0 / 300));
}

TEST(Initializer, OrthogonalRowsOrColumnsAre) {
  for (const Shape& shape : {Shape{5, 9}, Shape{9, 5}, Shape{4, 2, 3}}) {
    const std::vector<double> values = filled("orthogonal(3)", shape);
    const auto rows = static_cast<size_t>(shape[0]), columns = values.size() / rows;
    const bool tall = rows > columns;
    const size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
    for (size_t a = 0; a < vectors; ++a)
      for (size_t b = 0; b <= a; ++b) {
        double product = 0;
        for (size_t i = 0; i < length; ++i)
          product += tall ? values[i * columns + a] * values[i * columns + b] : values[a * columns + i] * values[b * columns + i];
        EXPECT_NEAR(product, a == b ? 9 : 0, 1e-12);
      }
  }
}

TEST(Initializer, NumbersDependOnNameAndSeedAlone) {
  EXPECT_EQ(filled("normal(0, 1)", Shape{7}), filled("normal(0, 1)", Shape{7}));
  EXPECT_NE(filled("normal(0, 1)", Shape{7}), filled("normal(0, 1)", Shape{7}, 2));
  EXPECT_NE(filled("normal(0, 1)", Shape{7}), filled("normal(0, 1)", Shape{7}, 1, "v"));
  const std::vector<double> longer = filled("uniform(0, 1)", Shape{9}), shorter = filled("uniform(0, 1)", Shape{4});
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

TEST(Initializer, NumbersOfAnotherVariableAreDrawn) {
  const std::vector<double> w = filled("normal(0, 1)", Shape{7});
  EXPECT_EQ(filled(Initializer::drawn_as("normal(0, 1)", "w"), Shape{7}, 1, "w.average"), w);
  EXPECT_EQ(Initializer::drawn_as("normal(0, 1) as w", "w.average"), "normal(0, 1) as w");
  EXPECT_EQ(filled("kaiming_normal as w, (v) as u", Shape{3, 3}, 1, "x"), filled("kaiming_normal", Shape{3, 3}, 1, "w, (v) as u"));
  EXPECT_NE(filled("normal(0, 1) as v", Shape{7}), w);
  for (const char* text : {"normal(0, 1) as ", " as w", "normal(0, 1) as", "normal(0 as w, 1)"})
    EXPECT_FALSE(Initializer::parse(text).ok()) << text;
}

TEST(Initializer, EveryDtypeTakesConstants) {
  const auto rule = Initializer::parse("constant(3)");
  ASSERT_TRUE(rule.ok());
  for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u64}) {
    std::vector<std::byte> data(static_cast<size_t>(2 * byte_width(dtype)));
    ASSERT_TRUE(rule->check(dtype, Shape{2}).ok());
    rule->fill(dtype, Shape{2}, "n", 0, data.data());
    int64_t value = 0;
    std::memcpy(&value, data.data() + byte_width(dtype), static_cast<size_t>(byte_width(dtype)));
    EXPECT_EQ(value, 3) << to_string(dtype);
  }
}

TEST(Initializer, WhatIsNoRuleIsRefused) {
  for (const char* text : {"", "zeros", "constant", "constant()", "constant(x)", "constant(1", "uniform(1)", "uniform(1, 2, 3)",
                           "normal(0, inf)", "xavier_uniform(1, fan_in)", "orthogonal(1, 2)", "kaiming_normal(fan_in, 1)"}) {
    const auto rule = Initializer::parse(text);
    ASSERT_FALSE(rule.ok()) << text;
    EXPECT_NE(rule.status().text().find("is no initializer"), std::string::npos) << rule.status().text();
  }
  EXPECT_EQ(Initializer::parse("normal(0, 1)")->check(DType::i32, Shape{2}).code(), Code::dtype_mismatch);
  for (const auto& [rule, dtype] : {std::pair("constant(300)", DType::i8),
                                    {"constant(-1)", DType::u8},
                                    {"constant(1.5)", DType::i64},
                                    {"constant(1e19)", DType::u64},
                                    {"constant(1e39)", DType::f32},
                                    {"constant(2)", DType::boolean}})
    EXPECT_EQ(Initializer::parse(rule)->check(dtype, Shape{2}).code(), Code::dtype_mismatch) << rule;
  for (const char* rule : {"normal(0, -1)", "uniform(1, 0)", "uniform(-1e300, 1e300)"})
    EXPECT_EQ(Initializer::parse(rule)->check(DType::f64, Shape{2}).code(), Code::syntax) << rule;
  EXPECT_EQ(Initializer::parse("orthogonal")->check(DType::f32, Shape{2}).code(), Code::shape_mismatch);
}

}  // namespace
}  // namespace heddle

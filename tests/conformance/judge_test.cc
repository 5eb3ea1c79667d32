// Tests that the suite's judge accepts numbers that are close, and no others.
#include "conformance/judge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heddle::conformance {
namespace {

const Number inf = HUGE_VALL;

bool takes(DType dtype, Number got, Number expected, double ulps, Number scale = 0, bool signed_zeros = true) {
  Numbers have{dtype, Shape{1}, {got}, {}}, want{dtype, Shape{1}, {expected}, {scale}};
  return difference({blob_of(have)}, {want}, {ulps, signed_zeros}).empty();
}

TEST(Judge, InfinitiesAreNoFiniteNumbers) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    EXPECT_FALSE(takes(dtype, inf, 100, 4));
    EXPECT_FALSE(takes(dtype, -inf, 100, 4));
    EXPECT_FALSE(takes(dtype, 100, inf, 4));
    EXPECT_FALSE(takes(dtype, -inf, inf, 4));
    EXPECT_TRUE(takes(dtype, inf, inf, 4));
    EXPECT_TRUE(takes(dtype, NAN, NAN, 0));
    EXPECT_FALSE(takes(dtype, NAN, 1, 1000));
  }
}

TEST(Judge, EitherSideOfTheLargestNumberWillDoForWhatLiesBesideIt) {
  EXPECT_TRUE(takes(DType::f16, inf, 65519, 1));
  EXPECT_TRUE(takes(DType::f16, 65504, 65521, 1));
  EXPECT_FALSE(takes(DType::f16, 0, 65521, 1));
  EXPECT_FALSE(takes(DType::f16, -65504, 65521, 1));
  EXPECT_FALSE(takes(DType::f16, inf, 64000, 1));
  EXPECT_FALSE(takes(DType::f16, inf, 65519, 0));
}

TEST(Judge, WhatIsFarBeyondTheLargestNumberIsInfinity) {
  EXPECT_TRUE(takes(DType::f16, inf, 4.85e8L, 1));
  for (const Number got : {0.0L, -5.0L, 60000.0L, static_cast<Number>(-inf)}) EXPECT_FALSE(takes(DType::f16, got, 4.85e8L, 1));
  for (const Number got : {0.0L, -3e38L, static_cast<Number>(-inf)}) EXPECT_FALSE(takes(DType::f32, got, 1.3e52L, 2));
  EXPECT_FALSE(takes(DType::f32, 0, 1.3e52L, 2, 1e60L));
}

TEST(Judge, ErrorsAreOfTheNumberOrItsScale) {
  const Number unit = 0x1p-23L;
  EXPECT_TRUE(takes(DType::f32, 1 + unit, 1, 1));
  EXPECT_FALSE(takes(DType::f32, 1 + 2 * unit, 1, 1));
  EXPECT_FALSE(takes(DType::f32, 1 + unit, 1, 0));
  EXPECT_TRUE(takes(DType::f32, 1 + 64 * unit, 1, 1, 64));
  EXPECT_FALSE(takes(DType::i32, 8, 7, 1000, 1000));
}

TEST(Judge, SignsOfZerosCountWhereTheyAreSaidTo) {
  EXPECT_FALSE(takes(DType::f32, 0.0L, -0.0L, 4));
  EXPECT_TRUE(takes(DType::f32, 0.0L, -0.0L, 4, 0, false));
}

TEST(Judge, WhatIsMissingIsNotEqual) {
  const Numbers one{DType::f32, Shape{1}, {1}, {}};
  EXPECT_NE(difference({nullptr}, {one}, {}), "");
  EXPECT_NE(difference({blob_of(one)}, {}, {}), "");
  EXPECT_NE(difference({}, {one}, {}), "");
  EXPECT_NE(difference({blob_of(one)}, {Numbers{DType::f32, Shape{1}, {}, {}}}, {}), "");
  EXPECT_EQ(difference({blob_of(one)}, {one}, {}), "");
}

}  // namespace
}  // namespace heddle::conformance

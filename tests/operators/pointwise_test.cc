// Pointwise programs and the elementwise operators: dtypes, broadcasting, layouts, in-place use, definedness, conversions, errors.
#include <cmath>
#include <limits>
#include <numeric>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

std::vector<float> ramp(int64_t n, float step = 1) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(static_cast<int>(i % 1009) - 504) * step;
  return v;
}

// a + 10 * b of two shapes against a plain loop over indices.
void expect_broadcast(const Shape& a, const Shape& b, const Shape& y) {
  const std::vector<float> va = ramp(a.element_count()), vb = ramp(b.element_count(), 0.5f);
  OperatorCall call = call_of("Pointwise", {tensor(a, va), tensor(b, vb)}, {{"program", "x0 + 10 * x1"}});
  call.domain = "heddle";
  call.split_seed = 3;
  auto outputs = run(call);
  ASSERT_EQ(outputs.size(), 1u);
  ASSERT_EQ(outputs[0]->shape, y);
  const std::vector<float> got = values<float>(*outputs[0]);
  const auto index_in = [&](const Shape& s, int64_t linear) {
    int64_t at = 0, stride = 1;
    for (int i = y.rank() - 1; i >= 0; --i) {
      const int axis = i - (y.rank() - s.rank());
      if (axis >= 0 && s[axis] != 1) at += linear % y[i] * stride;
      if (axis >= 0) stride *= s[axis];
      linear /= y[i];
    }
    return static_cast<size_t>(at);
  };
  for (int64_t i = 0; i < y.element_count(); ++i)
    ASSERT_EQ(got[static_cast<size_t>(i)], va[index_in(a, i)] + 10 * vb[index_in(b, i)]) << "element " << i << " of " << y.text();
}

TEST(Pointwise, BroadcastsEveryPattern) {
  expect_broadcast({7}, {7}, {7});
  expect_broadcast({100000}, {100000}, {100000});
  expect_broadcast({50, 1000}, {1000}, {50, 1000});             // last dimension
  expect_broadcast({2, 30, 9, 9}, {30, 1, 1}, {2, 30, 9, 9});   // per channel, short rows
  expect_broadcast({2, 3, 20, 20}, {3, 1, 1}, {2, 3, 20, 20});  // per channel, long rows
  expect_broadcast({300, 200}, {}, {300, 200});                 // scalar
  expect_broadcast({1, 5}, {4, 1}, {4, 5});                     // outer sum
  expect_broadcast({300, 1}, {1, 700}, {300, 700});
  expect_broadcast({2, 1, 3, 1, 5}, {1, 4, 1, 6, 1}, {2, 4, 3, 6, 5});
  expect_broadcast({5, 0, 3}, {1, 3}, {5, 0, 3});
  expect_broadcast({}, {}, {});
}

TEST(Pointwise, ResultsDoNotDependOnTheDivisionIntoTiles) {
  const Tensor x = tensor(Shape{3, 100003}, ramp(300009, 0.01f));
  OperatorCall call = call_of("Pointwise", {x}, {{"program", "tanh(x0) * exp(-x0 * x0) + erf(x0)"}});
  call.domain = "heddle";
  const std::vector<float> whole = values<float>(*run(call)[0]);
  for (uint64_t seed = 1; seed < 6; ++seed) {
    call.split_seed = seed;
    EXPECT_EQ(values<float>(*run(call)[0]), whole);
  }
}

TEST(Pointwise, TreatsACommonLayoutAsLinearAndMixesLayouts) {
  heddle_layout last = {};
  last.rank = 4;
  const uint8_t order[] = {0, 2, 3, 1};
  std::copy(order, order + 4, last.order);
  // Element (n, c, h, w) of [2, 3, 4, 5] is stored channels-last; x1 per channel, x2 row-major of the full shape.
  const Shape shape{2, 3, 4, 5};
  std::vector<float> x(120), full(120), expected(120);
  const std::vector<float> channel = {1000, 2000, 3000};
  size_t i = 0;
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 3; ++c)
      for (int h = 0; h < 4; ++h)
        for (int w = 0; w < 5; ++w, ++i) {
          const size_t stored = static_cast<size_t>(((n * 4 + h) * 5 + w) * 3 + c);
          x[stored] = static_cast<float>(i);
          full[i] = 0.5f * static_cast<float>(i);
          expected[stored] = static_cast<float>(i) + channel[static_cast<size_t>(c)] + full[i];
        }
  OperatorCall call =
      call_of("Pointwise", {tensor(shape, x), tensor(Shape{3, 1, 1}, channel), tensor(shape, full)}, {{"program", "x0 + x1 + x2"}});
  call.domain = "heddle";
  call.input_layouts = {last, heddle_layout{}, heddle_layout{}};
  call.output_layouts = {last};
  EXPECT_EQ(values<float>(*run(call)[0]), expected);
}

TEST(Pointwise, LongProgramsReuseRegisters) {
  std::string program = "t0 = x0;";
  for (int i = 1; i <= 300; ++i) program += "t" + std::to_string(i) + " = t" + std::to_string(i - 1) + " + " + std::to_string(i % 7) + ";";
  const std::vector<float> y = values<float>(*evaluate(program + "t300 - x0", {tensor(Shape{3}, std::vector<float>{0, 1, 2})}));
  float sum = 0;
  for (int i = 1; i <= 300; ++i) sum += static_cast<float>(i % 7);
  EXPECT_EQ(y, (std::vector<float>{sum, sum, sum}));
}

TEST(Pointwise, NarrowIntegersWrapAfterEveryOperation) {
  const Tensor x = tensor<int8_t>(Shape{4}, {127, -128, 100, -1}), y = tensor<int8_t>(Shape{4}, {1, -1, 100, 0});
  EXPECT_EQ(values<int8_t>(*run1("Add", {x, y})), (std::vector<int8_t>{-128, 127, -56, -1}));
  EXPECT_EQ(values<int8_t>(*run1("Div", {x, y})), (std::vector<int8_t>{127, -128, 1, 0}));
  EXPECT_EQ(values<uint8_t>(*evaluate("lt(x0 + x1, x0)", {tensor<uint8_t>(Shape{2}, {200, 10}), tensor<uint8_t>(Shape{2}, {100, 10})})),
            (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(values<uint32_t>(*run1("Mul", {tensor<uint32_t>(Shape{1}, {4000000000u}), tensor<uint32_t>(Shape{1}, {3u})})),
            (std::vector<uint32_t>{4000000000u * 3u}));
  EXPECT_EQ(values<uint64_t>(*run1("Div", {tensor<uint64_t>(Shape{1}, {~0ull}), tensor<uint64_t>(Shape{1}, {3})})),
            (std::vector<uint64_t>{~0ull / 3}));
}

TEST(Pointwise, BytesGiveWhatWiderIntegersDo) {
  std::vector<uint8_t> a, b;
  for (int i = 0; i < 256; ++i)
    for (int k = 0; k < 256; k += 5) a.push_back(static_cast<uint8_t>(i)), b.push_back(static_cast<uint8_t>(k));
  const Shape shape{static_cast<int64_t>(a.size())};
  const auto wide = [&](const std::vector<uint8_t>& v) { return tensor(shape, std::vector<int32_t>(v.begin(), v.end())); };
  for (const char* text : {"x0 + x1", "x0 - x1", "x0 * x1", "x0 / x1", "mod(x0, x1)", "min(x0, x1)", "max(x0, x1)", "abs(x0 - x1)",
                           "bit_xor(bit_not(x0), x1)", "shift_left(x0, x1)", "shift_right(x0, x1)", "select(gt(x0, x1), x0, 255 - x1)"}) {
    const std::vector<uint8_t> narrow = values<uint8_t>(*evaluate(text, {tensor(shape, a), tensor(shape, b)}));
    // i32 gives it, wrapped once: no operation here but the last one leaves the range.
    const std::vector<int32_t> expected = values<int32_t>(*evaluate(text, {wide(a), wide(b)}));
    for (size_t i = 0; i < a.size(); ++i) {
      const uint8_t difference = static_cast<uint8_t>(a[i] - b[i]);
      const int32_t value = std::string(text) == "abs(x0 - x1)" ? difference : expected[i];
      ASSERT_EQ(narrow[i], static_cast<uint8_t>(value)) << text << " of " << int{a[i]} << " and " << int{b[i]};
    }
  }
  // Literals that no byte holds are computed in more.
  EXPECT_EQ(values<uint8_t>(*evaluate("lt(x0, 300)", {tensor<uint8_t>(Shape{2}, {44, 255})})), (std::vector<uint8_t>{1, 1}));
}

TEST(Pointwise, IntegerDivisionNeverTraps) {
  const int32_t low = std::numeric_limits<int32_t>::min();
  const int64_t low64 = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(values<int32_t>(*run1("Div", {tensor<int32_t>(Shape{4}, {7, low, -7, 0}), tensor<int32_t>(Shape{4}, {0, -1, 2, 0})})),
            (std::vector<int32_t>{0, low, -3, 0}));
  EXPECT_EQ(values<int64_t>(*run1("Div", {tensor<int64_t>(Shape{2}, {low64, 5}), tensor<int64_t>(Shape{2}, {-1, 0})})),
            (std::vector<int64_t>{low64, 0}));
  const Tensor a = tensor<int32_t>(Shape{5}, {-7, 7, -7, low, 5}), b = tensor<int32_t>(Shape{5}, {3, -3, -3, -1, 0});
  EXPECT_EQ(values<int32_t>(*run1("Mod", {a, b})), (std::vector<int32_t>{2, -2, -1, 0, 0}));
  EXPECT_EQ(values<int32_t>(*run1("Mod", {a, b}, {{"fmod", int64_t{1}}})), (std::vector<int32_t>{-1, 1, -1, 0, 0}));
}

TEST(Pointwise, NanFollowsNumpy) {
  const Tensor a = tensor<float>(Shape{4}, {nan, 1, nan, -0.0f}), b = tensor<float>(Shape{4}, {1, nan, nan, 2});
  for (const char* op : {"Max", "Min"}) {
    const std::vector<float> y = values<float>(*run1(op, {a, b}));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[static_cast<size_t>(i)])) << op << i;
    EXPECT_EQ(y[3], std::string(op) == "Max" ? 2 : -0.0f);
  }
  EXPECT_TRUE(std::isnan(values<float>(*run1("Relu", {a}))[0]));
  EXPECT_TRUE(std::isnan(values<float>(*run1("Sign", {a}))[0]));
  EXPECT_EQ(values<float>(*run1("Sign", {tensor<float>(Shape{3}, {0, -inf, 3})})), (std::vector<float>{0, -1, 1}));
  EXPECT_EQ(values<uint8_t>(*run1("Less", {a, b})), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(values<uint8_t>(*run1("IsNaN", {a})), (std::vector<uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(values<uint8_t>(*run1("IsInf", {tensor<float>(Shape{3}, {inf, -inf, 1})}, {{"detect_negative", int64_t{0}}})),
            (std::vector<uint8_t>{1, 0, 0}));
}

TEST(Pointwise, RoundsHalvesToEven) {
  EXPECT_EQ(values<float>(*run1("Round", {tensor<float>(Shape{6}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4999998f})})),
            (std::vector<float>{0, 2, 2, -0.0f, -2, 2}));
}

TEST(Pointwise, ClipTakesAbsentBoundsAndReversedOnes) {
  const Tensor x = tensor<float>(Shape{4}, {-5, 0.5f, 7, nan}), low = tensor<float>(Shape{}, {-1}), high = tensor<float>(Shape{}, {1});
  const auto first3 = [](const Tensor& t) {
    std::vector<float> v = values<float>(*t);
    EXPECT_TRUE(std::isnan(v[3]));
    v.pop_back();
    return v;
  };
  EXPECT_EQ(first3(run1("Clip", {x, low, high})), (std::vector<float>{-1, 0.5f, 1}));
  EXPECT_EQ(first3(run1("Clip", {x, nullptr, high})), (std::vector<float>{-5, 0.5f, 1}));
  EXPECT_EQ(first3(run1("Clip", {x, low})), (std::vector<float>{-1, 0.5f, 7}));
  EXPECT_EQ(first3(run1("Clip", {x})), (std::vector<float>{-5, 0.5f, 7}));
  EXPECT_EQ(first3(run1("Clip", {x, high, low})), (std::vector<float>{-1, -1, -1}));
  EXPECT_NE(error_of(call_of("Clip", {x, tensor<float>(Shape{2}, {0, 1})})).find("expected a scalar"), std::string::npos);
  const Tensor scalar = tensor<float>(Shape{}, {5});
  EXPECT_NE(error_of(call_of("Clip", {scalar, tensor<float>(Shape{1}, {0})})).find("min has shape [1], expected a scalar"),
            std::string::npos);
}

TEST(Pointwise, GeluInBothForms) {
  const std::vector<float> x = ramp(1000, 0.01f);
  const Tensor input = tensor(Shape{1000}, x);
  const std::vector<float> exact = values<float>(*run1("Gelu", {input}));
  const std::vector<float> tanh = values<float>(*run1("Gelu", {input}, {{"approximate", std::string("tanh")}}));
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    ASSERT_NEAR(exact[i], 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))), 2e-6);
    ASSERT_NEAR(tanh[i], 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))), 2e-6);
  }
}

TEST(Pointwise, WhereKeepsDtypesApart) {
  const Tensor condition = booleans(Shape{2, 1}, {1, 0});
  EXPECT_EQ(values<int64_t>(*run1("Where", {condition, tensor<int64_t>(Shape{2}, {1ll << 60, 2}), tensor<int64_t>(Shape{}, {-3})})),
            (std::vector<int64_t>{1ll << 60, 2, -3, -3}));
  EXPECT_EQ(values<uint8_t>(*run1("Where", {condition, booleans(Shape{1}, {0}), booleans(Shape{1}, {1})})), (std::vector<uint8_t>{0, 1}));
}

TEST(Pointwise, PowOfMixedDtypes) {
  EXPECT_EQ(values<int32_t>(*run1("Pow", {tensor<int32_t>(Shape{3}, {2, -3, 7}), tensor<int64_t>(Shape{3}, {10, 3, 0})})),
            (std::vector<int32_t>{1024, -27, 1}));
  EXPECT_EQ(values<int64_t>(*run1("Pow", {tensor<int64_t>(Shape{4}, {2, 1, -1, 0}), tensor<int64_t>(Shape{4}, {-1, -5, -3, -2})})),
            (std::vector<int64_t>{0, 1, -1, 0}));
  EXPECT_EQ(values<int32_t>(*run1("Pow", {tensor<int32_t>(Shape{2}, {2, 9}), tensor<float>(Shape{2}, {3, 0.5f})})),
            (std::vector<int32_t>{8, 3}));
  EXPECT_EQ(values<float>(*run1("Pow", {tensor<float>(Shape{2}, {1.5f, -2}), tensor<int32_t>(Shape{2}, {2, 3})})),
            (std::vector<float>{2.25f, -8}));
}

TEST(Pointwise, VariadicOperatorsTakeAnyNumber) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 260; ++i)
    inputs.push_back(tensor<float>(i % 2 ? Shape{2, 1} : Shape{3}, i % 2 ? std::vector<float>{1, 2} : std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values<float>(*run1("Sum", inputs)), (std::vector<float>{260, 390, 520, 390, 520, 650}));
  EXPECT_EQ(values<float>(*run1("Mean", {inputs[0], inputs[1]})), (std::vector<float>{1, 1.5f, 2, 1.5f, 2, 2.5f}));
  EXPECT_EQ(values<float>(*run1("Mean", {inputs[0]})), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values<float>(*run1("Max", {inputs[0], inputs[1]})), (std::vector<float>{1, 2, 3, 2, 2, 3}));
}

TEST(Pointwise, BitsAndShifts) {
  const Tensor x = tensor<uint8_t>(Shape{3}, {0xf0, 1, 0xff}), n = tensor<uint8_t>(Shape{3}, {1, 9, 4});
  EXPECT_EQ(values<uint8_t>(*run1("BitShift", {x, n}, {{"direction", std::string("LEFT")}})), (std::vector<uint8_t>{0xe0, 0, 0xf0}));
  EXPECT_EQ(values<uint8_t>(*run1("BitShift", {x, n}, {{"direction", std::string("RIGHT")}})), (std::vector<uint8_t>{0x78, 0, 0x0f}));
  EXPECT_NE(error_of(call_of("BitShift", {x, n}, {{"direction", std::string("UP")}})).find("expected \"LEFT\""), std::string::npos);
  EXPECT_EQ(values<uint8_t>(*run1("BitwiseNot", {x})), (std::vector<uint8_t>{0x0f, 0xfe, 0}));
  EXPECT_EQ(values<uint8_t>(*run1("Xor", {booleans(Shape{2}, {1, 0}), booleans(Shape{2}, {1, 1})})), (std::vector<uint8_t>{0, 1}));
}

TEST(Pointwise, HalvesAreComputedInFloatAndRoundedOnce) {
  // 1 + 2^-11 lies between two halves: to even. 65504 + 32 overflows. Denormals survive.
  const Tensor x = halves(DType::f16, Shape{4}, {0x3c00, 0x7bff, 0x0001, 0x7e00}),
               y = halves(DType::f16, Shape{4}, {0x1000, 0x5000, 0x0001, 0});
  const std::vector<uint16_t> sum = values<uint16_t>(*run1("Add", {x, y}));
  EXPECT_EQ(sum[0], 0x3c00);
  EXPECT_EQ(sum[1], 0x7c00);
  EXPECT_EQ(sum[2], 0x0002);
  EXPECT_GT(sum[3] & 0x7fff, 0x7c00);
  EXPECT_EQ(values<uint16_t>(*run1("Mul", {halves(DType::bf16, Shape{1}, {0x3f81}), halves(DType::bf16, Shape{1}, {0x3f81})})),
            (std::vector<uint16_t>{0x3f82}));
}

TEST(Pointwise, WhatIsWrongIsNamed) {
  const Tensor x = tensor<float>(Shape{2}, {1, 2}), i = tensor<int32_t>(Shape{2}, {1, 2});
  const auto error = [&](const std::string& program, std::vector<Tensor> inputs) {
    OperatorCall call = call_of("Pointwise", std::move(inputs), {{"program", program}});
    call.domain = "heddle";
    return error_of(call);
  };
  EXPECT_NE(error("x0 +", {x}).find("unexpected end"), std::string::npos);
  EXPECT_NE(error("x0 + y", {x}).find("\"y\" is no input"), std::string::npos);
  EXPECT_NE(error("exp(x0)", {i}).find("exp is not defined for integers"), std::string::npos);
  EXPECT_NE(error("x0 * 0.5", {i}).find("is not an integer"), std::string::npos);
  EXPECT_NE(error("bit_and(x0, x0)", {x}).find("not defined for floats"), std::string::npos);
  EXPECT_NE(error("x0 + x1", {x, i}).find("must have one dtype"), std::string::npos);
  EXPECT_NE(error("x0 + x1", {x, tensor<float>(Shape{3}, {1, 2, 3})}).find("does not broadcast"), std::string::npos);
}

// ---------------------------------------------------------------- conversions

Tensor cast(const Tensor& x, int64_t to) {
  return run1("Cast", {x}, {{"to", to}});
}

TEST(Cast, FloatsSaturateAndNanBecomesZero) {
  const Tensor x = tensor<float>(Shape{8}, {nan, inf, -inf, 1e20f, -1e20f, 127.9f, -128.9f, -0.9f});
  EXPECT_EQ(values<int8_t>(*cast(x, 3)), (std::vector<int8_t>{0, 127, -128, 127, -128, 127, -128, 0}));
  EXPECT_EQ(values<uint8_t>(*cast(x, 2)), (std::vector<uint8_t>{0, 255, 0, 255, 0, 127, 0, 0}));
  const int64_t high = std::numeric_limits<int64_t>::max(), low = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(values<int64_t>(*cast(x, 7)), (std::vector<int64_t>{0, high, low, high, low, 127, -128, 0}));
  EXPECT_EQ(values<uint64_t>(*cast(tensor<double>(Shape{2}, {1.8446744073709552e19, 3e9}), 13)),
            (std::vector<uint64_t>{~0ull, 3000000000ull}));
  EXPECT_EQ(values<uint8_t>(*cast(x, 9)), (std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(Cast, IntegersWrapAndBoolsAreOneOrZero) {
  const Tensor x = tensor<int32_t>(Shape{3}, {300, -1, 0});
  EXPECT_EQ(values<uint8_t>(*cast(x, 2)), (std::vector<uint8_t>{44, 255, 0}));
  EXPECT_EQ(values<int64_t>(*cast(x, 7)), (std::vector<int64_t>{300, -1, 0}));
  EXPECT_EQ(values<uint64_t>(*cast(x, 13)), (std::vector<uint64_t>{300, ~0ull, 0}));
  EXPECT_EQ(values<uint8_t>(*cast(x, 9)), (std::vector<uint8_t>{1, 1, 0}));
  EXPECT_EQ(values<float>(*cast(booleans(Shape{2}, {1, 0}), 1)), (std::vector<float>{1, 0}));
}

TEST(Cast, EveryHalfSurvivesAndDoublesRoundOnce) {
  std::vector<uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  for (const auto& [dtype, number] : {std::pair{DType::f16, int64_t{10}}, std::pair{DType::bf16, int64_t{16}}}) {
    const std::vector<uint16_t> back = values<uint16_t>(*cast(cast(halves(dtype, Shape{65536}, bits), 1), number));
    for (size_t i = 0; i < bits.size(); ++i) {
      const uint16_t infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
      if ((bits[i] & 0x7fff) > infinity)
        ASSERT_GT(back[i] & 0x7fff, infinity) << i;
      else
        ASSERT_EQ(back[i], bits[i]);
    }
  }
  // The number is just above the middle of two halves, by less than a float can represent: rounding through f32 would go down to even.
  const double x = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(values<uint16_t>(*cast(tensor<double>(Shape{1}, {x}), 10)), (std::vector<uint16_t>{0x3c01}));
  EXPECT_EQ(values<uint16_t>(*cast(tensor<double>(Shape{2}, {1e300, -1e-300}), 10)), (std::vector<uint16_t>{0x7c00, 0x8000}));
}

TEST(Cast, LikeAnotherTensorAndToNothingKnown) {
  EXPECT_EQ(values<int16_t>(*run1("CastLike", {tensor<float>(Shape{1}, {-7.6f}), tensor<int16_t>(Shape{1}, {0})})),
            (std::vector<int16_t>{-7}));
  EXPECT_NE(error_of(call_of("Cast", {tensor<float>(Shape{1}, {1})}, {{"to", int64_t{8}}})).find("to is 8"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing

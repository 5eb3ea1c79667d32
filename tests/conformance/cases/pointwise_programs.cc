#include "conformance/cases/pointwise_programs.h"

#include <cmath>

namespace heddle::conformance {
namespace {

using Programs = std::vector<PointwiseProgram>;

#define HEDDLE_SAYS(expression) []([[maybe_unused]] const Inputs& x, [[maybe_unused]] DType dtype) -> Number { return expression; }
#define HEDDLE_SCALE(expression) [](const Inputs& x) -> Number { return expression; }

const Names numbers = joined({float_names, signed_integer_names, unsigned_integer_names});
const Names with_sign = joined({float_names, signed_integer_names});
const Names integers = joined({signed_integer_names, unsigned_integer_names});

Number truth(bool of) {
  return of ? 1 : 0;
}
// The quotient is whole for integers.
Number quotient(Number a, Number b, DType dtype) {
  if (is_floating(dtype)) return a / b;
  return b == 0 ? 0 : std::trunc(a / b);
}
Number sigmoid(Number x) {
  return 1 / (1 + std::exp(-x));
}
uint64_t bits(Number x) {
  return x < 0 ? uint64_t{0} - static_cast<uint64_t>(-x) : static_cast<uint64_t>(x);
}
Number floored_remainder(Number a, Number b) {
  const Number rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
Number gelu(Number x) {
  return x / 2 * (1 + std::erf(x / std::sqrt(Number(2))));
}
Number gelu_scale(const Inputs& x) {
  return std::fabs(x[0] / 2) * (1 + std::fabs(std::erf(x[0] / std::sqrt(Number(2)))));
}

Programs arithmetic() {
  return {
      {"x0 + x1", HEDDLE_SAYS(x[0] + x[1]), {"", ""}, numbers},
      {"x0 - x1", HEDDLE_SAYS(x[0] - x[1]), {"", ""}, numbers},
      {"x0 * x1", HEDDLE_SAYS(x[0] * x[1]), {"", ""}, numbers},
      {"x0 / x1", HEDDLE_SAYS(quotient(x[0], x[1], dtype)), {"", "1..9"}, numbers},
      {"min(x0, x1)", HEDDLE_SAYS(lesser(x[0], x[1])), {"-9..9", "-9..9"}, with_sign},
      {"max(x0, x1)", HEDDLE_SAYS(greater(x[0], x[1])), {"-9..9", "-9..9"}, with_sign},
      {"max(min(x0, x1), x2)", HEDDLE_SAYS(greater(lesser(x[0], x[1]), x[2])), {"", "", ""}, numbers},
      {"pow(x0, x1)", HEDDLE_SAYS(std::pow(x[0], x[1])), {"0..4", "0..5"}, numbers},
      {"mod(x0, x1)", HEDDLE_SAYS(floored_remainder(x[0], x[1])), {"-50..50", "-9..0"}, with_sign},
      {"fmod(x0, x1)", HEDDLE_SAYS(std::fmod(x[0], x[1])), {"-50..50", "1..9"}, with_sign},
      {"neg(x0)", HEDDLE_SAYS(-x[0]), {"-9..9"}, with_sign},
      {"-x0", HEDDLE_SAYS(-x[0]), {"-9..9"}, with_sign},
      {"abs(x0)", HEDDLE_SAYS(std::fabs(x[0])), {"-9..9"}, with_sign},
      {"sign(x0)",
       HEDDLE_SAYS(x[0] > 0   ? 1
                   : x[0] < 0 ? -1
                              : x[0]),
       {"-2..2"},
       with_sign},
      // The low bits are kept between operations too.
      {"(x0 + x1) / 2", HEDDLE_SAYS(quotient(rounded(dtype, x[0] + x[1]), 2, dtype)), {"50..120", "50..120"}, integers},
      {"max(x0 * x1, x2)", HEDDLE_SAYS(greater(rounded(dtype, x[0] * x[1]), x[2])), {"0..100", "0..100", "0..60"}, integers},
      {"(x0 + x1) / 2", HEDDLE_SAYS(quotient(rounded(dtype, x[0] + x[1]), 2, dtype)), {"9e3..32767", "9e3..32767"}, {"i16"}},
      {"(x0 + x1) / 2", HEDDLE_SAYS(quotient(rounded(dtype, x[0] + x[1]), 2, dtype)), {"9e3..65535", "9e3..65535"}, {"u16"}},
      {"(x0 + x1) / 2", HEDDLE_SAYS(quotient(rounded(dtype, x[0] + x[1]), 2, dtype)), {"5e8..2e9", "5e8..2e9"}, {"i32"}},
      {"(x0 + x1) / 2", HEDDLE_SAYS(quotient(rounded(dtype, x[0] + x[1]), 2, dtype)), {"1e9..4e9", "1e9..4e9"}, {"u32"}},
      {"(x0 + x1) / 2", HEDDLE_SAYS(quotient(rounded(dtype, x[0] + x[1]), 2, dtype)), {"2e18..9e18", "2e18..9e18"}, {"i64", "u64"}},
      {"max(x0 * x1, x2)", HEDDLE_SAYS(greater(rounded(dtype, x[0] * x[1]), x[2])), {"0..400", "0..400", "0..9e3"}, {"i16", "u16"}},
      {"max(x0 * x1, x2)", HEDDLE_SAYS(greater(rounded(dtype, x[0] * x[1]), x[2])), {"0..9e4", "0..9e4", "0..9e8"}, {"i32", "u32"}},
      {"shift_left(x0, x1) / 3",
       HEDDLE_SAYS(quotient(rounded(dtype, static_cast<Number>(bits(x[0]) << bits(x[1]))), 3, dtype)),
       {"0..127", "0..8"},
       integers},
      {"shift_left(x0, x1) / 3",
       HEDDLE_SAYS(quotient(rounded(dtype, static_cast<Number>(bits(x[0]) << bits(x[1]))), 3, dtype)),
       {"0..3e4", "0..16"},
       {"i16", "u16", "i32", "u32"}},
      {"pow(x0, 3) / 5", HEDDLE_SAYS(quotient(rounded(dtype, x[0] * x[0] * x[0]), 5, dtype)), {"0..100"}, integers},
      {"lt(x0 - x1, x1)", HEDDLE_SAYS(truth(rounded(dtype, x[0] - x[1]) < x[1])), {"0..9", "0..9"}, integers, true},
      {"bit_not(x0) / 3", HEDDLE_SAYS(quotient(rounded(dtype, static_cast<Number>(~bits(x[0]))), 3, dtype)), {"0..99"}, integers},
  };
}

Programs comparisons() {
  return {
      {"lt(x0, x1)", HEDDLE_SAYS(truth(x[0] < x[1])), {"0..4", "0..4"}, numbers, true},
      {"le(x0, x1)", HEDDLE_SAYS(truth(x[0] <= x[1])), {"0..4", "0..4"}, numbers, true},
      {"gt(x0, x1)", HEDDLE_SAYS(truth(x[0] > x[1])), {"0..4", "0..4"}, numbers, true},
      {"ge(x0, x1)", HEDDLE_SAYS(truth(x[0] >= x[1])), {"0..4", "0..4"}, numbers, true},
      {"eq(x0, x1)", HEDDLE_SAYS(truth(x[0] == x[1])), {"0..4", "0..4"}, joined({numbers, {"bool"}}), true},
      {"ne(x0, x1)", HEDDLE_SAYS(truth(x[0] != x[1])), {"0..4", "0..4"}, joined({numbers, {"bool"}}), true},
      {"and(x0, x1)", HEDDLE_SAYS(truth(x[0] != 0 && x[1] != 0)), {"0..2", "0..2"}, joined({integers, {"bool"}}), true},
      {"or(x0, x1)", HEDDLE_SAYS(truth(x[0] != 0 || x[1] != 0)), {"0..2", "0..2"}, joined({integers, {"bool"}}), true},
      {"xor(x0, x1)", HEDDLE_SAYS(truth((x[0] != 0) != (x[1] != 0))), {"0..2", "0..2"}, joined({integers, {"bool"}}), true},
      {"and(gt(x0, 1), lt(x1, 2))", HEDDLE_SAYS(truth(x[0] > 1 && x[1] < 2)), {"0..4", "0..4"}, numbers, true},
      {"or(x0, xor(x1, x2))", HEDDLE_SAYS(truth(x[0] != 0 || (x[1] != 0) != (x[2] != 0))), {"", "", ""}, float_names, true},
      {"not(x0)", HEDDLE_SAYS(truth(x[0] == 0)), {"0..3"}, joined({numbers, {"bool"}}), true},
      {"isnan(x0)", HEDDLE_SAYS(truth(std::isnan(x[0]))), {""}, float_names, true},
      {"isinf(x0)", HEDDLE_SAYS(truth(std::isinf(x[0]))), {""}, float_names, true},
      {"isnan(x0 / x0)", HEDDLE_SAYS(truth(std::isnan(x[0] / x[0]))), {""}, float_names, true},
      {"select(gt(x0, x1), x0, x2)", HEDDLE_SAYS(x[0] > x[1] ? x[0] : x[2]), {"0..9", "0..9", "0..9"}, numbers},
      {"select(x0, x1, -x1)", HEDDLE_SAYS(x[0] != 0 ? x[1] : -x[1]), {"-2..2", "-9..9"}, with_sign},
      {"bit_and(x0, x1)", HEDDLE_SAYS(static_cast<Number>(bits(x[0]) & bits(x[1]))), {"-99..99", "-99..99"}, integers},
      {"bit_or(x0, x1)", HEDDLE_SAYS(static_cast<Number>(bits(x[0]) | bits(x[1]))), {"-99..99", "-99..99"}, integers},
      {"bit_xor(x0, x1)", HEDDLE_SAYS(static_cast<Number>(bits(x[0]) ^ bits(x[1]))), {"-99..99", "-99..99"}, integers},
      {"bit_not(x0)", HEDDLE_SAYS(static_cast<Number>(~bits(x[0]))), {"-99..99"}, integers},
      {"shift_left(x0, x1)", HEDDLE_SAYS(static_cast<Number>(bits(x[0]) << bits(x[1]))), {"0..99", "0..8"}, integers},
      {"shift_right(x0, x1)", HEDDLE_SAYS(static_cast<Number>(bits(x[0]) >> bits(x[1]))), {"0..127", "0..8"}, integers},
      {"bit_or(shift_left(x0, 4), shift_right(x0, 4))",
       HEDDLE_SAYS(static_cast<Number>(bits(x[0]) << 4 | bits(x[0]) >> 4)),
       {"0..256"},
       unsigned_integer_names},
  };
}

Programs functions() {
  return {
      {"exp(x0)", HEDDLE_SAYS(std::exp(x[0])), {"-4..4"}, float_names},
      {"log(x0)", HEDDLE_SAYS(std::log(x[0])), {"0..9"}, float_names},
      {"sqrt(x0)", HEDDLE_SAYS(std::sqrt(x[0])), {"0..9"}, float_names},
      {"rsqrt(x0)", HEDDLE_SAYS(1 / std::sqrt(x[0])), {"0..9"}, float_names},
      {"reciprocal(x0)", HEDDLE_SAYS(1 / x[0]), {"-4..4"}, float_names},
      {"tanh(x0)", HEDDLE_SAYS(std::tanh(x[0])), {"-4..4"}, float_names},
      {"erf(x0)", HEDDLE_SAYS(std::erf(x[0])), {"-4..4"}, float_names},
      {"sigmoid(x0)", HEDDLE_SAYS(sigmoid(x[0])), {"-90..40"}, float_names},
      {"floor(x0)", HEDDLE_SAYS(std::floor(x[0])), {"-4..4"}, float_names},
      {"ceil(x0)", HEDDLE_SAYS(std::ceil(x[0])), {"-4..4"}, float_names},
      {"round(x0)", HEDDLE_SAYS(std::nearbyint(x[0])), {"-4..4"}, float_names},
      {"sin(x0)", HEDDLE_SAYS(std::sin(x[0])), {"-9..9"}, float_names},
      {"cos(x0)", HEDDLE_SAYS(std::cos(x[0])), {"-9..9"}, float_names},
      {"tan(x0)", HEDDLE_SAYS(std::tan(x[0])), {"-9..9"}, float_names},
      {"asin(x0)", HEDDLE_SAYS(std::asin(x[0])), {""}, float_names},
      {"acos(x0)", HEDDLE_SAYS(std::acos(x[0])), {""}, float_names},
      {"atan(x0)", HEDDLE_SAYS(std::atan(x[0])), {"-9..9"}, float_names},
      {"sinh(x0)", HEDDLE_SAYS(std::sinh(x[0])), {"-4..4"}, float_names},
      {"cosh(x0)", HEDDLE_SAYS(std::cosh(x[0])), {"-4..4"}, float_names},
      {"asinh(x0)", HEDDLE_SAYS(std::asinh(x[0])), {"-9..9"}, float_names},
      {"acosh(x0)", HEDDLE_SAYS(std::acosh(x[0])), {"1..9"}, float_names},
      {"atanh(x0)", HEDDLE_SAYS(std::atanh(x[0])), {""}, float_names},
      {"log1p(x0)", HEDDLE_SAYS(std::log1p(x[0])), {"-1..9"}, float_names},
      {"log1p(abs(x0) / 1024)", HEDDLE_SAYS(std::log1p(std::fabs(x[0]) / 1024)), {""}, float_names},
      {"expm1(x0)", HEDDLE_SAYS(std::expm1(x[0])), {"-4..4"}, float_names},
      {"expm1(x0 / 1024)", HEDDLE_SAYS(std::expm1(x[0] / 1024)), {""}, float_names},
      // The sign of a zero shows in the quotient; a comparison of numbers does not show it.
      {"1 / ceil(x0)", HEDDLE_SAYS(1 / std::ceil(x[0])), {"-1..0"}, float_names},
      {"1 / round(x0 / 8)", HEDDLE_SAYS(1 / std::nearbyint(x[0] / 8)), {"-1..0"}, float_names},
      {"1 / neg(floor(abs(x0)))", HEDDLE_SAYS(1 / -std::floor(std::fabs(x[0]))), {""}, float_names},
      {"1 / sin(x0 * 0)", HEDDLE_SAYS(1 / std::sin(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / tan(x0 * 0)", HEDDLE_SAYS(1 / std::tan(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / asin(x0 * 0)", HEDDLE_SAYS(1 / std::asin(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / atan(x0 * 0)", HEDDLE_SAYS(1 / std::atan(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / sinh(x0 * 0)", HEDDLE_SAYS(1 / std::sinh(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / asinh(x0 * 0)", HEDDLE_SAYS(1 / std::asinh(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / atanh(x0 * 0)", HEDDLE_SAYS(1 / std::atanh(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / tanh(x0 * 0)", HEDDLE_SAYS(1 / std::tanh(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / erf(x0 * 0)", HEDDLE_SAYS(1 / std::erf(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / expm1(x0 * 0)", HEDDLE_SAYS(1 / std::expm1(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / log1p(x0 * 0)", HEDDLE_SAYS(1 / std::log1p(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / sqrt(x0 * 0)", HEDDLE_SAYS(1 / std::sqrt(x[0] * 0)), {"-1..0"}, float_names},
      {"1 / fmod(x0, abs(x0))", HEDDLE_SAYS(1 / std::fmod(x[0], std::fabs(x[0]))), {"-1..0"}, float_names},
  };
}

// Several operations, names, constants, and programs that a compiler might simplify wrongly.
Programs compounds() {
  Programs programs = {
      {"x0", HEDDLE_SAYS(x[0]), {""}, joined({numbers, {"bool"}})},
      {"x1", HEDDLE_SAYS(x[1]), {"", ""}, numbers},
      {"7", HEDDLE_SAYS(7), {""}, numbers},
      {"2 + 3 * x1", HEDDLE_SAYS(2 + 3 * x[1]), {"", "0..9"}, numbers},
      {"x0 * x1 + x2",
       HEDDLE_SAYS(x[0] * x[1] + x[2]),
       {"", "", ""},
       numbers,
       false,
       HEDDLE_SCALE(std::fabs(x[0] * x[1]) + std::fabs(x[2]))},
      {"x2 - x0 * x1",
       HEDDLE_SAYS(x[2] - x[0] * x[1]),
       {"", "", ""},
       numbers,
       false,
       HEDDLE_SCALE(std::fabs(x[0] * x[1]) + std::fabs(x[2]))},
      // Must be rounded once, in f32 for f16: both terms are large and their difference small.
      {"(x0 + x1) - x0",
       HEDDLE_SAYS((x[0] + x[1]) - x[0]),
       {"1..2", ""},
       float_names,
       false,
       HEDDLE_SCALE(2 * std::fabs(x[0]) + std::fabs(x[1]))},
      {"t = x0 + x1; t * sigmoid(t)", HEDDLE_SAYS((x[0] + x[1]) * sigmoid(x[0] + x[1])), {"0..2", "0..2"}, float_names},
      {"a = x0 * 0.5; b = a * a; c = b + a; c * c",
       HEDDLE_SAYS((x[0] / 2 + x[0] * x[0] / 4) * (x[0] / 2 + x[0] * x[0] / 4)),
       {"0..3"},
       float_names},
      // Values that are used twice at their end, then two values at once.
      {"a = x0 + x1; b = a * a; c = x0 - x1; b * c", HEDDLE_SAYS((x[0] + x[1]) * (x[0] + x[1]) * (x[0] - x[1])), {"4..9", "0..3"}, numbers},
      {"x0 * x1 + x2 * x3 + x4 * x5 + x6 * x7 + x8",
       HEDDLE_SAYS(x[0] * x[1] + x[2] * x[3] + x[4] * x[5] + x[6] * x[7] + x[8]),
       {"0..3", "0..3", "0..3", "0..3", "0..3", "0..3", "0..3", "0..3", "0..3"},
       numbers},
      {"select(lt(x0, 1), select(lt(x1, 1), x0, x1), select(ge(x2, 2), x2, x0 + x1))",
       HEDDLE_SAYS(x[0] < 1 ? (x[1] < 1 ? x[0] : x[1]) : (x[2] >= 2 ? x[2] : x[0] + x[1])),
       {"0..3", "0..3", "0..4"},
       numbers},
      {"pow(x0, 0)", HEDDLE_SAYS(1 + 0 * x[0]), {"1..5"}, numbers},
      {"pow(x0, 1)", HEDDLE_SAYS(x[0]), {"0..5"}, numbers},
      {"pow(x0, 2)", HEDDLE_SAYS(x[0] * x[0]), {"0..9"}, numbers},
      {"pow(x0, 3)", HEDDLE_SAYS(x[0] * x[0] * x[0]), {"0..5"}, numbers},
      {"pow(x0, 0.5)", HEDDLE_SAYS(std::sqrt(x[0])), {"0..9"}, float_names},
      {"pow(x0, -1.5)", HEDDLE_SAYS(std::pow(x[0], Number(-1.5))), {"1..9"}, float_names},
      {"pow(2, x0)", HEDDLE_SAYS(std::exp2(x[0])), {"0..6"}, numbers},
      {"x0 / 3 * -2", HEDDLE_SAYS(quotient(x[0], 3, dtype) * -2), {"0..50"}, with_sign},
      {"0.5 * x0 * (1 + erf(0.7071067811865476 * x0))", HEDDLE_SAYS(gelu(x[0])), {"-4..4"}, float_names, false, gelu_scale},
      {"(erf(x0 / 1.4142135623730951) + 1) * (x0 * 0.5)", HEDDLE_SAYS(gelu(x[0])), {"-4..4"}, float_names, false, gelu_scale},
      {"x0 * (1 + erf(x0 * 0.7071067811865476)) * 0.5", HEDDLE_SAYS(gelu(x[0])), {"-4..4"}, float_names, false, gelu_scale},
      {"0.5 * (x0 * (erf(x0 / 1.4142135623730951) + 1))", HEDDLE_SAYS(gelu(x[0])), {"-4..4"}, float_names, false, gelu_scale},
      {"x0 * (0.5 * (1 + erf(x0 * 0.7071067811865476)))", HEDDLE_SAYS(gelu(x[0])), {"-4..4"}, float_names, false, gelu_scale},
      {"x0 * ((1 + erf(x0 / 1.4142135623730951)) * 0.5)", HEDDLE_SAYS(gelu(x[0])), {"-4..4"}, float_names, false, gelu_scale},
      // Nearly a gelu: it has two inputs, and other constants.
      {"0.5 * x0 * (1 + erf(0.7071067811865476 * x1))",
       HEDDLE_SAYS(x[0] / 2 * (1 + std::erf(x[1] / std::sqrt(Number(2))))),
       {"-4..4", "0..4"},
       float_names},
      {"0.5 * x0 * (1 + erf(0.75 * x0))", HEDDLE_SAYS(x[0] / 2 * (1 + std::erf(Number(0.75) * x[0]))), {"0..4"}, float_names},
      {"0.25 * x0 * (1 + erf(0.7071067811865476 * x0))", HEDDLE_SAYS(gelu(x[0]) / 2), {"0..4"}, float_names},
  };
  for (PointwiseProgram& program : programs) program.takes_special = false;
  return programs;
}

}  // namespace

const std::vector<PointwiseProgram>& pointwise_programs() {
  static const Programs& all = *[] {
    auto* programs = new Programs();
    for (const auto part : {arithmetic, comparisons, functions, compounds}) {
      const Programs own = part();
      programs->insert(programs->end(), own.begin(), own.end());
    }
    return programs;
  }();
  return all;
}

}  // namespace heddle::conformance

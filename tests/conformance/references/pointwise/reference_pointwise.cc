// Operators of two inputs, element by element: arithmetic, comparisons, logic, bits. Also IsInf, IsNaN and Not.
#include <cmath>

#include "conformance/cases/pointwise_cases.h"
#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_pointwise {
namespace {

// The reference's 64 bits are themselves rounded, which shows in f64 next to a tie.
const std::map<DType, double> rounded_twice = {{DType::f64, 0.01}};

// Integers that neither f64 (2^53) nor an int64_t (2^63) can hold.
Cases large_integers(const std::string& attributes = "") {
  return {{Kind::odd,
           "i64[5] = 9007199254740993 -9007199254740993 4611686018427387905 9223372036854775807 -9223372036854775807, "
           "i64[5] = 9007199254740992 -9007199254740992 4611686018427387904 9223372036854775806 -9223372036854775806" +
               attributes},
          {Kind::odd,
           "u64[5] = 18446744073709551615 9223372036854775809 9223372036854775808 9007199254740993 4294967296, "
           "u64[5] = 18446744073709551614 9223372036854775808 9223372036854775808 9007199254740992 3" +
               attributes},
          {Kind::odd, "i32[3] = 2147483647 -2147483647 16777217, i32[3] = 2147483646 -2147483646 16777216" + attributes},
          {Kind::odd, "u32[3] = 4294967295 2147483648 16777217, u32[3] = 4294967294 2147483647 16777216" + attributes}};
}

// All pairs of special numbers.
Cases special_pairs(const std::string& attributes = "") {
  return over_special(Kind::broadcast, "T[18,1] = SPECIAL, T[18] = SPECIAL" + attributes);
}

// ---------------------------------------------------------------- arithmetic

Row arithmetic(const std::string& type, Number (*f)(Number, Number), Cases cases) {
  return {.type = type,
          .reference = of_two(f),
          .cases = joined({std::move(cases), special_pairs()}),
          .without = no_strides,
          .ulps_of = rounded_twice};
}

Cases signed_pairs(const std::string& attributes = "") {
  const Names all = joined({float_names, signed_integer_names});
  return joined({each(all, Kind::odd, "T[93] = -11..12, T[93] = 1..6" + attributes),
                 each(all, Kind::odd, "T[93] = -11..12, T[93] = -6..0" + attributes)});
}

Row add() {
  return arithmetic(
      "Add", [](Number a, Number b) { return a + b; },
      joined({two_inputs("", ""),
              signed_pairs(),
              {{Kind::odd, "i64[3] = 9007199254740993 -9007199254740993 9223372036854775806, i64[3] = 4 -4 1"},
               {Kind::odd, "u64[3] = 18446744073709551610 9223372036854775807 9007199254740993, u64[3] = 5 2 4"}}}));
}
Row sub() {
  return arithmetic(
      "Sub", [](Number a, Number b) { return a - b; }, joined({two_inputs("", ""), signed_pairs(), large_integers()}));
}
Row mul() {
  return arithmetic(
      "Mul", [](Number a, Number b) { return a * b; },
      joined({two_inputs("", ""),
              signed_pairs(),
              {{Kind::odd, "i64[2] = 3037000499 -3037000499, i64[2] = 3037000499 3037000499"},
               {Kind::odd, "u64[2] = 4294967295 6148914691236517205, u64[2] = 4294967295 3"}}}));
}

// Integers round toward zero; division by zero gives 0, as the declaration says.
Row div() {
  const auto quotient = [](const Call& c) {
    const bool whole = !is_floating(c[0].dtype);
    return std::vector{elementwise(c, c[0].dtype, [whole](const Inputs& x) {
      if (!whole) return x[0] / x[1];
      return x[1] == 0 ? Number{0} : (x[0] - std::fmod(x[0], x[1])) / x[1];
    })};
  };
  return {.type = "Div",
          .reference = quotient,
          .cases = joined({two_inputs("", "1..9"),
                           signed_pairs(),
                           large_integers(),
                           special_pairs(),
                           each(joined({signed_integer_names, unsigned_integer_names}), Kind::odd, "T[37] = 1..50, T[37] = 0..3"),
                           {{Kind::odd,
                             "u64[3] = 18446744073709551615 18446744073709551615 9223372036854775807, "
                             "u64[3] = 3 18446744073709551615 9223372036854775808"}}}),
          .without = no_strides,
          .ulps_of = rounded_twice};
}

Row mod() {
  const auto remainder = [](const Call& c) {
    const bool as_dividend = c.i("fmod", 0) != 0;
    return std::vector{elementwise(c, c[0].dtype, [as_dividend](const Inputs& x) {
      const Number rest = std::fmod(x[0], x[1]);
      return !as_dividend && rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
    })};
  };
  Cases cases = joined({two_inputs("-50..50", "1..9"), signed_pairs(), signed_pairs("; fmod=1"), large_integers(),
                        large_integers("; fmod=1"), special_pairs("; fmod=1")});
  cases.push_back({Kind::odd, "T[7] = -9..9, T[7] = 1..4; fmod=1"});
  cases.push_back({Kind::broadcast, "T[3,1,5] = 0..90, T[7,1] = 1..9; fmod=1"});
  cases = joined({cases, each({"f16", "f32", "i32", "i64", "u8"}, Kind::large, "T[301,257] = 0..90, T[301,257] = 1..9; fmod=1")});
  return {.type = "Mod", .reference = remainder, .cases = cases, .ulps = 0.5, .without = no_strides};
}

// The power of an integer base loses its fraction.
Row pow() {
  const Names all = joined({float_names, signed_integer_names, unsigned_integer_names});
  Cases cases = special_pairs();
  // Powers take the reference a long time: large tensors of some dtypes only.
  for (const Case& one : two_inputs("0..3", "0..5"))
    if (one.kind != Kind::large) cases.push_back(one);

  for (const std::string& base : all) {
    cases.push_back({Kind::odd, base + "[9] = 0 1 2 3 4 5 2 3 1, U[9] = 0 3 4 2 1 2 6 0 5"});
    for (const std::string& exponent : all) cases.push_back({Kind::odd, base + "[19] = 0..6, " + exponent + "[19] = 0..3"});
    for (const std::string& exponent : float_names)
      cases.push_back({Kind::broadcast, base + "[5,1] = 1 2 4 9 16, " + exponent + "[6] = 0.5 1.5 0 1 0.75 1.125"});
    cases.push_back({Kind::large, base + "[97,257] = 1..7, f32[97,257] = 0..2"});
  }
  cases = joined({cases,
                  each(float_names, Kind::odd, "T[5] = -2 -3 -0.5 -1 -0, i32[5] = 3 2 -3 7 3"),
                  each({"f32", "f64"}, Kind::large, "T[301,257] = 0..20, T[301,257] = -20..20"),
                  {{Kind::odd, "i64[3] = 3 -3 7, i64[3] = 39 39 22"},
                   {Kind::odd, "u64[2] = 3 2, u64[2] = 40 63"},
                   {Kind::odd, "i32[2] = -2 46341, i32[2] = 31 1"}}});
  return {.type = "Pow",
          .reference = of_two([](Number x, Number y) { return std::pow(x, y); }),
          .cases = cases,
          .ulps = 0.5,
          .without = no_strides,
          .ulps_of = beside_f32(0.5, 1)};
}

// ---------------------------------------------------------------- comparisons

// Random floats are rarely equal, so these are few numbers, each of which is compared with each.
Cases ties(const std::string& attributes = "") {
  const Names all = joined({float_names, signed_integer_names, unsigned_integer_names});
  const std::string some = repeated({"0", "1", "2", "1", "3"}, 999), others = repeated({"1", "1", "0", "2"}, 999);
  return joined({each(all, Kind::odd, "T[999] = " + some + ", T[999] = " + others + attributes),
                 each(all, Kind::broadcast, "T[27,1,37] = " + some + ", T[3,37] = " + others.substr(0, 222) + attributes)});
}

Row comparison(const std::string& type, Number (*f)(Number, Number)) {
  Cases cases = joined({two_inputs("0..4", "0..4"), ties(), large_integers(), special_pairs(),
                        each(joined({float_names, signed_integer_names}), Kind::odd, "T[65] = -3..3, T[65] = -3..3")});
  return {.type = type, .reference = of_two(f, DType::boolean), .cases = cases, .without = no_strides};
}

Row test(const std::string& type, const Reference& reference, const Names& attributes) {
  const std::string many = repeated({"nan", "0", "inf", "1", "-inf", "-2"}, 70001);
  Cases cases =
      joined({one_input_cases(), over_special(Kind::odd, "T[18] = SPECIAL"), each(float_names, Kind::large, "T[70001] = " + many)});
  for (const std::string& given : attributes) {
    cases = joined({cases, over_special(Kind::odd, "T[18] = SPECIAL; " + given)});
    cases.push_back({Kind::large, "f32[70001] = " + many + "; " + given});
  }
  return {.type = type, .reference = reference, .cases = cases, .without = one_input_only};
}

Row is_infinite() {
  const auto infinite = [](const Call& c) {
    const bool below = c.i("detect_negative", 1) != 0, above = c.i("detect_positive", 1) != 0;
    return std::vector{
        elementwise(c, DType::boolean, [=](const Inputs& x) { return Number(std::isinf(x[0]) && (x[0] < 0 ? below : above)); })};
  };
  return test("IsInf", infinite, {"detect_negative=0", "detect_positive=0", "detect_negative=0, detect_positive=0"});
}
Row is_nan() {
  const auto nan = [](const Call& c) {
    return std::vector{elementwise(c, DType::boolean, [](const Inputs& x) { return Number(std::isnan(x[0])); })};
  };
  return test("IsNaN", nan, {});
}

// ---------------------------------------------------------------- logic and bits

Row logic(const std::string& type, Number (*f)(Number, Number)) {
  return {.type = type, .reference = of_two(f), .cases = two_inputs("", ""), .without = no_strides};
}

Row logical_not() {
  return {
      .type = "Not", .reference = of_one([](Number x) { return Number(x == 0); }), .cases = one_input_cases(), .without = one_input_only};
}

uint64_t bits(Number x) {
  return x < 0 ? uint64_t{0} - static_cast<uint64_t>(-x) : static_cast<uint64_t>(x);
}

// The low bits are right for any width: `rounded` keeps those of the dtype.
Cases all_bits() {
  return {{Kind::odd, "i8[99] = -128..128, i8[99] = -128..128"},
          {Kind::odd, "i16[99] = -32768..32768, i16[99] = -32768..32768"},
          {Kind::odd, "i32[99] = -2147483648..2147483648, i32[99] = -2147483648..2147483648"},
          {Kind::odd, "i64[99] = -9e18..9e18, i64[99] = -9e18..9e18"},
          {Kind::odd, "u8[99] = 0..256, u8[99] = 0..256"},
          {Kind::odd, "u16[99] = 0..65536, u16[99] = 0..65536"},
          {Kind::odd, "u32[99] = 0..4294967296, u32[99] = 0..4294967296"},
          {Kind::odd, "u64[99] = 0..9e18, u64[99] = 0..9e18"},
          {Kind::odd, "u64[3] = 18446744073709551615 9223372036854775808 1, u64[3] = 9223372036854775809 18446744073709551614 3"}};
}

Row bitwise(const std::string& type, Number (*f)(Number, Number)) {
  return {.type = type, .reference = of_two(f), .cases = joined({two_inputs("", ""), all_bits()}), .without = no_strides};
}

Row bitwise_not() {
  Cases cases = one_input_cases();
  for (const Case& of_two_inputs : all_bits()) cases.push_back({Kind::odd, of_two_inputs.call.substr(0, of_two_inputs.call.find(','))});
  return {.type = "BitwiseNot",
          .reference = of_one([](Number x) { return static_cast<Number>(~bits(x)); }),
          .cases = cases,
          .without = one_input_only};
}

// A shift by the width or more leaves nothing.
Row bit_shift() {
  const auto shifted = [](const Call& c) {
    const bool left = c.s("direction", "") == "LEFT";
    const int width = 8 * byte_width(c[0].dtype);
    return std::vector{elementwise(c, c[0].dtype, [left, width](const Inputs& x) {
      if (x[1] >= width) return Number{0};
      const auto by = static_cast<int>(x[1]);
      return static_cast<Number>(left ? bits(x[0]) << by : bits(x[0]) >> by);
    })};
  };
  Cases cases;
  for (const std::string direction : {"; direction=\"LEFT\"", "; direction=\"RIGHT\""}) {
    for (const Case& one : two_inputs("", "0..9")) cases.push_back({one.kind, one.call + direction});
    for (const std::string wide :
         {"u8[99] = 0..256, u8[99] = 0..10", "u16[99] = 0..65536, u16[99] = 0..20", "u32[99] = 0..4294967296, u32[99] = 0..40",
          "u64[99] = 0..9e18, u64[99] = 0..80", "u64[3] = 18446744073709551615 9223372036854775809 1, u64[3] = 63 1 64",
          "u64[2] = 1 3, u64[2] = 4294967296 18446744073709551615", "u32[2] = 1 3, u32[2] = 2147483648 4294967295"})
      cases.push_back({Kind::odd, wide + direction});
    cases = joined({cases, each(unsigned_integer_names, Kind::broadcast,
                                "T[4,1] = 1 3 200 255, T[12] = 0 1 7 8 9 15 16 31 32 63 64 255" + direction)});
  }
  return {.type = "BitShift", .reference = shifted, .cases = cases, .without = no_strides};
}

}  // namespace
}  // namespace reference_pointwise

std::vector<Row> pointwise_rows() {
  using namespace reference_pointwise;
  return {add(),
          sub(),
          mul(),
          div(),
          mod(),
          pow(),
          comparison("Equal", [](Number a, Number b) { return Number(a == b); }),
          comparison("Greater", [](Number a, Number b) { return Number(a > b); }),
          comparison("GreaterOrEqual", [](Number a, Number b) { return Number(a >= b); }),
          comparison("Less", [](Number a, Number b) { return Number(a < b); }),
          comparison("LessOrEqual", [](Number a, Number b) { return Number(a <= b); }),
          is_infinite(),
          is_nan(),
          logic("And", [](Number a, Number b) { return Number(a != 0 && b != 0); }),
          logic("Or", [](Number a, Number b) { return Number(a != 0 || b != 0); }),
          logic("Xor", [](Number a, Number b) { return Number((a != 0) != (b != 0)); }),
          logical_not(),
          bit_shift(),
          bitwise("BitwiseAnd", [](Number a, Number b) { return static_cast<Number>(bits(a) & bits(b)); }),
          bitwise("BitwiseOr", [](Number a, Number b) { return static_cast<Number>(bits(a) | bits(b)); }),
          bitwise("BitwiseXor", [](Number a, Number b) { return static_cast<Number>(bits(a) ^ bits(b)); }),
          bitwise_not()};
}

}  // namespace heddle::conformance

// Operators of any number of inputs (Max, Min, Sum and Mean), and Where.
#include <cmath>

#include "conformance/cases/pointwise_cases.h"
#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_pointwise_other {
namespace {

// ---------------------------------------------------------------- any number of inputs

// Returns the text of `count` inputs of the given shapes, in turn.
std::string inputs(const Names& shapes, int count, const std::string& range = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", T" : "T") + shapes[static_cast<size_t>(i) % shapes.size()] + range;
  return text;
}

// A kernel may fold many inputs in several steps, so there are numbers of inputs about powers of two.
Cases of_any_number(const std::string& range) {
  Cases cases = {{Kind::empty, inputs({"[3,0,2]"}, 1)},
                 {Kind::empty, inputs({"[3,1,2]", "[0,1]"}, 3)},
                 {Kind::empty, inputs({"[0]"}, 70)},
                 {Kind::broadcast, inputs({"[3,1,5]", "[7,1]"}, 2, range)},
                 {Kind::broadcast, inputs({"[]", "[2,3,17]", "[3,1]", "[17]"}, 4, range)},
                 {Kind::broadcast, inputs({"[33]", "[2,33]", "[1]"}, 7, range)},
                 {Kind::broadcast, inputs({"[5,1]", "[33]", "[]", "[4,5,33]"}, 131, range)},
                 {Kind::rank, inputs({"[1,2,1,2,1,2,1,3]", "[2,1,2,1,2,1,2,1]"}, 3, range)},
                 {Kind::rank, inputs({"[1,2,1,2,1,2,1,3]", "[2,1,2,1,2,1,2,1]"}, 66, range)},
                 {Kind::large, inputs({"[301,257]"}, 1, range)},
                 {Kind::large, inputs({"[301,257]", "[257]", "[301,1]"}, 3, range)}};
  for (const char* shape : {"[]", "[7]", "[17]", "[65]", "[3,5,17]"})
    for (const int count : {1, 2, 3, 5}) cases.push_back({Kind::odd, inputs({shape}, count, range)});
  for (const int count : {31, 32, 33, 63, 64, 65, 126, 127, 128, 129, 190, 191, 300})
    cases.push_back({Kind::odd, inputs({"[37]"}, count, range)});
  // Several tiles, for some dtypes only, because the reference takes long.
  cases = joined({cases, each({"f16", "f32"}, Kind::large, inputs({"[71,1021]"}, 66, range)),
                  each({"f64"}, Kind::large, inputs({"[71,1021]", "[71,1]"}, 130, range)),
                  over_special(Kind::broadcast, "T[18,1] = SPECIAL, T[18] = SPECIAL")});
  return cases;
}

Row extreme(const std::string& type, Number (*of_two_numbers)(Number, Number)) {
  const auto fold = [of_two_numbers](const Call& c) {
    return std::vector{elementwise(c, c[0].dtype, [of_two_numbers](const Inputs& x) {
      Number folded = x[0];
      for (const Number next : x) folded = of_two_numbers(folded, next);
      return folded;
    })};
  };
  Cases cases =
      joined({of_any_number(""),
              each(joined({float_names, signed_integer_names}), Kind::odd, "T[65] = -9..9, T[65] = -9..9"),
              {{Kind::odd, "i64[2] = 9007199254740993 -9007199254740993, i64[2] = 9007199254740992 -9007199254740992"},
               {Kind::odd, "u64[3] = 18446744073709551615 1 9223372036854775808, u64[3] = 18446744073709551614 9223372036854775808 3"},
               {Kind::odd, "u32[2] = 4294967295 1, u32[2] = 4294967294 2147483648"}}});
  return {.type = type, .reference = fold, .cases = cases, .without = no_strides};
}

// Sums are f32, or f64 for f64: sums beyond these have no mean.
Row sum(const std::string& type, bool divided) {
  const auto added = [divided](const Call& c) {
    const auto divisor = static_cast<Number>(divided ? c.inputs.size() : 1);
    Numbers result = elementwise(c, c[0].dtype, [divisor, dtype = c[0].dtype](const Inputs& x) {
      Number total = 0;
      for (const Number next : x) total += next;
      const Number stored = rounded(dtype == DType::f64 ? dtype : DType::f32, total);
      if (is_floating(dtype) && std::isinf(stored)) total = stored;
      return total / divisor;
    });
    result.scale = elementwise(c, c[0].dtype, [divisor](const Inputs& x) {
                     Number total = 0;
                     for (const Number next : x) total += std::fabs(next);
                     return total / divisor;
                   }).values;
    return std::vector{result};
  };
  return {.type = type, .reference = added, .cases = of_any_number(""), .ulps = 2, .without = no_strides, .ulps_of = beside_f32(2, 2)};
}

// ---------------------------------------------------------------- Where

Row where() {
  const Names all = joined({float_names, signed_integer_names, unsigned_integer_names, {"bool"}});
  Cases cases;
  const auto add = [&](Kind kind, const std::string& condition, const std::string& x, const std::string& y) {
    for (const Case& one : each(all, kind, ", T" + x + ", T" + y)) cases.push_back({kind, "bool" + condition + one.call});
  };
  for (const char* shape : {"[]", "[1]", "[7]", "[16]", "[17]", "[33]", "[65]", "[3,5,17]"}) add(Kind::odd, shape, shape, shape);
  add(Kind::empty, "[0]", "[0]", "[0]");
  add(Kind::empty, "[3,1,2]", "[0,1]", "[]");
  add(Kind::broadcast, "[2,1,3]", "[1,5,1]", "[7,1,1,1]");
  add(Kind::broadcast, "[]", "[2,33]", "[33]");
  add(Kind::broadcast, "[2,33]", "[]", "[1]");
  add(Kind::broadcast, "[65,1]", "[1,67]", "[65,67]");
  add(Kind::broadcast, "[3,4,1]", "[17]", "[3,1,17]");
  add(Kind::rank, "[1,2,1,2,1,2,1,3]", "[2,1,2,1,2,1,2,1]", "[2,1]");
  add(Kind::large, "[301,257]", "[301,257]", "[301,257]");
  add(Kind::large, "[301,1]", "[301,257]", "[]");
  cases = joined({cases,
                  each(float_names, Kind::broadcast, "bool[2,1] = 0 1, T[7] = nan inf -inf 0 -0 1e-7 1, T[7] = 1 nan 2 -inf 3 inf nan"),
                  {{Kind::odd, "bool[2] = 0 1, i64[2] = 9007199254740993 -9007199254740993, i64[2] = 9223372036854775807 1"},
                   {Kind::odd, "bool[2] = 0 1, u64[2] = 1 18446744073709551615, u64[2] = 9007199254740993 1"}}});
  const auto chosen = [](const Call& c) {
    return std::vector{elementwise(c, c[1].dtype, [](const Inputs& x) { return x[0] != 0 ? x[1] : x[2]; })};
  };
  return {.type = "Where", .reference = chosen, .cases = cases, .without = no_strides};
}

}  // namespace
}  // namespace reference_pointwise_other

std::vector<Row> pointwise_other_rows() {
  using namespace reference_pointwise_other;
  return {extreme("Max", greater), extreme("Min", lesser), sum("Sum", false), sum("Mean", true), where()};
}

}  // namespace heddle::conformance

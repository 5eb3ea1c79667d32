// Reductions: all elements of some axes become one.
#include <cmath>

#include "conformance/cases/movement.h"
#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_reduction {
namespace {

// A number and the magnitude that its rounding error is relative to.
struct Folded {
  Number value = 0, scale = 0;
};
using Terms = std::vector<Number>;

// ---------------------------------------------------------------- what a set of numbers becomes

// Returns the error of folding n numbers, in units of the last place: f64 has nothing wider to fold in.
Number error_of(const Terms& x, DType dtype) {
  return dtype == DType::f64 ? walk(x.size()) : 1;
}
template <class Term>
Folded sum_of(const Terms& x, DType dtype, const Term& term) {
  Folded sum;
  for (const Number n : x) {
    sum.value += term(n);
    sum.scale += std::fabs(term(n)) * error_of(x, dtype);
  }
  return sum;
}
Number itself(Number x) {
  return x;
}
Number magnitude(Number x) {
  return std::fabs(x);
}
Number square(Number x) {
  return x * x;
}

Folded fold_sum(const Terms& x, DType dtype) {
  return sum_of(x, dtype, itself);
}
Folded fold_l1(const Terms& x, DType dtype) {
  return sum_of(x, dtype, magnitude);
}
Folded fold_sum_square(const Terms& x, DType dtype) {
  return sum_of(x, dtype, square);
}
Folded fold_l2(const Terms& x, DType dtype) {
  const Number root = std::sqrt(sum_of(x, dtype, square).value);
  return {root, root * error_of(x, dtype)};
}
// For integers the fraction is dropped.
Folded fold_mean(const Terms& x, DType dtype) {
  const Folded sum = sum_of(x, dtype, itself);
  const auto count = static_cast<Number>(x.size());
  return {sum.value / count, sum.scale / count};
}
// Products of f32 are computed in f32.
Folded fold_product(const Terms& x, DType dtype) {
  Number product = 1;
  for (const Number n : x) product *= n;
  return {product, std::fabs(product) * error_of(x, dtype == DType::f32 ? DType::f64 : dtype)};
}
// A relative error of the sum is an absolute one of the logarithm.
Folded fold_log_sum(const Terms& x, DType dtype) {
  const Folded sum = sum_of(x, dtype, itself);
  return {std::log(sum.value), sum.value == 0 ? 0 : sum.scale / std::fabs(sum.value)};
}
// exp(x) is a number of long double up to x = 11356. Usually the largest x is taken out of the sum, and added to the logarithm of the rest.
Folded fold_log_sum_exp(const Terms& x, DType dtype) {
  Number largest = -HUGE_VALL, sum = 0;
  for (const Number n : x) {
    largest = std::max(largest, n);
    sum += std::exp(n);
  }
  return {std::log(sum), std::isfinite(largest) ? std::fabs(largest) + error_of(x, dtype) : 0};
}
// Returns the least number of the dtype, which is less than all others: -inf for floats.
Number min_of(DType dtype) {
  if (is_floating(dtype)) return -HUGE_VALL;
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  return is_signed ? -std::ldexp(Number{1}, 8 * static_cast<int>(byte_width(dtype)) - 1) : 0;
}
Number max_of(DType dtype) {
  return dtype == DType::boolean ? 1
         : is_floating(dtype)    ? HUGE_VALL
         : min_of(dtype) < 0     ? -1 - min_of(dtype)
                                 : std::ldexp(Number{1}, 8 * static_cast<int>(byte_width(dtype))) - 1;
}
Folded fold_max(const Terms& x, DType dtype) {
  Number most = min_of(dtype);
  for (const Number n : x) most = std::isnan(n) || n > most ? n : most;
  return {most, 0};
}
Folded fold_min(const Terms& x, DType dtype) {
  Number least = max_of(dtype);
  for (const Number n : x) least = std::isnan(n) || n < least ? n : least;
  return {least, 0};
}

// ---------------------------------------------------------------- the reference

std::vector<bool> reduced_axes(const Call& call) {
  const int rank = call[0].shape.rank();
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  const Ints axes = call.has(1) ? call.list(1) : Ints();
  if (axes.empty() && call.i("noop_with_empty_axes", 0) == 0) reduced.assign(reduced.size(), true);
  for (const int64_t axis : axes) reduced[static_cast<size_t>(positive_axis(axis, rank))] = true;
  return reduced;
}

// Folds all elements for each position of `kept`; the result has another shape.
template <Folded (*fold)(const Terms&, DType)>
Numbers folded_to(const Numbers& x, const Shape& kept, const Shape& shape) {
  std::vector<Terms> terms(static_cast<size_t>(kept.element_count()));
  for (int64_t i = 0; i < x.size(); ++i)
    terms[static_cast<size_t>(broadcast_flat(position_of(i, x.shape), kept))].push_back(x.values[static_cast<size_t>(i)]);
  Numbers y = zeros(x.dtype, shape);
  y.scale = y.values;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Folded folded = fold(terms[i], x.dtype);
    y.values[i] = folded.value;
    y.scale[i] = once_rounded(x.dtype, folded.scale);
  }
  return y;
}

std::vector<Numbers> sum_to(const Call& call) {
  Shape shape;
  for (const int64_t extent : call.list(1)) shape.push_back(extent);
  return {folded_to<fold_sum>(call[0], shape, shape)};
}

template <Folded (*fold)(const Terms&, DType)>
std::vector<Numbers> reduce(const Call& call) {
  const Numbers& x = call[0];
  const std::vector<bool> reduced = reduced_axes(call);
  Shape kept, shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const bool gone = reduced[static_cast<size_t>(axis)];
    kept.push_back(gone ? 1 : x.shape[axis]);
    if (!gone || call.i("keepdims", 1) != 0) shape.push_back(kept[axis]);
  }
  return {folded_to<fold>(x, kept, shape)};
}

// ---------------------------------------------------------------- cases

// Adds the same call in each of the dtypes of floats.
void add_floats(std::vector<Case>& cases, Kind kind, const std::string& call) {
  for (const char* dtype : {"f16", "bf16", "f32", "f64"}) cases.push_back({kind, dtype + call});
}

// Returns calls with numbers of the range, which has none below 0: for unsigned integers these would be very large.
std::vector<Case> reductions(const std::string& range) {
  const std::string s = " = " + range;
  std::vector<Case> cases = {{Kind::odd, "T[]" + s},
                             {Kind::odd, "T[7]" + s},
                             {Kind::odd, "T[7]" + s + "; keepdims=0"},
                             {Kind::odd, "T[3,5,17]" + s},
                             {Kind::odd, "T[3,5,17]" + s + ", i64[2] = 0 -1; keepdims=0"},
                             {Kind::odd, "T[3,5,17]" + s + ", i64[2] = 1 2"},
                             {Kind::odd, "T[3,5]" + s + "; noop_with_empty_axes=1"},
                             {Kind::odd, "T[3,5]" + s + ", i64[0]; noop_with_empty_axes=1, keepdims=0"},
                             {Kind::odd, "T[3,5]" + s + ", i64[0]"},
                             {Kind::odd, "T[3,5]" + s + ", i64[1] = 0; noop_with_empty_axes=1"},
                             {Kind::empty, "T[3,0,2]" + s + ", i64[1] = 0; keepdims=0"},
                             {Kind::empty, "T[0,5]" + s + ", i64[1] = -1"},
                             {Kind::strided, "T[4,6,5]" + s + ", i64[1] = -2"},
                             {Kind::strided, "T[3,7,33]" + s + ", i64[1] = 1; keepdims=0"},
                             {Kind::strided, "T[3,4,5,6]" + s + ", i64[2] = 1 3; keepdims=0"},
                             {Kind::strided, "T[3,4,5,6]" + s + ", i64[2] = -4 2"},
                             {Kind::strided, "T[2,5,7,3]" + s + ", i64[2] = 2 3"},
                             {Kind::strided, "T[2,5,7,3]" + s + ", i64[1] = 1"},
                             {Kind::rank, "T[1,2,1,3,2,1,2,3]" + s + ", i64[3] = 1 -1 4"},
                             {Kind::rank, "T[2,1,2,3,2,1,2,2]" + s + ", i64[4] = 0 2 4 6; keepdims=0"}};
  for (const int n : {1, 8, 16, 17, 33, 64, 65}) {
    cases.push_back({Kind::odd, "T[3," + std::to_string(n) + "]" + s + ", i64[1] = 1"});
    cases.push_back({Kind::strided, "T[5," + std::to_string(n) + "]" + s + ", i64[1] = 0"});
  }
  add_floats(cases, Kind::odd, "[6] = nan inf -inf 0 -0 1");
  add_floats(cases, Kind::odd, "[4,3] = inf 1 2 -inf 3 4 nan 5 6 -0 0 0, i64[1] = 1");
  add_floats(cases, Kind::strided, "[3,4] = inf -inf nan -0 1 3 5 0 2 4 6 0, i64[1] = 0");
  return cases;
}

// Adds calls with numbers of either sign, for dtypes with signs.
void add_signed(std::vector<Case>& cases, const std::string& range) {
  for (const char* dtype : {"i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"}) {
    const std::string t = dtype;
    cases.push_back({Kind::odd, t + "[7,33] = " + range + ", i64[1] = 1"});
    cases.push_back({Kind::strided, t + "[7,33] = " + range + ", i64[1] = 0; keepdims=0"});
    cases.push_back({Kind::odd, t + "[3,5,17] = " + range});
  }
}

// `most`: all dtypes, or those that can hold the numbers.
void add_large(std::vector<Case>& cases, const std::string& range, const std::vector<std::string>& most = {"T"}) {
  const std::string s = " = " + range;
  for (const std::string& t : most) {
    cases.push_back({Kind::large, t + "[301,257]" + s + "; keepdims=0"});
    cases.push_back({Kind::large, t + "[601,129]" + s + ", i64[1] = 0"});
    cases.push_back({Kind::large, t + "[301,257]" + s + ", i64[1] = 1"});
  }
  // Rows that are divided by tiles and by conversions to f32.
  cases.push_back({Kind::large, most[0] + "[7,2,5501]" + s + ", i64[2] = 0 2"});
  cases.push_back({Kind::large, "f32[3,61,401]" + s + ", i64[2] = 0 2"});
  cases.push_back({Kind::large, "f32[5,257,61]" + s + ", i64[1] = 1; keepdims=0"});
  cases.push_back({Kind::large, "f32[29,3,31,37]" + s + ", i64[3] = 0 2 3"});
}

void add_nothing(std::vector<Case>& cases) {
  cases.push_back({Kind::empty, "T[0]"});
  cases.push_back({Kind::empty, "T[3,0,2], i64[1] = 1"});
  cases.push_back({Kind::empty, "T[2,3,0], i64[2] = 0 2; keepdims=0"});
}
void add_floats_of_nothing(std::vector<Case>& cases) {
  add_floats(cases, Kind::empty, "[0]");
  add_floats(cases, Kind::empty, "[3,0,2], i64[1] = 1");
}

// Numbers that no float of 64 bits can hold.
void add_wide(std::vector<Case>& cases) {
  cases.push_back({Kind::odd, "i64[3] = 9007199254740993 -9007199254740995 7"});
  cases.push_back({Kind::odd, "i64[2,2] = 4611686018427387905 7 -4611686018427387907 -9, i64[1] = 1"});
  cases.push_back({Kind::strided, "u64[2,2] = 9223372036854775809 7 4611686018427387907 9007199254740993, i64[1] = 0"});
}

const std::map<Kind, std::string> no_broadcast = {{Kind::broadcast, "one tensor is reduced"}};

std::vector<Case> sums_to() {
  std::vector<Case> cases = {{Kind::odd, "T[7] = 0..100, i64[1] = 7"},
                             {Kind::odd, "T[3,5,17] = 0..100, i64[3] = 3 1 17"},
                             {Kind::odd, "T[3,5,17] = 0..100, i64[2] = 5 1"},
                             {Kind::odd, "T[] = 0..100, i64[0]"},
                             {Kind::empty, "T[3,0,2], i64[2] = 1 2"},
                             {Kind::empty, "T[0], i64[0]"},
                             {Kind::empty, "T[3,0], i64[2] = 1 0"},
                             {Kind::broadcast, "T[3,5,17] = 0..100, i64[1] = 1"},
                             {Kind::broadcast, "T[3,5,17] = 0..100, i64[0]"},
                             {Kind::broadcast, "T[1,3,1] = 0..100, i64[2] = 3 1"},
                             {Kind::rank, "T[1,2,1,3,2,1,2,3] = 0..100, i64[8] = 1 2 1 1 2 1 1 3"},
                             {Kind::rank, "T[2,1,2,3,2,1,2,2] = 0..100, i64[3] = 1 2 1"}};
  add_floats(cases, Kind::odd, "[4,3] = inf 1 2 -inf 3 4 nan 5 6 -0 0 0, i64[2] = 4 1");
  add_floats(cases, Kind::large, "[301,257] = -1..1, i64[1] = 257");
  add_floats(cases, Kind::large, "[301,257] = -1..1, i64[2] = 301 1");
  add_floats(cases, Kind::large, "[3,25787] = -1..1, i64[0]");
  cases.push_back({Kind::large, "T[3,25787] = 0..5, i64[1] = 25787"});
  return cases;
}

// Sums are computed in f32 at least and rounded once; f64 and f32 add in their own order.
Row row(const char* type, Reference reference, std::vector<Case> cases, double ulps) {
  return {.type = type, .reference = std::move(reference), .cases = std::move(cases), .ulps = ulps, .without = no_broadcast};
}

}  // namespace
}  // namespace reference_reduction

std::vector<Row> reduction_rows() {
  using namespace reference_reduction;
  std::vector<Case> sums = reductions("0..100"), extrema, means = reductions("0..100"), products = reductions("0..3"),
                    squares = reductions("0..9"), sums_of_squares, logarithms = reductions("1..9"), exponentials = reductions("0..9");
  add_signed(sums, "-50..50");
  add_signed(means, "-50..50");
  add_signed(products, "-2..3");
  add_signed(squares, "-9..9");
  for (auto* cases : {&sums, &means}) add_large(*cases, "0..100"), add_wide(*cases);
  for (const char* t : {"f16", "bf16", "f32", "f64"}) products.push_back({Kind::large, t + std::string("[301,257] = 0.98..1.02")});
  products.push_back({Kind::large, "T[3,25787] = 0..5, i64[1] = 0"});
  products.push_back({Kind::large, "T[25787,3] = 0..5, i64[1] = 1"});
  add_large(squares, "0..9", {"f16", "bf16", "f32", "f64", "u16", "i32", "i64"});
  add_large(logarithms, "1..9");
  add_large(exponentials, "-20..20");
  add_floats(exponentials, Kind::odd, "[3,5,17] = -600..700, i64[1] = 2");
  add_floats_of_nothing(logarithms);
  add_nothing(exponentials);
  sums_of_squares = squares;
  for (auto* cases : {&sums, &products, &squares, &sums_of_squares}) add_nothing(*cases);
  extrema = sums;
  extrema.push_back({Kind::large, "u64[301,257] = -1..200000; keepdims=0"});  // the largest number occurs once
  extrema.push_back({Kind::odd, "u64[3] = 18446744073709551614 18446744073709551615 18446744073709551613"});
  Row to_shape = row("SumTo", sum_to, sums_to(), 1);
  to_shape.domain = "heddle";
  to_shape.without = {takes_no_steps};
  return {to_shape, row("ReduceSum", reduce<fold_sum>, sums, 1), row("ReduceMean", reduce<fold_mean>, means, 1),
          // With zeros of both signs, either may be the extremum.
          row("ReduceMax", reduce<fold_max>, extrema, rounded_once), row("ReduceMin", reduce<fold_min>, extrema, rounded_once),
          row("ReduceProd", reduce<fold_product>, products, 1), row("ReduceL1", reduce<fold_l1>, sums, 1),
          row("ReduceL2", reduce<fold_l2>, squares, 1), row("ReduceLogSum", reduce<fold_log_sum>, logarithms, 1),
          row("ReduceLogSumExp", reduce<fold_log_sum_exp>, exponentials, 1),
          row("ReduceSumSquare", reduce<fold_sum_square>, sums_of_squares, 1)};
}

}  // namespace heddle::conformance

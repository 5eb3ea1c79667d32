// Operators on the lines along one axis: ArgMax and ArgMin, CumSum, Softmax and its relatives.
#include <cmath>

#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_along_axis {
namespace {

using Line = std::vector<Number>;

// Returns each line along the axis, as the places of its elements. A scalar is one line.
std::vector<std::vector<size_t>> lines(const Shape& shape, int64_t given_axis) {
  if (shape.rank() == 0) return {{0}};
  const auto axis = static_cast<int>(positive_axis(given_axis, shape.rank()));
  std::vector<std::vector<size_t>> all;
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    Ints position = position_of(i, shape);
    if (position[static_cast<size_t>(axis)] != 0) continue;
    std::vector<size_t> line;
    for (int64_t k = 0; k < shape[axis]; ++k) {
      position[static_cast<size_t>(axis)] = k;
      line.push_back(static_cast<size_t>(flat_of(position, shape)));
    }
    all.push_back(line);
  }
  return all;
}
Line elements(const Numbers& x, const std::vector<size_t>& places) {
  Line line;
  for (const size_t place : places) line.push_back(x.values[place]);
  return line;
}

// Returns the error of n additions in units of the last place. 16-bit floats are added in f32.
Number error_of(DType dtype, size_t n) {
  return dtype == DType::f32 || dtype == DType::f64 ? walk(n) : 1;
}

// ---------------------------------------------------------------- ArgMax, ArgMin

// NumPy's order, in which NaN comes before all numbers.
size_t extremum(const Line& x, bool least, bool last) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i) {
    const bool equal = x[i] == x[best] || (std::isnan(x[i]) && std::isnan(x[best]));
    const bool better = std::isnan(x[i]) ? !std::isnan(x[best]) : least ? x[i] < x[best] : x[i] > x[best];
    if (better || (equal && last)) best = i;
  }
  return best;
}

template <bool least>
std::vector<Numbers> arg_extremum(const Call& call) {
  const Numbers& x = call[0];
  const int64_t axis = positive_axis(call.i("axis", 0), x.shape.rank());
  Shape shape;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (i != axis || call.i("keepdims", 1) != 0) shape.push_back(i == axis ? 1 : x.shape[i]);
  Numbers y = zeros(DType::i64, shape);
  size_t o = 0;
  for (const auto& line : lines(x.shape, axis))
    y.values[o++] = static_cast<Number>(extremum(elements(x, line), least, call.i("select_last_index", 0) != 0));
  return {y};
}

// ---------------------------------------------------------------- CumSum

std::vector<Numbers> cumulative_sum(const Call& call) {
  Numbers y = zeros(call[0].dtype, call[0].shape);
  y.scale = y.values;
  for (std::vector<size_t> line : lines(y.shape, call.list(1)[0])) {
    if (call.i("reverse", 0) != 0) line = {line.rbegin(), line.rend()};
    Number sum = 0, magnitude = 0;
    for (const size_t place : line) {
      const Number term = call[0].values[place];
      const bool exclusive = call.i("exclusive", 0) != 0;
      y.values[place] = exclusive ? sum : sum + term;
      y.scale[place] = (exclusive ? magnitude : magnitude + std::fabs(term)) * error_of(y.dtype, line.size());
      sum += term;
      magnitude += std::fabs(term);
    }
  }
  return {y};
}

// ---------------------------------------------------------------- Softmax, LogSoftmax, Hardmax

// `error`: that of the sum, in units of the last place.
using OfLine = void (*)(const Line& x, Number error, Line& y, Line& scale);

template <OfLine of_line>
std::vector<Numbers> line_by_line(const Call& call) {
  Numbers y = zeros(call[0].dtype, call[0].shape);
  y.scale = y.values;
  for (const auto& places : lines(y.shape, call.i("axis", -1))) {
    Line result(places.size()), scale(places.size());
    of_line(elements(call[0], places), error_of(y.dtype, places.size()), result, scale);
    for (size_t i = 0; i < places.size(); ++i) {
      y.values[places[i]] = result[i];
      y.scale[places[i]] = once_rounded(y.dtype, scale[i]);
    }
  }
  return {y};
}

// Subtracts the largest element from x, as the body of ONNX's function does, and returns the sum of the exponentials.
Number shifted(Line& x) {
  const Number largest = x[extremum(x, false, false)];
  Number sum = 0;
  for (Number& n : x) sum += std::exp(n -= largest);
  return sum;
}
// The difference from the largest is rounded, and its exponential has the same relative error.
void softmax(const Line& x, Number error, Line& y, Line& scale) {
  Line z = x;
  const Number sum = shifted(z);
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = std::exp(z[i]) / sum;
    scale[i] = y[i] == 0 ? 0 : y[i] * (error + std::fabs(z[i]) / 2);
  }
}
void log_softmax(const Line& x, Number error, Line& y, Line& scale) {
  Line z = x;
  const Number logarithm = std::log(shifted(z));
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = z[i] - logarithm;
    scale[i] = std::isfinite(y[i]) ? std::fabs(z[i]) + std::max(error, logarithm) : 0;
  }
}
void hardmax(const Line& x, Number, Line& y, Line&) {
  y[extremum(x, false, false)] = 1;
}

// ---------------------------------------------------------------- cases

// Writes a call with the axis as an attribute, after ";", or as an input, before it; `more` are further attributes.
using Written = std::string (*)(const std::string& tensor, int axis, const std::string& more);

std::string axis_attribute(const std::string& tensor, int axis, const std::string& more) {
  return tensor + "; axis=" + std::to_string(axis) + (more.empty() ? "" : ", " + more);
}
std::string axis_input(const std::string& tensor, int axis, const std::string& more) {
  return tensor + ", U[] = " + std::to_string(axis) + (more.empty() ? "" : "; " + more);
}

// Returns calls along every axis; `range` with "=", or empty; `options`: several ways to call the operator.
std::vector<Case> along_axes(Written call, const std::string& range, const std::vector<std::string>& options) {
  std::vector<Case> cases;
  for (const std::string& more : options) {
    const auto add = [&](Kind kind, const std::string& tensor, int axis) { cases.push_back({kind, call(tensor + range, axis, more)}); };
    for (const int n : {1, 7, 8, 16, 17, 33, 64, 65}) {
      add(Kind::odd, "T[5," + std::to_string(n) + "]", 1);
      add(Kind::strided, "T[" + std::to_string(n) + ",3]", 0);
      add(Kind::strided, "T[3," + std::to_string(n) + "]", 0);
    }
    add(Kind::odd, "T[7]", 0);
    add(Kind::odd, "T[3,5,17]", -1);
    add(Kind::strided, "T[3,5,17]", 1);
    add(Kind::strided, "T[3,5,17]", -3);
    add(Kind::strided, "T[2,3,4,5]", -2);
    add(Kind::empty, "T[0,3]", 1);
    add(Kind::empty, "T[3,0,2]", 2);
    add(Kind::rank, "T[1,2,1,3,2,1,2,3]", 3);
    add(Kind::rank, "T[2,1,2,1,2,3,1,2]", -1);
    add(Kind::large, "f32[5,61,257]", 1);
    add(Kind::large, "f32[3,25787]", -1);
    if (!more.empty()) continue;
    add(Kind::large, "T[301,257]", 0);
    add(Kind::large, "f32[301,257]", 1);
    add(Kind::large, "bf16[601,257]", 1);
  }
  return cases;
}

void add_floats(std::vector<Case>& cases, Written call, const std::string& tensor, int axis, const std::vector<std::string>& options) {
  for (const char* dtype : {"f16", "bf16", "f32", "f64"})
    for (const std::string& more : options) cases.push_back({axis == 0 ? Kind::strided : Kind::odd, call(dtype + tensor, axis, more)});
}

const std::map<Kind, std::string> no_broadcast = {{Kind::broadcast, "one tensor of data"}};

Row arg(const char* type, Reference reference) {
  const std::vector<std::string> options = {"", "select_last_index=1", "keepdims=0", "keepdims=0, select_last_index=1"};
  // There are few different numbers, so that there are ties.
  std::vector<Case> cases = along_axes(axis_attribute, " = 0..5", options);
  for (const Case& more : along_axes(axis_attribute, "", {""})) cases.push_back(more);
  add_floats(cases, axis_attribute, "[4,4] = 1 3 3 1 -1 -3 -3 -1 0 -0 -0 0 2 2 2 2", 1, options);
  add_floats(cases, axis_attribute, "[4,4] = 1 3 3 1 -1 3 -3 -1 1 -0 -3 0 2 2 2 -1", 0, options);
  add_floats(cases, axis_attribute, "[4,4] = inf 3 inf 1 -inf 3 -inf -1 nan 7 nan inf 2 nan -inf nan", 1, options);
  add_floats(cases, axis_attribute, "[4,4] = inf 3 inf 1 -inf 3 -inf -1 nan 7 nan inf 2 nan -inf nan", 0, options);
  cases.push_back({Kind::odd, "i64[3] = 9007199254740992 9007199254740993 -9007199254740993"});
  cases.push_back({Kind::strided, "u64[2,3] = 9223372036854775808 7 0 9223372036854775809 18446744073709551615 1"});
  return {.type = type, .reference = std::move(reference), .cases = cases, .without = no_broadcast};
}

Row cumsum() {
  const std::vector<std::string> options = {"", "exclusive=1", "reverse=1", "exclusive=1, reverse=1"};
  std::vector<Case> cases = along_axes(axis_input, "", options);
  add_floats(cases, axis_input, "[6] = 1 -0 inf 2 -inf 3", -1, options);
  add_floats(cases, axis_input, "[3,3] = nan 1 -inf 2 inf inf 3 4 5", -1, options);
  for (const char* dtype : {"i8", "i16", "i32", "i64"}) cases.push_back({Kind::odd, dtype + std::string("[3,7] = -9..9, i64[1] = -1")});
  cases.push_back({Kind::odd, "i64[3] = 9007199254740993 9007199254740993 -7, i32[1] = 0"});
  cases.push_back({Kind::odd, "i8[257] = 100, i64[] = 0"});  // wraps
  cases.push_back({Kind::empty, "T[0], U[] = 0; exclusive=1"});
  return {.type = "CumSum", .reference = cumulative_sum, .cases = cases, .ulps = 1, .without = no_broadcast};
}

Row softmax_row(const char* type, Reference reference, double ulps) {
  std::vector<Case> cases = along_axes(axis_attribute, "", {""});
  for (const Case& more : along_axes(axis_attribute, " = -20..20", {""})) cases.push_back(more);
  for (const char* tensor : {"[6,3] = inf 1 2 -inf 3 4 nan 5 6 -0 0 0 -inf -inf -inf 1 1 1", "[3,3] = -90 0 20 -200 -100 700 1 1e-8 -1e-8",
                             "[2,4] = 60000 60000 59968 -60000 -1 -1 -1 -1"})
    for (const int axis : {1, 0}) add_floats(cases, axis_attribute, tensor, axis, {""});
  cases.push_back({Kind::odd, "T[]"});
  cases.push_back({Kind::odd, "T[3,5]"});
  cases.push_back({Kind::empty, "T[0]"});
  cases.push_back({Kind::empty, "T[3,0]"});
  return {.type = type, .reference = std::move(reference), .cases = cases, .ulps = ulps, .without = no_broadcast};
}

}  // namespace
}  // namespace reference_along_axis

std::vector<Row> along_axis_rows() {
  using namespace reference_along_axis;
  return {arg("ArgMax", arg_extremum<false>),
          arg("ArgMin", arg_extremum<true>),
          cumsum(),
          softmax_row("Softmax", line_by_line<softmax>, 2),
          softmax_row("LogSoftmax", line_by_line<log_softmax>, 2),
          softmax_row("Hardmax", line_by_line<hardmax>, 0)};
}

}  // namespace heddle::conformance

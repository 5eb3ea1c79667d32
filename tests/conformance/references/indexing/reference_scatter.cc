// Operators that write at indices.
#include <algorithm>
#include <cmath>

#include "conformance/cases/movement.h"

namespace heddle::conformance {
namespace reference_scatter {
namespace {

// One update of one element, rounded to the dtype each time, like the specification's `output[at] = f(output[at], update)`.
Number combined(const std::string& reduction, DType dtype, Number old, Number update) {
  if (reduction == "none") return update;
  if (dtype == DType::f64) {
    // Rounding to long double first and then to f64 would show: once in 2048 times the result differs from that of one rounding.
    const auto a = static_cast<double>(old), b = static_cast<double>(update);
    if (reduction == "add") return a + b;
    if (reduction == "mul") return a * b;
  }
  if (reduction == "add") return rounded(dtype, old + update);
  if (reduction == "mul") return rounded(dtype, old * update);
  // NumPy's maximum and minimum: NaN if either is NaN.
  if (std::isnan(old) || std::isnan(update)) return old + update;
  return reduction == "max" ? std::max(old, update) : std::min(old, update);
}

Row scatter_elements() {
  std::vector<Case> cases = {{Kind::odd, "T[7], U[5] = 3 -7 0 6 4, T[5]"},
                             {Kind::odd, "T[5,17], U[3,17] = -5..5, T[3,17]"},
                             {Kind::odd, "T[5,17], U[5,17] = -17..17, T[5,17]; axis=1"},
                             {Kind::odd, "T[3,5,7], U[3,5,7] = -5..5, T[3,5,7]; axis=1"},
                             {Kind::odd, "f32[3] = 9, i64[6] = 0 1 2 0 1 2, f32[6] = nan inf -inf 0 -0.0 1"},
                             {Kind::empty, "T[0], U[0], T[0]"},
                             {Kind::empty, "T[5,3], U[0,3], T[0,3]"},
                             {Kind::empty, "T[5,3], U[5,0], T[5,0]; axis=1"},
                             {Kind::broadcast, "T[5,17], U[9,17] = -5..5, T[9,17]"},
                             {Kind::broadcast, "T[5,17], U[2,11] = -5..5, T[2,11]"},
                             {Kind::broadcast, "T[5,17], U[3,33] = -17..17, T[3,33]; axis=1"},
                             {Kind::broadcast, "T[4,5,7], U[2,8,3] = -5..5, T[2,8,3]; axis=1"},
                             {Kind::strided, "T[3,5,7], U[3,5,2] = -7..7, T[3,5,2]; axis=-1"},
                             {Kind::strided, "T[3,5,7], U[3,9,6] = -5..5, T[3,9,6]; axis=-2"},
                             {Kind::strided, "T[3,5,7], U[1,4,7] = -3..3, T[1,4,7]; axis=-3"},
                             {Kind::rank, "T[1,2,1,2,3,2,1,3], U[1,2,1,2,5,1,1,3] = -3..3, T[1,2,1,2,5,1,1,3]; axis=4"},
                             {Kind::large, "T[57,301], U[257,257] = -57..57, T[257,257]"},
                             {Kind::large, "T[301,57], U[257,257] = -57..57, T[257,257]; axis=1"},
                             {Kind::large, "T[301,257], U[17,57] = -301..301, T[17,57]"},
                             {Kind::large, "f32[301,357], i64[201,91] = -357..357, f32[201,91]; axis=1"},
                             {Kind::large, "u8[3,901,61], i64[3,701,59] = -901..901, u8[3,701,59]; axis=1"}};
  for (const std::string mode : {"add", "mul", "max", "min"}) {
    const std::string reduction = "reduction=\"" + mode + "\"";
    for (const Case& more : std::vector<Case>{{Kind::odd, "T[7] = 0..2, U[5] = -7..7, T[5] = 0..2; "},
                                              {Kind::odd, "T[3,5,7] = 0..2, i64[3,9,7] = -5..5, T[3,9,7] = 0..2; axis=1, "},
                                              {Kind::odd, "f32[3] = nan 1 2, i64[6] = 0 1 2 0 1 2, f32[6] = 1 inf -inf 0 -0.0 nan; "},
                                              {Kind::odd, "f16[3] = nan 1 60000, i64[6] = 0 1 2 0 1 2, f16[6] = 1 inf 60000 0 3 nan; "},
                                              {Kind::empty, "T[5,3], U[0,3], T[0,3]; "},
                                              {Kind::broadcast, "T[5,17] = 0..2, U[2,11] = -5..5, T[2,11] = 0..2; axis=0, "},
                                              {Kind::strided, "T[3,5,7] = 0..2, U[3,5,9] = -7..7, T[3,5,9] = 0..2; axis=-1, "},
                                              {Kind::large, "f32[57,301], i64[257,257] = -57..57, f32[257,257] = 0.5..1.5; "},
                                              {Kind::large, "i16[301,57] = 0..2, i64[257,257] = -57..57, i16[257,257] = 0..2; axis=1, "}})
      cases.push_back({more.kind, more.call + reduction});
  }
  return {.type = "ScatterElements",
          .reference =
              [](const Call& c) {
                Numbers result = c[0];
                const int64_t axis = positive_axis(c.i("axis", 0), c[0].shape.rank());
                for (int64_t i = 0; i < c[1].size(); ++i) {
                  Ints at = position_of(i, c[1].shape);
                  const auto index = static_cast<int64_t>(c[1].values[i]);
                  at[axis] = index < 0 ? index + c[0].shape[static_cast<int>(axis)] : index;
                  Number& element = result.values[flat_of(at, c[0].shape)];
                  element = combined(c.s("reduction", "none"), c[0].dtype, element, c[2].values[i]);
                }
                return std::vector{result};
              },
          .cases = cases};
}

std::vector<Numbers> scatter_nd_reference(const Call& c) {
  const Shape &data = c[0].shape, &indices = c[1].shape;
  const int tuple_axis = indices.rank() - 1, indexed = static_cast<int>(indices[tuple_axis]);
  Numbers result = c[0];
  for (int64_t i = 0; i < c[2].size(); ++i) {
    const Ints of_update = position_of(i, c[2].shape);
    Ints at;
    for (int64_t k = 0; k < indexed; ++k) {
      Ints of_index(of_update.begin(), of_update.begin() + tuple_axis);
      of_index.push_back(k);
      const auto index = static_cast<int64_t>(c[1].values[flat_of(of_index, indices)]);
      at.push_back(index < 0 ? index + data[static_cast<int>(k)] : index);
    }
    at.insert(at.end(), of_update.begin() + tuple_axis, of_update.end());
    Number& element = result.values[flat_of(at, data)];
    element = combined(c.s("reduction", "none"), c[0].dtype, element, c[2].values[i]);
  }
  return {result};
}

Row scatter_nd() {
  std::vector<Case> cases = {{Kind::odd, "T[7], i64[5,1] = 3 -7 0 6 4, T[5]"},
                             {Kind::odd, "T[7], i64[9,1] = -7..7, T[9]"},
                             {Kind::odd, "T[5,17], i64[3,1] = -5..5, T[3,17]"},
                             {Kind::odd, "T[5,7], i64[2] = -1 6, T[]"},
                             {Kind::odd, "T[5,7], i64[3,5,2] = -5..5, T[3,5]"},
                             {Kind::odd, "T[5,7,33], i64[9,2] = -5..5, T[9,33]"},
                             {Kind::odd, "f32[3] = 9, i64[6,1] = 0 1 2 0 1 2, f32[6] = nan inf -inf 0 -0.0 1"},
                             {Kind::empty, "T[5,7], i64[0,2], T[0]"},
                             {Kind::empty, "T[5,0], i64[3,1] = -5..5, T[3,0]"},
                             {Kind::empty, "T[0,7], i64[0,1], T[0,7]"},
                             {Kind::broadcast, "T[3,5,7], i64[2,4,1] = -3..3, T[2,4,5,7]"},
                             {Kind::broadcast, "T[9,1], i64[4,1] = -9..9, T[4,1]"},
                             {Kind::rank, "T[1,2,1,2,3,2,1,3], i64[4,3] = -1, T[4,2,3,2,1,3]"},
                             {Kind::rank, "T[2,3,2,2], i64[2,1,2,1,3,2] = -2..2, T[2,1,2,1,3,2,2]"},
                             {Kind::large, "T[57,129], i64[901,1] = -57..57, T[901,129]"},
                             {Kind::large, "T[57,61], i64[301,251,2] = -57..57, T[301,251]"},
                             {Kind::large, "T[601,129], i64[40,1] = -601..601, T[40,129]"},
                             {Kind::large, "f32[57,3,1025], i64[91,1] = -57..57, f32[91,3,1025]"},
                             {Kind::large, "u8[903,601], i64[80,1] = -903..903, u8[80,601]"}};
  for (const std::string mode : {"add", "mul", "max", "min"}) {
    const std::string reduction = "reduction=\"" + mode + "\"";
    for (const Case& more : std::vector<Case>{{Kind::odd, "T[7] = 0..2, i64[5,1] = -7..7, T[5] = 0..2; "},
                                              {Kind::odd, "T[5,17] = 0..2, i64[9,1] = -5..5, T[9,17] = 0..2; "},
                                              {Kind::odd, "T[3,5,2] = 0..2, i64[2,9,2] = -2..2, T[2,9,2] = 0..2; "},
                                              {Kind::odd, "f32[3] = nan 1 2, i64[6,1] = 0 1 2 0 1 2, f32[6] = 1 inf -inf 0 -0.0 nan; "},
                                              {Kind::odd, "f16[3] = nan 1 60000, i64[6,1] = 0 1 2 0 1 2, f16[6] = 1 inf 60000 0 3 nan; "},
                                              {Kind::empty, "T[5,7], i64[0,2], T[0]; "},
                                              {Kind::broadcast, "T[3,5] = 0..2, i64[2,4,1] = -3..3, T[2,4,5] = 0..2; "},
                                              {Kind::large, "f32[57,129], i64[901,1] = -57..57, f32[901,129] = 0.5..1.5; "},
                                              {Kind::large, "f64[57,2049], i64[41,1] = -57..57, f64[41,2049]; "},
                                              {Kind::large, "i16[57,61] = 0..2, i64[301,251,2] = -57..57, i16[301,251] = 0..2; "}})
      cases.push_back({more.kind, more.call + reduction});
  }
  return {.type = "ScatterND", .reference = scatter_nd_reference, .cases = cases, .without = {takes_no_steps}};
}

}  // namespace
}  // namespace reference_scatter

std::vector<Row> scatter_rows() {
  using namespace reference_scatter;
  return {scatter_elements(), scatter_nd()};
}

}  // namespace heddle::conformance

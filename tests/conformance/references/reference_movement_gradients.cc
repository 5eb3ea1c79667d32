// The operators that make up the gradients of operators that move elements: elements move back, and copies are added up.
#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/cases/movement.h"
#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_movement_gradients {
namespace {

// Returns the position that `coordinates` list for `at`; nullopt: some axis has a -1 there.
std::optional<Ints> listed(const std::vector<Ints>& coordinates, const Ints& at) {
  Ints from;
  for (size_t axis = 0; axis < at.size(); ++axis) from.push_back(coordinates[axis][static_cast<size_t>(at[axis])]);
  if (std::find(from.begin(), from.end(), -1) != from.end()) return std::nullopt;
  return from;
}

Row scatter_slice() {
  return {
      .type = "ScatterSlice",
      .reference =
          [](const Call& c) {
            Numbers result = c[0];
            const std::vector<Ints> coordinates = sliced_coordinates(c, c[0].shape, 2);
            const bool adds = c.s("reduction", "none") == "add";
            for (int64_t i = 0; i < c[1].size(); ++i) {
              Number& element = result.values[flat_of(*listed(coordinates, position_of(i, c[1].shape)), c[0].shape)];
              if (!adds)
                element = c[1].values[i];
              else if (c[0].dtype == DType::f64)
                element = static_cast<double>(element) + static_cast<double>(c[1].values[i]);
              else
                element = rounded(c[0].dtype, element + c[1].values[i]);
            }
            return std::vector{result};
          },
      .cases = {{Kind::odd, "T[7], T[3], i64[1] = 2, i64[1] = 5"},
                {Kind::odd, "T[7] = 0..2, T[3] = 0..2, i64[1] = 2, i64[1] = 5; reduction=\"add\""},
                {Kind::odd, "f32[6], f32[6] = nan inf -inf 0 -0.0 1, i64[1] = 0, i64[1] = 6; reduction=\"add\""},
                {Kind::empty, "T[5,3] = 0..2, T[0,3], i64[1] = 3, i64[1] = 2; reduction=\"add\""},
                {Kind::strided, "T[3,5,17] = 0..2, T[2,3,17] = 0..2, i64[2] = 1 -4, i64[2] = 3 -1; reduction=\"add\""},
                {Kind::strided, "T[5,7,3] = 0..2, T[5,3,3] = 0..2, i64[1] = 4, i64[1] = -8, i64[1] = -2, i64[1] = -2; reduction=\"add\""},
                {Kind::strided, "T[9] = 0..2, T[4] = 0..2, i64[1] = 1, i64[1] = 8, -, i64[1] = 2; reduction=\"add\""},
                {Kind::large, "f32[401,401], f32[299,396], i64[2] = 1 3, i64[2] = 300 399; reduction=\"add\""},
                {Kind::large,
                 "f64[303,751], f64[303,376], i64[2] = -1 0, i64[2] = -999 751, i64[2] = 0 1, i64[2] = -1 2; reduction=\"add\""},
                {Kind::odd, "T[1], T[1], i64[1] = 0, i64[1] = 1"},
                {Kind::odd, "T[3,1], T[3,1], i64[2] = -1 -1, i64[2] = -9 9, -, i64[2] = -1 1"},
                {Kind::odd, "T[3,5,17], T[2,3,17], i64[2] = 1 -4, i64[2] = 3 -1"},
                {Kind::odd, "T[3,5,17], T[3,5,16], i64[3] = 0 0 1, i64[3] = 3 5 17"},
                {Kind::odd, "T[3,5], T[3,5], i64[1] = 0, i64[1] = 3"},
                {Kind::odd, "T[4,65], T[4,64], U[1] = 1, U[1] = 2147483647, U[1] = 1, U[1] = 1"},
                {Kind::odd, "f32[6], f32[6] = nan inf -inf 0 -0.0 1, i64[1] = 0, i64[1] = 6"},
                {Kind::empty, "T[0], T[0], i64[1] = 0, i64[1] = 5"},
                {Kind::empty, "T[5,3], T[0,3], i64[1] = 3, i64[1] = 2"},
                {Kind::empty, "T[5,3], T[5,0], i64[1] = 9, i64[1] = 99, i64[1] = 1"},
                {Kind::strided, "T[9], T[3], i64[1] = 1, i64[1] = 8, i64[1] = 0, i64[1] = 3"},
                {Kind::strided, "T[9], T[4], i64[1] = 1, i64[1] = 8, -, i64[1] = 2"},
                {Kind::strided, "T[9], T[9], i64[1] = -1, i64[1] = -9223372036854775808, i64[1] = 0, i64[1] = -1"},
                {Kind::strided, "T[9], T[3], i64[1] = 100, i64[1] = 1, i64[1] = 0, i64[1] = -3"},
                {Kind::strided, "T[9], T[1], i64[1] = 2, i64[1] = 9223372036854775807, i64[1] = 0, i64[1] = 9223372036854775807"},
                {Kind::strided, "T[9], T[1], i64[1] = 7, i64[1] = -100, i64[1] = 0, i64[1] = -9223372036854775808"},
                {Kind::strided, "T[9,2], T[1,2], i64[1] = 7, i64[1] = -100, i64[1] = 0, i64[1] = -9223372036854775808"},
                {Kind::strided, "T[5,7,33], T[3,3,17], i32[3] = 32 -1 0, i32[3] = -34 -8 5, i32[3] = 2 1 0, i32[3] = -2 -3 2"},
                {Kind::strided, "T[5,7,3], T[5,7,3], i64[1] = 6, i64[1] = -8, i64[1] = 1, i64[1] = -1"},
                {Kind::strided, "T[5,7,3], T[5,3,3], i64[1] = 4, i64[1] = -8, i64[1] = -2, i64[1] = -2"},
                {Kind::rank,
                 "T[1,2,1,3,3,2,1,3], T[1,2,1,2,2,1,1,2], i64[4] = 2 0 -1 1, i64[4] = 0 9 -9 2, i64[4] = 3 7 4 -3, i64[4] = -1 2 -2 1"},
                {Kind::large, "T[401,401], T[299,396], i64[2] = 1 3, i64[2] = 300 399"},
                {Kind::large, "T[303,751], T[303,376], i64[2] = -1 0, i64[2] = -999 751, i64[2] = 0 1, i64[2] = -1 2"},
                {Kind::large, "f64[3,40009], f64[3,40009], i64[1] = 40008, i64[1] = -99999, i64[1] = 1, i64[1] = -1"},
                {Kind::large, "u8[1301,613], u8[1299,611], i64[2] = 1 1, i64[2] = 1300 612"}},
      .domain = "heddle",
      .without = {{Kind::broadcast, "updates have the extents of the slice"}}};
}

Row pad_gradient() {
  return {
      .type = "PadGradient",
      .reference =
          [](const Call& c) {
            Shape shape;
            for (const int64_t extent : c.list(1)) shape.push_back(extent);
            Numbers sums = zeros(c[0].dtype, shape);
            sums.scale = sums.values;
            std::vector<size_t> copies(sums.values.size(), 0);
            const std::vector<Ints> coordinates = padded_coordinates(c, shape, 2, 3);
            for (int64_t i = 0; i < c[0].size(); ++i) {
              const std::optional<Ints> of = listed(coordinates, position_of(i, c[0].shape));
              if (!of) continue;
              const int64_t at = flat_of(*of, shape);
              sums.values[at] += c[0].values[i];
              sums.scale[at] += std::fabs(c[0].values[i]);
              ++copies[at];
            }
            for (size_t i = 0; i < copies.size(); ++i) sums.scale[i] = once_rounded(c[0].dtype, sums.scale[i] * walk(copies[i]));
            return std::vector{sums};
          },
      .cases = {{Kind::odd, "T[12], i64[1] = 7, i64[2] = 2 3"},
                {Kind::odd, "T[7], i64[1] = 7, i64[2] = 2 -2"},
                {Kind::odd, "T[5,9], i64[2] = 5 9, i64[4] = -1 3 1 -3; mode=\"wrap\""},
                {Kind::odd, "T[6,8,20], i64[3] = 3 5 17, i64[6] = 1 0 2 2 3 1; mode=\"edge\""},
                {Kind::odd, "T[6,9,34], i64[3] = 3 5 17, i64[6] = 2 0 16 1 4 1; mode=\"reflect\""},
                {Kind::odd, "T[8,10,36], i64[3] = 3 5 17, i64[6] = 3 0 2 2 5 17; mode=\"wrap\""},
                {Kind::odd, "T[12,16], i64[2] = 3 5, i64[4] = 7 0 2 11; mode=\"wrap\""},
                {Kind::odd, "T[12,16], i64[2] = 3 5, i64[4] = 7 0 2 11; mode=\"reflect\""},
                {Kind::odd, "T[4,6], i64[2] = 1 5, i64[4] = 2 0 1 1; mode=\"reflect\""},
                {Kind::odd, "T[8,5], i64[2] = 1 4, i64[4] = 3 0 4 1; mode=\"edge\""},
                {Kind::odd, "T[3,5], i64[2] = 3 5, i64[4] = 0"},
                {Kind::odd, "T[], i64[0], i64[0]; mode=\"wrap\""},
                {Kind::odd, "f32[8] = nan inf -inf 0 1 2 inf 3, i64[1] = 5, i64[2] = 2 1; mode=\"edge\""},
                {Kind::empty, "T[3], i64[1] = 0, i64[2] = 2 1"},
                {Kind::empty, "T[5,0], i64[2] = 3 0, i64[4] = 1 0 1 0; mode=\"edge\""},
                {Kind::empty, "T[5,0], i64[2] = 3 2, i64[4] = 1 -1 1 -1"},
                {Kind::strided, "T[8,5,8], i64[3] = 3 5 7, i64[4] = 1 2 0 3, U[2] = -1 -3; mode=\"reflect\""},
                {Kind::strided, "T[3,8,7], i64[3] = 3 5 7, i64[2] = 1 2, i64[1] = 1"},
                {Kind::strided, "T[5,10], i64[2] = 4 9, i64[4] = -1 -2 2 3; mode=\"edge\""},
                {Kind::strided, "T[4,10], i64[2] = 4 9, i64[4] = -1 -2 1 3; mode=\"reflect\""},
                {Kind::strided, "T[5,10], i64[2] = 4 9, i64[4] = 2 3 -1 -2; mode=\"wrap\""},
                {Kind::strided, "T[6,12], i64[2] = 4 9, i64[4] = -1 -9 3 12; mode=\"wrap\""},
                {Kind::rank, "T[3,3,2,3,6,3,3,5], i64[8] = 2 2 2 2 3 2 2 3, i64[16] = 1 0 0 1 2 0 1 0 0 1 0 0 1 1 0 2; mode=\"reflect\""},
                {Kind::large, "T[306,339], i64[2] = 301 257, i64[4] = 3 5 2 77; mode=\"edge\""},
                {Kind::large, "T[306,339], i64[2] = 301 257, i64[4] = 3 77 2 5; mode=\"reflect\""},
                {Kind::large, "f64[306,339], i64[2] = 301 257, i64[4] = 3 77 2 5; mode=\"wrap\""},
                {Kind::large, "f16[3,905,209], i64[3] = 3 901 203, i64[6] = 0 1 2 0 3 4; mode=\"wrap\""}},
      .ulps = 1,
      .domain = "heddle",
      .without = {one_input}};
}

}  // namespace
}  // namespace reference_movement_gradients

std::vector<Row> movement_gradient_rows() {
  using namespace reference_movement_gradients;
  return {pad_gradient(), scatter_slice()};
}

}  // namespace heddle::conformance

// Operators that move elements to places given by attributes and shapes.
#include <algorithm>
#include <utility>

#include "conformance/cases/movement.h"

namespace heddle::conformance {

namespace reference_movement {
namespace {

Row concat() {
  return {
      .type = "Concat",
      .reference =
          [](const Call& c) {
            const auto axis = static_cast<int>(positive_axis(c.i("axis", 0), c[0].shape.rank()));
            // The origin of all elements of the result: the input, and the position in it along the axis.
            std::vector<std::pair<size_t, int64_t>> along;
            for (size_t i = 0; i < c.inputs.size(); ++i)
              for (int64_t k = 0; k < c[i].shape[axis]; ++k) along.emplace_back(i, k);
            Shape shape = c[0].shape;
            shape[axis] = static_cast<int64_t>(along.size());
            Numbers result = zeros(c[0].dtype, shape);
            for (int64_t i = 0; i < result.size(); ++i) {
              Ints position = position_of(i, shape);
              const auto [input, at] = along[position[axis]];
              position[axis] = at;
              result.values[i] = c[input].values[flat_of(position, c[input].shape)];
            }
            return std::vector{result};
          },
      .cases = {{Kind::odd, "T[7], T[7], T[7]; axis=0"},
                {Kind::odd, "T[3,5,17]; axis=1"},
                {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, f32[1] = nan; axis=0"},
                {Kind::empty, "T[3,0,5], T[3,4,5], T[3,0,5]; axis=1"},
                {Kind::empty, "T[0,3], T[0,2]; axis=1"},
                {Kind::empty, "T[0], T[0]; axis=0"},
                {Kind::broadcast, "T[3,1], T[3,7], T[3,33]; axis=1"},
                {Kind::broadcast, "T[2,5,3], T[4,5,3]; axis=0"},
                {Kind::broadcast, "T[2,5,3], T[2,1,3], T[2,8,3], T[2,16,3], T[2,2,3]; axis=1"},
                {Kind::broadcast,
                 "f32[2,1], f32[2,2], f32[2,3], f32[2,4], f32[2,5], f32[2,6], f32[2,7], f32[2,8], f32[2,9], f32[2,64], f32[2,65]; axis=1"},
                {Kind::strided, "T[3,5,7], T[3,5,2]; axis=-1"},
                {Kind::strided, "T[3,5,7], T[3,6,7]; axis=-2"},
                {Kind::strided, "T[3,5,7], T[1,5,7]; axis=-3"},
                {Kind::rank, "T[1,2,1,2,1,2,1,3], T[1,2,1,2,3,2,1,3]; axis=4"},
                {Kind::large, "T[301,200], T[301,57], T[301,100]; axis=1"},
                {Kind::large, "T[151,257], T[200,257], T[53,257]; axis=0"},
                {Kind::large, "f64[2,30001], f64[2,11003]; axis=1"},
                {Kind::large, "f32[40001,1], f32[40001,1], f32[40001,1]; axis=1"},
                {Kind::large, "u8[3,301,211], u8[3,401,211], u8[3,211,211]; axis=1"}}};
}

std::vector<Numbers> split_reference(const Call& c) {
  const auto axis = static_cast<int>(positive_axis(c.i("axis", 0), c[0].shape.rank()));
  const int64_t extent = c[0].shape[axis];
  Ints extents;
  if (c.has(1)) {
    extents = c.list(1);
  } else {
    const int64_t parts = c.i("num_outputs", static_cast<int64_t>(c.output_count));
    const int64_t each = (extent + parts - 1) / parts;
    for (int64_t p = 0; p < parts; ++p) extents.push_back(std::min(each, extent - p * each));
  }
  std::vector<Numbers> results;
  int64_t begin = 0;
  for (const int64_t own : extents) {
    std::vector<Ints> coordinates = all_of(c[0].shape);
    coordinates[axis] = Ints();
    for (int64_t k = 0; k < own; ++k) coordinates[axis].push_back(begin + k);
    results.push_back(picked(c[0], coordinates));
    begin += own;
  }
  return results;
}

Row split() {
  return {.type = "Split",
          .reference = split_reference,
          .cases = {{Kind::odd, "T[7]; num_outputs=2 -> -, -"},
                    {Kind::odd, "T[17,5]; num_outputs=3 -> -, -, -"},
                    {Kind::odd, "T[3,10]; axis=1, num_outputs=5 -> -, -, -, -, -"},
                    {Kind::odd, "T[3,65], i64[4] = 1 31 0 33; axis=1 -> -, -, -, -"},
                    {Kind::odd, "T[5,3]; num_outputs=1 -> -"},
                    {Kind::odd, "T[6,3] -> -, -, -"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[2] = 4 2 -> -, -"},
                    {Kind::empty, "T[4,0]; num_outputs=2 -> -, -"},
                    {Kind::empty, "T[0,3], i64[2] = 0 0 -> -, -"},
                    {Kind::strided, "T[3,5,7], i64[2] = 3 2; axis=-2 -> -, -"},
                    {Kind::strided, "T[3,5,33]; axis=-1, num_outputs=4 -> -, -, -, -"},
                    {Kind::rank, "T[1,2,1,4,1,2,1,3], i64[3] = 1 1 2; axis=3 -> -, -, -"},
                    {Kind::large, "T[301,357], i64[3] = 200 57 100; axis=1 -> -, -, -"},
                    {Kind::large, "T[404,257], i64[3] = 151 200 53 -> -, -, -"},
                    {Kind::large, "f32[40001,3]; axis=1, num_outputs=3 -> -, -, -"},
                    {Kind::large, "u8[3,913,211]; axis=1, num_outputs=3 -> -, -, -"}},
          .without = {one_input}};
}

Row shard() {
  return {.type = "Shard",
          .reference =
              [](const Call& c) {
                const int64_t rows = c[0].shape[0], part = c.i("part", 0), parts = c.i("parts", 1);
                std::vector<Ints> coordinates = all_of(c[0].shape);
                coordinates[0].clear();
                for (int64_t row = 0, left = rows, at = 0; at <= part; ++at) {
                  const int64_t count = (left + parts - at - 1) / (parts - at);
                  for (int64_t k = 0; k < count && at == part; ++k) coordinates[0].push_back(row + k);
                  row += count;
                  left -= count;
                }
                return std::vector{picked(c[0], coordinates)};
              },
          .cases = {{Kind::odd, "T[7]; part=0, parts=3"},
                    {Kind::odd, "T[7]; part=2, parts=3"},
                    {Kind::odd, "T[5,3]; part=4, parts=5"},
                    {Kind::odd, "T[1]; part=0, parts=1"},
                    {Kind::odd, "T[5,7]; part=0, parts=1, communicator=\"world\""},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1; part=1, parts=4"},
                    {Kind::empty, "T[3,0]; part=1, parts=2"},
                    {Kind::rank, "T[3,2,1,4,1,2,1,3]; part=1, parts=2"},
                    {Kind::large, "T[604,257]; part=1, parts=2"}},
          .domain = "heddle",
          .without = {one_input, takes_no_steps}};
}

Row expand() {
  return {.type = "Expand",
          .reference =
              [](const Call& c) {
                const Shape shape = broadcast_of({c[0].shape, shape_of(c.list(1))});
                Numbers result = zeros(c[0].dtype, shape);
                for (int64_t i = 0; i < result.size(); ++i)
                  result.values[i] = c[0].values[broadcast_flat(position_of(i, shape), c[0].shape)];
                return std::vector{result};
              },
          .cases = {{Kind::odd, "T[7], i64[1] = 7"},
                    {Kind::odd, "T[3,5,17], i64[3] = 3 5 17"},
                    {Kind::empty, "T[0], i64[2] = 3 1"},
                    {Kind::empty, "T[3,1], i64[2] = 3 0"},
                    {Kind::empty, "T[1,5], i64[3] = 0 2 5"},
                    {Kind::broadcast, "T[3,1], i64[3] = 2 1 6"},
                    {Kind::broadcast, "T[3,1,5], i64[2] = 7 1"},
                    {Kind::broadcast, "T[], i64[2] = 3 17"},
                    {Kind::broadcast, "T[], i64[0]"},
                    {Kind::broadcast, "T[33], i64[2] = 5 1"},
                    {Kind::broadcast, "T[2,1,3,1], i64[4] = 1 65 1 8"},
                    {Kind::broadcast, "f32[6,1] = nan inf -inf 0 -0.0 1, i64[2] = 1 3"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3], i64[8] = 2 1 2 1 2 1 2 1"},
                    {Kind::large, "T[301,1], i64[2] = 1 357"},
                    {Kind::large, "T[357], i64[2] = 301 1"},
                    {Kind::large, "T[3,1], i64[2] = 1 33001"},
                    {Kind::large, "u8[3,1,257], i64[3] = 3 1001 257"}},
          .without = {takes_no_steps}};
}

Row tile() {
  return {.type = "Tile",
          .reference =
              [](const Call& c) {
                std::vector<Ints> coordinates;
                const Ints repeats = c.list(1);
                for (int axis = 0; axis < c[0].shape.rank(); ++axis) {
                  coordinates.emplace_back();
                  for (int64_t i = 0; i < c[0].shape[axis] * repeats[axis]; ++i) coordinates[axis].push_back(i % c[0].shape[axis]);
                }
                return std::vector{picked(c[0], coordinates)};
              },
          .cases = {{Kind::odd, "T[7], i64[1] = 3"},
                    {Kind::odd, "T[3,5,17], i64[3] = 1 1 1"},
                    {Kind::odd, "T[3,5,17], i64[3] = 1 2 1"},
                    {Kind::odd, "T[2,3,5], i64[3] = 3 1 2"},
                    {Kind::odd, "T[2,1], i64[2] = 1 33"},
                    {Kind::odd, "T[3,1,2], i64[3] = 2 7 3"},
                    {Kind::odd, "T[], i64[0]"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[1] = 2"},
                    {Kind::empty, "T[0,3], i64[2] = 2 2"},
                    {Kind::empty, "T[2,3], i64[2] = 0 2"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3], i64[8] = 2 1 2 1 1 2 2 2"},
                    {Kind::large, "T[43,51], i64[2] = 7 7"},
                    {Kind::large, "T[301,1], i64[2] = 1 357"},
                    {Kind::large, "T[357], i64[1] = 301"},
                    {Kind::large, "f32[3,10007], i64[2] = 2 3"},
                    {Kind::large, "u8[3,101,257], i64[3] = 2 5 1"}},
          .without = {{Kind::broadcast, "repeats are no tensor's shape"}, takes_no_steps}};
}

Row transpose() {
  return {.type = "Transpose",
          .reference =
              [](const Call& c) {
                Ints perm = counted(c[0].shape.rank());
                std::reverse(perm.begin(), perm.end());
                perm = c.ints("perm", perm);
                Shape shape;
                for (const int64_t axis : perm) shape.push_back(c[0].shape[static_cast<int>(axis)]);
                return std::vector{moved(c[0], shape, [&](const Ints& to) {
                  Ints from(to.size());
                  for (size_t axis = 0; axis < to.size(); ++axis) from[perm[axis]] = to[axis];
                  return from;
                })};
              },
          .cases = {{Kind::odd, "T[7]"},
                    {Kind::odd, "T[]"},
                    {Kind::odd, "T[3,5,17]"},
                    {Kind::odd, "T[3,5,17]; perm=[0,1,2]"},
                    {Kind::odd, "f32[6,1] = nan inf -inf 0 -0.0 1"},
                    {Kind::empty, "T[0]"},
                    {Kind::empty, "T[3,0,2]; perm=[2,0,1]"},
                    {Kind::strided, "T[33,65]"},
                    {Kind::strided, "T[64,16]"},
                    {Kind::strided, "T[8,8]; perm=[1,0]"},
                    {Kind::strided, "T[3,5,7]; perm=[0,2,1]"},
                    {Kind::strided, "T[3,5,7]; perm=[1,0,2]"},
                    {Kind::strided, "T[3,5,7]; perm=[1,2,0]"},
                    {Kind::strided, "T[3,5,7]; perm=[2,0,1]"},
                    {Kind::strided, "T[2,3,17,5]; perm=[0,2,3,1]"},
                    {Kind::strided, "T[2,17,5,3]; perm=[0,3,1,2]"},
                    {Kind::strided, "T[2,3,4,5]; perm=[2,3,0,1]"},
                    {Kind::strided, "T[1,3,1,5]; perm=[3,2,1,0]"},
                    {Kind::rank, "T[1,2,1,2,3,2,1,3]; perm=[7,3,5,1,0,6,4,2]"},
                    {Kind::rank, "T[2,1,2,3,1,2,2,2]"},
                    {Kind::large, "T[301,357]"},
                    {Kind::large, "T[7,121,127]; perm=[0,2,1]"},
                    {Kind::large, "T[121,127,7]; perm=[1,0,2]"},
                    {Kind::large, "f64[3,20011]"},
                    {Kind::large, "i16[3,2,20011]; perm=[1,0,2]"},
                    {Kind::large, "u8[1301,457]"}},
          .without = {one_input}};
}

// Negative pads leave elements out. The surroundings of the tensor are a function of the whole of it ("as if the data tensor forms a
// torus"), also if it is cropped at the other end.
Ints padded(int64_t extent, int64_t begin, int64_t end, const std::string& mode) {
  const int64_t period = mode == "wrap" ? extent : std::max<int64_t>(2 * (extent - 1), 1);
  Ints result;
  for (int64_t i = -begin; i < extent + end; ++i) {
    if (i >= 0 && i < extent) {
      result.push_back(i);
    } else if (mode == "constant") {
      result.push_back(-1);
    } else if (mode == "edge") {
      result.push_back(i < 0 ? 0 : extent - 1);
    } else {
      const int64_t at = (i % period + period) % period;
      result.push_back(mode == "wrap" ? at : std::min(at, period - at));  // a reflection goes forward and back again
    }
  }
  return result;
}

Row pad() {
  return {
      .type = "Pad",
      .reference =
          [](const Call& c) { return std::vector{picked(c[0], padded_coordinates(c, c[0].shape, 1, 3), c.has(2) ? c[2].values[0] : 0)}; },
      .cases = {{Kind::odd, "T[7], i64[2] = 2 3"},
                {Kind::odd, "T[7], i64[2] = 2 -2"},
                {Kind::odd, "T[5,9], i64[4] = -1 3 1 -3; mode=\"wrap\""},
                {Kind::odd, "T[7], i64[2] = 2 3, T[1] = 1"},
                {Kind::odd, "T[3,5,17], i64[6] = 1 0 2 0 3 1, T[]"},
                {Kind::odd, "T[3,5,17], i64[6] = 1 0 2 2 3 1; mode=\"edge\""},
                {Kind::odd, "T[3,5,17], i64[6] = 2 0 16 1 4 1; mode=\"reflect\""},
                {Kind::odd, "T[3,5,17], i64[6] = 3 0 2 2 5 17; mode=\"wrap\""},
                {Kind::odd, "T[3,5], i64[4] = 7 0 2 11; mode=\"wrap\""},
                {Kind::odd, "T[3,5], i64[4] = 7 0 2 11; mode=\"reflect\""},
                {Kind::odd, "T[1,5], i64[4] = 2 0 1 1; mode=\"reflect\""},
                {Kind::odd, "T[3,5], i64[4] = 0"},
                {Kind::odd, "T[1,4], i64[4] = 3 0 4 1; mode=\"edge\""},
                {Kind::odd, "T[2,1,33], i64[6] = 0 1 31 0 1 33"},
                {Kind::odd, "f32[2] = 1 -0.0, i64[2] = 2 1, f32[] = nan"},
                {Kind::odd, "f32[5] = nan inf -inf 0 1, i64[2] = 2 1, f32[] = -inf"},
                {Kind::empty, "T[0], i64[2] = 2 1"},
                {Kind::empty, "T[3,0], i64[4] = 1 0 1 0; mode=\"edge\""},
                {Kind::empty, "T[3,2], i64[4] = 1 -1 1 -1"},
                {Kind::strided, "T[3,5,7], i64[2] = 1 2, T[] = 1, i64[1] = 1"},
                {Kind::strided, "T[3,5,7], i64[4] = 1 2 0 3, T[] = 1, U[2] = 2 0"},
                {Kind::strided, "T[3,5,7], i64[4] = 1 2 0 3, -, U[2] = -1 -3; mode=\"reflect\""},
                {Kind::strided, "T[3,5,7], i64[6] = -1 1 -2 1 -2 -1"},
                {Kind::strided, "T[4,9], i64[4] = -1 -2 2 3; mode=\"edge\""},
                {Kind::strided, "T[4,9], i64[4] = -1 -2 1 3; mode=\"reflect\""},
                {Kind::strided, "T[4,9], i64[4] = 2 3 -1 -2; mode=\"wrap\""},
                {Kind::strided, "T[4,9], i64[4] = -1 -9 3 12; mode=\"wrap\""},
                {Kind::strided, "T[4,9], i64[4] = -1 -9 3 12"},
                {Kind::rank, "T[1,2,1,2,3,2,1,3], i64[16] = 1 0 0 1 2 0 1 0 0 1 0 0 1 1 0 2"},
                {Kind::rank, "T[2,2,2,2,3,2,2,3], i64[16] = 1 0 0 1 2 0 1 0 0 1 0 0 1 1 0 2; mode=\"reflect\""},
                {Kind::large, "T[301,257], i64[4] = 3 5 2 77, T[] = 1"},
                {Kind::large, "f64[301,257], i64[4] = 3 5 2 77; mode=\"edge\""},
                {Kind::large, "i64[301,257], i64[4] = 3 77 2 5; mode=\"reflect\""},
                {Kind::large, "f64[301,257], i64[4] = 3 77 2 5; mode=\"wrap\""},
                {Kind::large, "u8[3,901,203], i64[6] = 0 1 2 0 3 4, u8[] = 9"}},
      .without = {one_input}};
}

// Returns the coordinates that a slice takes along an axis, by ONNX's rules of clamping.
Ints sliced(int64_t extent, int64_t start, int64_t end, int64_t step) {
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? extent : extent - 1;
  start = std::clamp<int64_t>(start < 0 ? start + extent : start, 0, std::max<int64_t>(highest, 0));
  end = std::clamp(end < 0 ? end + extent : end, lowest, std::max(highest, lowest));
  Ints taken;
  // In long double no sum is too large.
  for (Number at = start; step > 0 ? at < end : at > end; at += step)
    if (at < extent) taken.push_back(static_cast<int64_t>(at));
  return taken;
}

Row slice() {
  return {.type = "Slice",
          .reference = [](const Call& c) { return std::vector{picked(c[0], sliced_coordinates(c, c[0].shape, 1))}; },
          .cases = {{Kind::odd, "T[7], i64[1] = 2, i64[1] = 5"},
                    {Kind::odd, "T[1], i64[1] = 0, i64[1] = 1"},
                    {Kind::odd, "T[3,1], i64[2] = -1 -1, i64[2] = -9 9, -, i64[2] = -1 1"},
                    {Kind::odd, "T[3,5,17], i64[2] = 1 -4, i64[2] = 3 -1"},
                    {Kind::odd, "T[3,5,17], i64[3] = 0 0 1, i64[3] = 3 5 17"},
                    {Kind::odd, "T[20,10,5], i64[2] = 0 0, i64[2] = 3 10, i64[2] = 0 1, i64[2] = 1 1"},
                    {Kind::odd, "T[4,65], U[1] = 1, U[1] = 2147483647, U[1] = 1, U[1] = 1"},
                    {Kind::odd, "T[4,65], i64[1] = -100, i64[1] = -1, i64[1] = 1"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[1] = 0, i64[1] = 6"},
                    {Kind::empty, "T[0], i64[1] = 0, i64[1] = 5"},
                    {Kind::empty, "T[0], i64[1] = -1, i64[1] = -9, i64[1] = 0, i64[1] = -1"},
                    {Kind::empty, "T[5,3], i64[1] = 3, i64[1] = 2"},
                    {Kind::empty, "T[5,3], i64[1] = 9, i64[1] = 99"},
                    {Kind::empty, "T[5,3], i64[1] = 1, i64[1] = 4, i64[1] = 0, i64[1] = -1"},
                    {Kind::strided, "T[9], i64[1] = 1, i64[1] = 8, i64[1] = 0, i64[1] = 3"},
                    {Kind::strided, "T[9], i64[1] = 1, i64[1] = 8, -, i64[1] = 2"},
                    {Kind::strided, "T[9], i64[1] = -1, i64[1] = -9223372036854775808, i64[1] = 0, i64[1] = -1"},
                    {Kind::strided, "T[9], i64[1] = -100, i64[1] = -200, i64[1] = 0, i64[1] = -1"},
                    {Kind::strided, "T[9], i64[1] = 100, i64[1] = 1, i64[1] = 0, i64[1] = -3"},
                    {Kind::strided, "T[9], i64[1] = 2, i64[1] = 9223372036854775807, i64[1] = 0, i64[1] = 9223372036854775807"},
                    {Kind::strided, "T[9], i64[1] = 7, i64[1] = -100, i64[1] = 0, i64[1] = -9223372036854775808"},
                    {Kind::strided, "T[5,7,33], i32[3] = 32 -1 0, i32[3] = -34 -8 5, i32[3] = 2 1 0, i32[3] = -2 -3 2"},
                    {Kind::strided, "T[5,7,33], i64[2] = 1 -1, i64[2] = 6 0, i64[2] = -2 -1, i64[2] = 2 -1"},
                    {Kind::strided, "T[5,7,3], i64[1] = 6, i64[1] = -8, i64[1] = 1, i64[1] = -1"},
                    {Kind::strided, "T[5,7,3], i64[1] = 4, i64[1] = -6, i64[1] = -3, i64[1] = -2"},
                    {Kind::rank, "T[1,2,1,3,3,2,1,3], i64[4] = 2 0 -1 1, i64[4] = 0 9 -9 2, i64[4] = 3 7 4 -3, i64[4] = -1 2 -2 1"},
                    {Kind::large, "T[401,401], i64[2] = 1 3, i64[2] = 300 399"},
                    {Kind::large, "T[303,751], i64[2] = -1 0, i64[2] = -999 751, i64[2] = 0 1, i64[2] = -1 2"},
                    {Kind::large, "T[357,301], i64[1] = -1, i64[1] = -999, i64[1] = 1, i64[1] = -1"},
                    {Kind::large, "f64[3,40009], i64[1] = 40008, i64[1] = -99999, i64[1] = 1, i64[1] = -1"},
                    {Kind::large, "f32[3,70009], i64[1] = 1, i64[1] = 70009, i64[1] = 1, i64[1] = 2"},
                    {Kind::large, "u8[1301,613], i64[2] = 1 1, i64[2] = 1300 612"}},
          .without = {one_input}};
}

}  // namespace
}  // namespace reference_movement

std::vector<Ints> sliced_coordinates(const Call& call, const Shape& shape, size_t first) {
  using namespace reference_movement;
  const Ints starts = call.list(first), ends = call.list(first + 1);
  const Ints axes = call.has(first + 2) ? call.list(first + 2) : counted(static_cast<int64_t>(starts.size()));
  const Ints steps = call.has(first + 3) ? call.list(first + 3) : Ints(starts.size(), 1);
  std::vector<Ints> coordinates = all_of(shape);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<int>(positive_axis(axes[k], shape.rank()));
    coordinates[axis] = sliced(shape[axis], starts[k], ends[k], steps[k]);
  }
  return coordinates;
}

std::vector<Ints> padded_coordinates(const Call& call, const Shape& shape, size_t pads_input, size_t axes_input) {
  using namespace reference_movement;
  const Ints pads = call.list(pads_input), axes = call.has(axes_input) ? call.list(axes_input) : counted(shape.rank());
  std::vector<Ints> coordinates = all_of(shape);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<int>(positive_axis(axes[k], shape.rank()));
    coordinates[axis] = padded(shape[axis], pads[k], pads[axes.size() + k], call.s("mode", "constant"));
  }
  return coordinates;
}

std::vector<Row> movement_rows() {
  using namespace reference_movement;
  return {concat(), split(), shard(), expand(), tile(), transpose(), pad(), slice()};
}

}  // namespace heddle::conformance

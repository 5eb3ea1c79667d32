// Operators of shapes: tensors made from a shape, the shape of a tensor, and the same elements under another shape.
#include <algorithm>
#include <cmath>

#include "conformance/cases/movement.h"

namespace heddle::conformance {
namespace reference_shape {
namespace {

// ---------------------------------------------------------------- made from shapes

Row constant_of_shape() {
  std::vector<Case> cases = {{Kind::odd, "i64[2] = 3 7"},
                             {Kind::odd, "i64[0]"},
                             {Kind::odd, "i64[0]; value=i16[1] = -7"},
                             {Kind::odd, "i64[1] = 5; value=f32[1] = nan"},
                             {Kind::odd, "i64[1] = 5; value=f64[1] = -inf"},
                             {Kind::empty, "i64[3] = 3 0 5"},
                             {Kind::empty, "i64[1] = 0; value=f64[1] = 2"},
                             {Kind::rank, "i64[8] = 1 2 1 2 1 2 1 3; value=i64[1] = -5"},
                             {Kind::large, "i64[2] = 301 1357"},
                             {Kind::large, "i64[2] = 1357 1301; value=u8[1] = 9"},
                             {Kind::large, "i64[2] = 301 857; value=f64[1] = 2.5"}};
  for (const auto& [number, dtype] : onnx_dtypes())
    for (const std::string shape : {"i64[3] = 3 5 17", "i64[2] = 65 33"})
      cases.push_back({Kind::odd, shape + "; value=" + to_string(dtype) + "[1] = 1"});
  return {.type = "ConstantOfShape",
          .reference =
              [](const Call& c) {
                const Numbers value = c.tensor("value").value_or(zeros(DType::f32, {1}));
                Numbers result = zeros(value.dtype, shape_of(c.list(0)));
                std::fill(result.values.begin(), result.values.end(), value.values[0]);
                return std::vector{result};
              },
          .cases = cases,
          .without = {one_input, takes_no_steps}};
}

Row eye_like() {
  std::vector<Case> cases = {{Kind::odd, "T[7,5]"},
                             {Kind::odd, "T[5,7]; k=2"},
                             {Kind::odd, "T[17,5]; k=-3"},
                             {Kind::odd, "T[3,3]; k=9"},
                             {Kind::odd, "T[3,3]; k=-3"},
                             {Kind::odd, "f32[3,3]; k=9223372036854775807"},
                             {Kind::odd, "f32[3,3]; k=-9223372036854775808"},
                             {Kind::empty, "T[0,3]"},
                             {Kind::empty, "T[3,0]; k=1"},
                             {Kind::odd, "T[1,4]"},
                             {Kind::large, "T[301,357]; k=-1"},
                             {Kind::large, "f64[857,301]; k=3"},
                             {Kind::large, "u8[1301,1357]; k=3"}};
  cases.push_back({Kind::large, "f32[1000,1000]; k=715"});  // the second of seven tiles begins with a one
  for (const auto& [number, dtype] : onnx_dtypes()) cases.push_back({Kind::odd, "T[9,5]; k=-2, dtype=" + std::to_string(number)});
  return {.type = "EyeLike",
          .reference =
              [](const Call& c) {
                Numbers result = zeros(c.given("dtype") ? onnx_dtypes().at(c.i("dtype", 0)) : c[0].dtype, c[0].shape);
                for (int64_t i = 0; i < result.size(); ++i) {
                  const Ints at = position_of(i, result.shape);
                  result.values[i] = at[1] - at[0] == c.i("k", 0) ? 1 : 0;
                }
                return std::vector{result};
              },
          .cases = cases,
          .without = {one_input, takes_no_steps, {Kind::rank, "it makes a matrix"}}};
}

Row range() {
  return {.type = "Range",
          .reference =
              [](const Call& c) {
                const Number start = c[0].values[0], limit = c[1].values[0], delta = c[2].values[0];
                const auto count = std::max<int64_t>(static_cast<int64_t>(std::ceil((limit - start) / delta)), 0);
                Numbers result = zeros(c[0].dtype, {count});
                for (int64_t i = 0; i < count; ++i) {
                  result.values[i] = start + static_cast<Number>(i) * delta;
                  result.scale.push_back(std::fabs(start) + std::fabs(static_cast<Number>(i) * delta));
                }
                return std::vector{result};
              },
          .cases = {{Kind::odd, "T[] = 3, T[] = 20, T[] = 3"},
                    {Kind::odd, "T[1] = 3, T[1] = 21, T[1] = 3"},
                    {Kind::odd, "T[] = -7, T[] = 58, T[] = 1"},
                    {Kind::odd, "f32[] = 0.1, f32[] = 3.4, f32[] = 0.1"},
                    {Kind::odd, "f64[] = -0.7, f64[] = 3.45, f64[] = 0.1"},
                    {Kind::odd, "i16[] = 32000, i16[] = 32767, i16[] = 100"},
                    {Kind::odd, "i32[] = -2147483648, i32[] = 2147483647, i32[] = 1000000007"},
                    {Kind::odd, "i64[] = 9007199254740993, i64[] = 9007199254741100, i64[] = 7"},
                    {Kind::empty, "T[] = 3, T[] = 3, T[] = 1"},
                    {Kind::empty, "T[] = 3, T[] = 1, T[] = 1"},
                    {Kind::empty, "T[] = 1, T[] = 3, T[] = -1"},
                    {Kind::strided, "T[] = 9, T[] = -10, T[] = -2"},
                    {Kind::strided, "T[] = 9, T[] = -11, T[] = -4"},
                    {Kind::strided, "T[] = -3, T[] = 100, T[] = 17"},
                    {Kind::large, "T[] = -30000, T[] = 30000, T[] = 1"},
                    {Kind::large, "i32[] = 7, i32[] = 1203011, i32[] = 3"},
                    {Kind::large, "i64[] = 300011, i64[] = -7, i64[] = -1"},
                    {Kind::large, "f32[] = -10.5, f32[] = 90000, f32[] = 0.25"},
                    {Kind::large, "f64[] = -10.5, f64[] = 30000, f64[] = 0.1"}},
          .ulps = 1,
          .without = {{Kind::broadcast, "its inputs are single numbers"}, {Kind::rank, "its output has one dimension"}}};
}

// ---------------------------------------------------------------- what a shape says

Numbers list_of(const Ints& numbers) {
  return {DType::i64, {static_cast<int64_t>(numbers.size())}, {numbers.begin(), numbers.end()}, {}};
}

Row shape() {
  return {.type = "Shape",
          .reference =
              [](const Call& c) {
                const int64_t rank = c[0].shape.rank();
                const auto place = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
                Ints extents;
                for (int64_t axis = place(c.i("start", 0)); axis < place(c.i("end", rank)); ++axis)
                  extents.push_back(c[0].shape[static_cast<int>(axis)]);
                return std::vector{list_of(extents)};
              },
          .cases = {{Kind::odd, "T[7]"},
                    {Kind::odd, "T[]"},
                    {Kind::odd, "T[3,5,17]"},
                    {Kind::odd, "T[3,5,17]; start=1"},
                    {Kind::odd, "T[3,5,17]; end=2"},
                    {Kind::odd, "T[3,5,17]; start=1, end=2"},
                    {Kind::empty, "T[3,0,5]"},
                    {Kind::empty, "T[3,4,5]; start=2, end=1"},
                    {Kind::empty, "T[3,4,5]; start=7"},
                    {Kind::empty, "T[3,4,5]; end=-3"},
                    {Kind::strided, "T[3,5,17]; start=-2"},
                    {Kind::strided, "T[3,5,17]; start=-3, end=-1"},
                    {Kind::strided, "T[3,5,17]; start=-10, end=10"},
                    {Kind::strided, "T[3,5,17]; start=0, end=-10"},
                    {Kind::strided, "f32[3,5]; start=-9223372036854775808, end=9223372036854775807"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3]; start=2, end=-1"},
                    {Kind::large, "T[301,357]"}},
          .without = {one_input},
          .one_tile = true};
}

Row size() {
  return {.type = "Size",
          .reference =
              [](const Call& c) {
                return std::vector{Numbers{DType::i64, {}, {static_cast<Number>(c[0].size())}, {}}};
              },
          .cases = {{Kind::odd, "T[7]"},
                    {Kind::odd, "T[]"},
                    {Kind::odd, "T[3,5,17]"},
                    {Kind::empty, "T[3,0,5]"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3]"},
                    {Kind::large, "T[301,357]"}},
          .without = {one_input, takes_no_steps},
          .one_tile = true};
}

// ---------------------------------------------------------------- the same elements

Numbers under(Numbers data, const Shape& shape) {
  data.shape = shape;
  return data;
}

std::vector<Case> any_shapes() {
  return {{Kind::odd, "T[7]"},
          {Kind::odd, "T[]"},
          {Kind::odd, "T[3,5,17]"},
          {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1"},
          {Kind::empty, "T[0]"},
          {Kind::empty, "T[3,0,2]"},
          {Kind::rank, "T[1,2,1,2,1,2,1,3]"},
          {Kind::large, "T[301,357]"},
          {Kind::large, "f64[401,357]"},
          {Kind::large, "u8[1301,457]"}};
}

Row unchanged(const std::string& type, const std::string& domain) {
  return {.type = type,
          .reference = [](const Call& c) { return std::vector{c[0]}; },
          .cases = any_shapes(),
          .domain = domain,
          .without = {one_input, takes_no_steps}};
}

// The operator changes only the layout of the elements in memory.
Row reorder() {
  Row row = unchanged("Reorder", "heddle");
  std::erase_if(row.cases, [](const Case& one) { return one.kind == Kind::large; });  // each is run in nine pairs of layouts
  for (const std::string shape : {"T[2,3,33,5]", "T[3,64,17]", "T[1,7,1,9]", "f32[2,3,4,5,7]"}) row.cases.push_back({Kind::odd, shape});
  for (const std::string shape : {"f32[3,65,41,33]", "f64[401,357]", "u8[3,1301,157]", "f16[301,357]"})
    row.cases.push_back({Kind::large, shape});
  row.any_layouts = true;
  return row;
}

Row flatten() {
  std::vector<Case> cases = any_shapes();
  std::erase_if(cases, [](const Case& one) { return one.call == "T[]"; });
  for (const int axis : {0, 1, 2, 3}) cases.push_back({Kind::odd, "T[3,5,17]; axis=" + std::to_string(axis)});
  for (const int axis : {-1, -2, -3}) cases.push_back({Kind::strided, "T[3,5,17]; axis=" + std::to_string(axis)});
  cases.push_back({Kind::odd, "T[]; axis=0"});
  cases.push_back({Kind::empty, "T[3,0,2]; axis=2"});
  cases.push_back({Kind::rank, "T[1,2,1,2,1,2,1,3]; axis=-4"});
  return {.type = "Flatten",
          .reference =
              [](const Call& c) {
                const int64_t axis = positive_axis(c.i("axis", 1), c[0].shape.rank());
                Shape matrix = {1, 1};
                for (int k = 0; k < c[0].shape.rank(); ++k) matrix[k < axis ? 0 : 1] *= c[0].shape[k];
                return std::vector{under(c[0], matrix)};
              },
          .cases = cases,
          .without = {one_input}};
}

Row reshape() {
  return {.type = "Reshape",
          .reference =
              [](const Call& c) {
                Shape shape = shape_of(c.list(1));
                int64_t known = 1;
                int inferred = -1;
                for (int axis = 0; axis < shape.rank(); ++axis) {
                  if (shape[axis] == 0 && c.i("allowzero", 0) == 0) shape[axis] = c[0].shape[axis];
                  if (shape[axis] == -1) inferred = axis;
                  known *= shape[axis] == -1 ? 1 : shape[axis];
                }
                if (inferred >= 0) shape[inferred] = c[0].size() / known;
                return std::vector{under(c[0], shape)};
              },
          .cases = {{Kind::odd, "T[3,5,17], i64[2] = 15 17"},
                    {Kind::odd, "T[3,5,17], i64[3] = 17 3 5"},
                    {Kind::odd, "T[3,5,17], i64[1] = -1"},
                    {Kind::odd, "T[3,5,17], i64[2] = 0 -1"},
                    {Kind::odd, "T[3,5,17], i64[3] = -1 0 17"},
                    {Kind::odd, "T[3,5,17], i64[4] = 0 0 17 1; allowzero=0"},
                    {Kind::odd, "T[3,5,17], i64[2] = 5 -1; allowzero=1"},
                    {Kind::odd, "T[1,1], i64[0]"},
                    {Kind::odd, "T[], i64[2] = 1 -1"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[2] = 2 3"},
                    {Kind::empty, "T[0,3], i64[2] = 3 0; allowzero=1"},
                    {Kind::empty, "T[3,0,2], i64[3] = 0 0 7"},
                    {Kind::empty, "T[3,0,2], i64[2] = 3 -1"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3], i64[8] = 0 1 2 0 2 -1 1 0"},
                    {Kind::rank, "T[24], i64[8] = 2 1 2 1 2 1 -1 1"},
                    {Kind::large, "T[301,357], i64[2] = 357 -1"},
                    {Kind::large, "f64[401,357], i64[2] = 357 -1"},
                    {Kind::large, "u8[1301,457], i64[2] = -1 1"}},
          .without = {one_input, takes_no_steps}};
}

Row squeeze() {
  return {.type = "Squeeze",
          .reference =
              [](const Call& c) {
                const int rank = c[0].shape.rank();
                std::vector<bool> dropped(static_cast<size_t>(rank));
                for (int axis = 0; axis < rank; ++axis) dropped[axis] = !c.has(1) && c[0].shape[axis] == 1;
                if (c.has(1))
                  for (const int64_t axis : c.list(1)) dropped[positive_axis(axis, rank)] = true;
                Shape shape;
                for (int axis = 0; axis < rank; ++axis)
                  if (!dropped[axis]) shape.push_back(c[0].shape[axis]);
                return std::vector{under(c[0], shape)};
              },
          .cases = {{Kind::odd, "T[1,7,1]"},
                    {Kind::odd, "T[3,5,17]"},
                    {Kind::odd, "T[1,1]"},
                    {Kind::odd, "T[]"},
                    {Kind::odd, "T[1,7,1], i64[1] = 0"},
                    {Kind::odd, "T[1,7,1], i64[2] = 2 0"},
                    {Kind::odd, "T[1,7,1], i64[0]"},
                    {Kind::odd, "f32[1,6] = nan inf -inf 0 -0.0 1"},
                    {Kind::empty, "T[0,1]"},
                    {Kind::empty, "T[1,0,1], i64[1] = 2"},
                    {Kind::strided, "T[1,7,1], i64[1] = -1"},
                    {Kind::strided, "T[1,7,1], i64[2] = -1 -3"},
                    {Kind::strided, "T[1,7,1,5], i64[2] = -2 0"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3]"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3], i64[3] = 4 -2 0"},
                    {Kind::large, "T[301,1,357]"},
                    {Kind::large, "f64[401,1,357], i64[1] = 1"},
                    {Kind::large, "u8[1301,1,457], i64[1] = -2"}},
          .without = {one_input}};
}

Row unsqueeze() {
  return {.type = "Unsqueeze",
          .reference =
              [](const Call& c) {
                const Ints axes = c.list(1);
                const int rank = c[0].shape.rank() + static_cast<int>(axes.size());
                std::vector<bool> added(static_cast<size_t>(rank));
                for (const int64_t axis : axes) added[positive_axis(axis, rank)] = true;
                Shape shape;
                for (int axis = 0, next = 0; axis < rank; ++axis) shape.push_back(added[axis] ? 1 : c[0].shape[next++]);
                return std::vector{under(c[0], shape)};
              },
          .cases = {{Kind::odd, "T[7], i64[1] = 0"},
                    {Kind::odd, "T[7], i64[1] = 1"},
                    {Kind::odd, "T[], i64[1] = 0"},
                    {Kind::odd, "T[], i64[2] = 1 0"},
                    {Kind::odd, "T[3,5,17], i64[2] = 4 1"},
                    {Kind::odd, "T[3,5,17], i64[3] = 2 0 5"},
                    {Kind::odd, "T[3,5], i64[0]"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[1] = 1"},
                    {Kind::empty, "T[0], i64[1] = 0"},
                    {Kind::empty, "T[3,0,2], i64[2] = 1 4"},
                    {Kind::strided, "T[3,5], i64[1] = -1"},
                    {Kind::strided, "T[3,5], i64[2] = -1 -4"},
                    {Kind::strided, "T[3,5], i64[2] = -2 0"},
                    {Kind::rank, "T[2,2,2,3], i64[4] = 0 7 -3 3"},
                    {Kind::large, "T[301,357], i64[1] = 1"},
                    {Kind::large, "f64[401,357], i64[1] = -1"},
                    {Kind::large, "u8[1301,457], i64[1] = 0"}},
          .without = {one_input}};
}

}  // namespace
}  // namespace reference_shape

std::vector<Row> shape_rows() {
  using namespace reference_shape;
  return {constant_of_shape(),
          eye_like(),
          range(),
          shape(),
          size(),
          unchanged("Copy", "heddle"),
          reorder(),
          unchanged("Identity", ""),
          unchanged("StopGradient", "heddle"),
          unchanged("ZeroGradient", "heddle"),
          flatten(),
          reshape(),
          squeeze(),
          unsqueeze()};
}

}  // namespace heddle::conformance

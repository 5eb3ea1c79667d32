// Operators that read at indices.
#include <cmath>

#include "conformance/cases/movement.h"

namespace heddle::conformance {
namespace reference_indexing {
namespace {

// Returns the dimensions [begin, end).
Ints dims_between(const Shape& shape, int begin, int end) {
  Ints dims;
  for (int axis = begin; axis < end; ++axis) dims.push_back(shape[axis]);
  return dims;
}

Ints joined(Ints first, const Ints& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// ---------------------------------------------------------------- Gather

std::vector<Numbers> gather_reference(const Call& c) {
  const Shape &data = c[0].shape, &indices = c[1].shape;
  const auto axis = static_cast<int>(positive_axis(c.i("axis", 0), data.rank()));
  const Ints shape =
      joined(joined(dims_between(data, 0, axis), dims_between(indices, 0, indices.rank())), dims_between(data, axis + 1, data.rank()));
  return {moved(c[0], shape_of(shape), [&](const Ints& to) {
    const auto first = to.begin() + axis, last = first + indices.rank();
    const auto index = static_cast<int64_t>(c[1].values[flat_of(Ints(first, last), indices)]);
    Ints from(to.begin(), first);
    from.push_back(index < 0 ? index + data[axis] : index);
    return joined(from, Ints(last, to.end()));
  })};
}

Row gather() {
  return {.type = "Gather",
          .reference = gather_reference,
          .cases = {{Kind::odd, "T[7], U[3] = -7..7"},
                    {Kind::odd, "T[7], i64[] = 4"},
                    {Kind::odd, "T[7,3], U[] = -1"},
                    {Kind::odd, "T[5,17], U[7] = -5..5"},
                    {Kind::odd, "T[5,16], U[7] = -5..5"},
                    {Kind::odd, "T[5,1], U[2,3] = -5..5"},
                    {Kind::odd, "T[3,65,2], i64[5] = -65..65; axis=1"},
                    {Kind::odd, "T[3,5,7], U[2,2] = -7..7; axis=2"},
                    {Kind::odd, "T[7,3], U[7] = 6 0 3 3 1 2 5"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[7] = 0 1 2 3 4 5 0"},
                    {Kind::empty, "T[0,3], i64[0]"},
                    {Kind::empty, "T[5,0], U[3]"},
                    {Kind::empty, "T[5,3], U[0,2]; axis=1"},
                    {Kind::broadcast, "T[2,3], U[2,1,4] = -3..3; axis=1"},
                    {Kind::broadcast, "T[9,1,33], U[11]"},
                    {Kind::strided, "T[3,5,7], U[4] = -7..7; axis=-1"},
                    {Kind::strided, "T[3,5,7], U[4] = -5..5; axis=-2"},
                    {Kind::strided, "T[3,5,7], U[4] = -3..3; axis=-3"},
                    {Kind::rank, "T[1,2,1,2,3,2,1,3], U[2]; axis=4"},
                    {Kind::rank, "T[2,3,1,2], U[1,2,1,3,1]; axis=1"},
                    {Kind::large, "T[57,129], U[901] = -57..57"},
                    {Kind::large, "T[7,57,3], i64[4801] = -57..57; axis=1"},
                    {Kind::large, "i64[301,7], i32[40001] = -301..301"},
                    {Kind::large, "u8[3,1001], i64[70001] = -1001..1001; axis=1"},
                    {Kind::large, "f64[1001], i64[271,257] = -1001..1001"},
                    {Kind::large, "f32[5,40003], i64[7] = -5..5"},
                    {Kind::large, "u8[2,3,140001], i32[4] = -3..3; axis=1"}}};
}

Row gather_elements() {
  return {.type = "GatherElements",
          .reference =
              [](const Call& c) {
                const int64_t axis = positive_axis(c.i("axis", 0), c[0].shape.rank());
                return std::vector{moved(c[0], c[1].shape, [&](Ints at) {
                  const auto index = static_cast<int64_t>(c[1].values[flat_of(at, c[1].shape)]);
                  at[axis] = index < 0 ? index + c[0].shape[static_cast<int>(axis)] : index;
                  return at;
                })};
              },
          .cases = {{Kind::odd, "T[7], U[5] = -7..7"},
                    {Kind::odd, "T[5,17], U[5,17] = -5..5"},
                    {Kind::odd, "T[5,17], U[5,17] = -17..17; axis=1"},
                    {Kind::odd, "T[3,5,7], U[3,5,7] = -5..5; axis=1"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[7] = 0 1 2 3 4 5 0"},
                    {Kind::empty, "T[0], U[0]"},
                    {Kind::empty, "T[5,3], U[0,3]"},
                    {Kind::empty, "T[5,3], U[5,0]; axis=1"},
                    {Kind::broadcast, "T[5,17], U[9,17] = -5..5"},
                    {Kind::broadcast, "T[5,17], U[2,11] = -5..5"},
                    {Kind::broadcast, "T[5,17], U[3,33] = -17..17; axis=1"},
                    {Kind::broadcast, "T[4,5,7], U[2,8,3] = -5..5; axis=1"},
                    {Kind::strided, "T[3,5,7], U[3,5,2] = -7..7; axis=-1"},
                    {Kind::strided, "T[3,5,7], U[3,9,6] = -5..5; axis=-2"},
                    {Kind::strided, "T[3,5,7], U[1,4,7] = -3..3; axis=-3"},
                    {Kind::rank, "T[1,2,1,2,3,2,1,3], U[1,2,1,2,5,1,1,3] = -3..3; axis=4"},
                    {Kind::large, "T[57,301], U[257,257] = -57..57"},
                    {Kind::large, "T[301,57], U[257,257] = -57..57; axis=1"},
                    {Kind::large, "u8[3,901,61], i64[3,701,59] = -901..901; axis=1"}}};
}

// ---------------------------------------------------------------- GatherND

std::vector<Numbers> gather_nd_reference(const Call& c) {
  const Shape &data = c[0].shape, &indices = c[1].shape;
  const auto batches = static_cast<int>(c.i("batch_dims", 0));
  const int tuple_axis = indices.rank() - 1, indexed = static_cast<int>(indices[tuple_axis]);
  const Ints shape = joined(dims_between(indices, 0, tuple_axis), dims_between(data, batches + indexed, data.rank()));
  return {moved(c[0], shape_of(shape), [&](const Ints& to) {
    Ints from(to.begin(), to.begin() + batches);
    for (int64_t k = 0; k < indexed; ++k) {
      const Ints at = joined(Ints(to.begin(), to.begin() + tuple_axis), {k});
      const auto index = static_cast<int64_t>(c[1].values[flat_of(at, indices)]);
      from.push_back(index < 0 ? index + data[batches + static_cast<int>(k)] : index);
    }
    return joined(from, Ints(to.begin() + tuple_axis, to.end()));
  })};
}

Row gather_nd() {
  return {.type = "GatherND",
          .reference = gather_nd_reference,
          .cases = {{Kind::odd, "T[7], i64[3,1] = -7..7"},
                    {Kind::odd, "T[5,17], i64[7,1] = -5..5"},
                    {Kind::odd, "T[5,7], i64[3,5,2] = -5..5"},
                    {Kind::odd, "T[5,7], i64[2] = -1 6"},
                    {Kind::odd, "T[5,7,33], i64[9,2] = -5..5"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, i64[6,1] = 0 1 2 3 4 5"},
                    {Kind::empty, "T[5,7], i64[0,2]"},
                    {Kind::empty, "T[5,0], i64[3,1] = -5..5"},
                    {Kind::empty, "T[0,7], i64[0,1]; batch_dims=0"},
                    {Kind::empty, "T[0,7], i64[0,1]; batch_dims=1"},
                    {Kind::broadcast, "T[3,5,7], i64[3,1] = -5..5; batch_dims=1"},
                    {Kind::broadcast, "T[3,5,7], i64[3,9,2] = -5..5; batch_dims=1"},
                    {Kind::broadcast, "T[3,2,5,7], i64[3,2,4,1] = -5..5; batch_dims=2"},
                    {Kind::broadcast, "T[3,2,5,17], i64[3,6,2] = -2..2; batch_dims=1"},
                    {Kind::broadcast, "T[3,2,5], i64[3,2,1] = -5..5; batch_dims=2"},
                    {Kind::rank, "T[1,2,1,2,3,2,1,3], i64[1,2,1,3] = -1; batch_dims=2"},
                    {Kind::rank, "T[2,3,2,2], i64[2,1,2,1,2,2] = -2..2"},
                    {Kind::large, "T[57,129], i64[901,1] = -57..57"},
                    {Kind::large, "T[57,61], i64[301,251,2] = -57..57"},
                    {Kind::large, "u8[3,91,61], i64[3,9001,1] = -91..91; batch_dims=1"},
                    {Kind::large, "f64[3,91,5], i64[3,9001,2] = -5..5; batch_dims=1"}},
          .without = {takes_no_steps}};
}

// ---------------------------------------------------------------- OneHot

std::vector<Numbers> one_hot_reference(const Call& c) {
  const Shape& indices = c[0].shape;
  // A depth that is not an integer is truncated to one.
  const auto depth = static_cast<int64_t>(c[1].values[0]);
  const auto axis = static_cast<int>(positive_axis(c.i("axis", -1), indices.rank() + 1));
  const Shape shape = shape_of(joined(joined(dims_between(indices, 0, axis), {depth}), dims_between(indices, axis, indices.rank())));
  Numbers result = zeros(c[2].dtype, shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    Ints at = position_of(i, shape);
    const int64_t here = at[axis];
    at.erase(at.begin() + axis);
    const Number index = std::trunc(c[0].values[flat_of(at, indices)]);
    result.values[i] = c[2].values[index == here || index + depth == here ? 1 : 0];
  }
  return {result};
}

Row one_hot() {
  return {.type = "OneHot",
          .reference = one_hot_reference,
          .cases = {{Kind::odd, "T[7] = 0..9, i64[] = 7, f32[2] = 0.5 2"},
                    {Kind::odd, "T[3,5] = 0..7, i64[1] = 5, i64[2] = -1 7; axis=0"},
                    {Kind::odd, "T[3,5] = 0..7, f64[] = 5, i64[2] = -1 7; axis=1"},
                    {Kind::odd, "i64[3,5] = -11..11, T[] = 9, f32[2] = 0.5 2"},
                    {Kind::odd, "i32[3,5] = -11..11, T[1] = 9, f32[2] = 0.5 2; axis=1"},
                    {Kind::odd, "i64[3,5] = -11..11, i64[] = 9, T[2] = 0 1; axis=0"},
                    {Kind::odd, "i64[3,5] = -11..11, i64[] = 9, T[2] = 1 0; axis=2"},
                    {Kind::odd, "i8[17] = -11..11, f32[] = 9.7, f32[2] = -0.0 nan"},
                    {Kind::odd, "i16[17] = -11..11, i64[] = 9, bf16[2] = inf -inf"},
                    {Kind::odd, "f32[8] = -0.5 0.5 -1.5 1.9 2.99 -3 -3.5 -4, i64[] = 3, f64[2] = 1 5"},
                    {Kind::odd, "f64[4] = 1e15 -1e15 4e9 -4e9, i64[] = 3, f64[2] = 1 5"},
                    {Kind::odd, "u64[3] = 9223372036854775808 1 4294967296, i64[] = 3, f64[2] = 1 5"},
                    {Kind::odd, "i64[4] = 9223372036854775807 -9223372036854775808 4294967297 -4294967296, i64[] = 3, f64[2] = 1 5"},
                    {Kind::odd, "T[] = 1, i64[] = 3, f32[2] = 2 3"},
                    {Kind::empty, "T[0], i64[] = 7, f32[2] = 0.5 2"},
                    {Kind::empty, "T[3,0], i64[] = 7, f32[2] = 0.5 2; axis=1"},
                    {Kind::empty, "i64[3,2], i64[] = 0, T[2] = 0 1"},
                    {Kind::strided, "i64[3,5] = -11..11, i64[] = 9, T[2] = 0 1; axis=-2"},
                    {Kind::strided, "T[3,5] = 0..9, i64[] = 6, f32[2] = 0 1; axis=-3"},
                    {Kind::rank, "T[1,2,1,2,1,2,3] = 0..4, i64[] = 3, f32[2] = 2 3; axis=4"},
                    {Kind::large, "T[301,7] = 0..120, i64[] = 57, f32[2] = 0.5 2"},
                    {Kind::large, "i64[301,7] = -70..70, i64[] = 57, T[2] = 0 1; axis=1"},
                    {Kind::large, "i32[301,7] = -200..200, i64[] = 157, f64[2] = 3 4; axis=0"},
                    {Kind::large, "i64[3301] = -200..200, i64[] = 357, u8[2] = 3 4"}},
          .without = {{Kind::broadcast, "its inputs have shapes of their own"}}};
}

}  // namespace
}  // namespace reference_indexing

std::vector<Row> indexing_rows() {
  using namespace reference_indexing;
  return {gather(), gather_elements(), gather_nd(), one_hot()};
}

}  // namespace heddle::conformance

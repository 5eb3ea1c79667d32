// Operators that search for elements: the largest, the distinct, those that are not 0 or that a condition selects.
#include <algorithm>
#include <cmath>

#include "conformance/cases/movement.h"

namespace heddle::conformance {
namespace reference_selection {
namespace {

// Returns numbers below `count` in no particular order, in the text form of elements; read as floats they have ties.
std::string digits(int64_t size, int64_t count) {
  std::string text;
  uint32_t state = 12345;
  for (int64_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    text += " " + std::to_string((state >> 16) % static_cast<uint32_t>(count));
  }
  return text;
}

Numbers integers(const Shape& shape, const Ints& values) {
  return {DType::i64, shape, {values.begin(), values.end()}, {}};
}

Shape with_extent(Shape shape, int64_t axis, int64_t extent) {
  shape[static_cast<int>(axis)] = extent;
  return shape;
}

// Returns the elements at coordinates `taken` along the axis.
Numbers slices(const Numbers& data, int64_t axis, const Ints& taken) {
  return moved(data, with_extent(data.shape, axis, static_cast<int64_t>(taken.size())), [&](Ints at) {
    at[axis] = taken[at[axis]];
    return at;
  });
}

// NaN is above all numbers, and all NaNs are equal, as in NumPy; the specification leaves it open.
bool less(Number a, Number b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}
bool earlier(const std::vector<Number>& a, const std::vector<Number>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), less);
}

Numbers flattened(Numbers data) {
  data.shape = {data.size()};
  return data;
}

// ---------------------------------------------------------------- TopK

std::vector<Numbers> top_k_reference(const Call& c) {
  const Numbers& x = c[0];
  const int64_t axis = positive_axis(c.i("axis", -1), x.shape.rank()), k = c.list(1)[0];
  const bool largest = c.i("largest", 1) != 0;
  Numbers values = zeros(x.dtype, with_extent(x.shape, axis, k)), indices = zeros(DType::i64, values.shape);
  const Shape lines = with_extent(x.shape, axis, 1);
  const int64_t count = x.shape[static_cast<int>(axis)];
  for (int64_t line = 0; line < lines.element_count(); ++line) {
    Ints at = position_of(line, lines);
    std::vector<Number> elements;
    for (at[axis] = 0; at[axis] < count; ++at[axis]) elements.push_back(x.values[flat_of(at, x.shape)]);
    Ints order = counted(count);
    // Equal elements keep their order.
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return largest ? less(elements[b], elements[a]) : less(elements[a], elements[b]); });
    for (int64_t i = 0; i < k; ++i) {
      at[axis] = i;
      values.values[flat_of(at, values.shape)] = elements[order[i]];
      indices.values[flat_of(at, values.shape)] = static_cast<Number>(order[i]);
    }
  }
  return {values, indices};
}

Row top_k() {
  std::vector<Case> cases = {{Kind::odd, "f32[8] = inf 0 -inf 2 inf 0 -inf -1, i64[1] = 8"},
                             {Kind::odd, "f32[8] = inf 0 -inf 2 inf 0 -inf -1, i64[1] = 6; largest=0"},
                             {Kind::odd, "f16[6] = 0 -0.0 0 -0.0 -1 1, i64[1] = 6"},
                             {Kind::odd, "f32[7] = 1 nan inf nan -inf 0 nan, i64[1] = 5"},
                             {Kind::odd, "bf16[7] = 1 nan inf nan -inf 0 nan, i64[1] = 5; largest=0"},
                             {Kind::odd, "f64[6] = -0.0 0 -0.0 0 -1 1, i64[1] = 5; largest=0"},
                             {Kind::odd, "u64[4] = 1 18446744073709551615 9223372036854775808 9223372036854775807, i64[1] = 3"},
                             {Kind::odd, "i64[4] = 9007199254740993 -9223372036854775808 9007199254740992 -1, i64[1] = 4"}};
  for (const std::string order : {"largest=1", "largest=0", "sorted=0, largest=0", "sorted=0"})
    for (const Case& more : std::vector<Case>{{Kind::odd, "T[7] = 0..5, i64[1] = 3; "},
                                              {Kind::odd, "T[1], i64[1] = 1; "},
                                              {Kind::odd, "T[5,17], i64[1] = 17; "},
                                              {Kind::odd, "T[5,65] = 0..9, i64[1] = 11; "},
                                              {Kind::odd, "T[5,65] = 0..9, i64[1] = 1; "},
                                              {Kind::odd, "T[65,3] =" + digits(195, 4) + ", i64[1] = 33; axis=0, "},
                                              {Kind::odd, "T[3,33,2] =" + digits(198, 3) + ", i64[1] = 9; axis=1, "},
                                              {Kind::empty, "T[0,7], i64[1] = 2; "},
                                              {Kind::empty, "T[3,7], i64[1] = 0; "},
                                              {Kind::strided, "T[3,33,5] = 0..9, i64[1] = 4; axis=-2, "},
                                              {Kind::strided, "T[7,3,5] = 0..9, i64[1] = 4; axis=-3, "},
                                              {Kind::rank, "T[1,2,1,2,7,2,1,3] = 0..3, i64[1] = 3; axis=4, "}})
      cases.push_back({more.kind, more.call + order});
  for (const std::string call : {"T[401,157] = 0..99, i64[1] = 5", "f32[60001], i64[1] = 100", "i8[60001] = 0..99, i64[1] = 257; largest=0",
                                 "i32[157,401] = 0..99, i64[1] = 9; axis=0", "f64[7,33,257], i64[1] = 33; axis=1, largest=0",
                                 "i16[3,20001] = 0..999, i64[1] = 20001",
                                 // So long a line is sorted in another way, which can be cancelled.
                                 "i8[3200017] = 0..99, i64[1] = 7"})
    cases.push_back({Kind::large, call});
  return {.type = "TopK", .reference = top_k_reference, .cases = cases, .without = {one_input}};
}

// ---------------------------------------------------------------- Unique

std::vector<Numbers> unique_reference(const Call& c) {
  const bool whole = !c.given("axis");
  const Numbers x = whole ? flattened(c[0]) : c[0];
  const int64_t axis = whole ? 0 : positive_axis(c.i("axis", 0), x.shape.rank());
  const int64_t count = x.shape[static_cast<int>(axis)];
  std::vector<std::vector<Number>> entries;
  for (int64_t i = 0; i < count; ++i) entries.push_back(slices(x, axis, {i}).values);
  Ints order = counted(count);
  if (c.i("sorted", 1) != 0)
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return earlier(entries[a], entries[b]); });
  // Lists each element that has not occurred before, in that order.
  Ints first, inverse(static_cast<size_t>(count)), counts;
  std::map<std::vector<Number>, size_t, decltype(&earlier)> known(&earlier);
  for (const int64_t i : order) {
    const auto [at, is_new] = known.emplace(entries[i], first.size());
    if (is_new) {
      first.push_back(i);
      counts.push_back(0);
    }
    inverse[i] = static_cast<int64_t>(at->second);
    ++counts[at->second];
  }
  const auto found = static_cast<int64_t>(first.size());
  return {slices(x, axis, first), integers({found}, first), integers({count}, inverse), integers({found}, counts)};
}

Row unique() {
  std::vector<Case> cases = {{Kind::odd, "T[7] = 0..2"},
                             {Kind::odd, "T[1]"},
                             {Kind::odd, "T[] = 1"},
                             {Kind::odd, "f32[8] = inf 0 -inf 2 inf 0 -inf -1"},
                             {Kind::odd, "f32[8] = inf 0 -inf 2 inf 0 -inf -1; sorted=0"},
                             {Kind::odd, "f32[4] = 0 -0.0 -0 0"},
                             {Kind::odd, "f32[7] = 1 nan inf nan -inf 1 nan"},
                             {Kind::odd, "f16[3,2] = 1 nan 0 5 1 nan; axis=0, sorted=0"},
                             {Kind::odd, "f32[4,1] = 0 -0.0 1 0; axis=0"},
                             {Kind::odd, "u64[4] = 1 18446744073709551615 9223372036854775808 1"},
                             {Kind::odd, "i64[4] = 9007199254740993 -9223372036854775808 9007199254740992 -1"}};
  for (const std::string sorted : {"sorted=1", "sorted=0"})
    for (const Case& more : std::vector<Case>{{Kind::odd, "T[65] =" + digits(65, 2) + "; "},
                                              {Kind::odd, "T[5,17] = 0..2; "},
                                              {Kind::odd, "T[17,3] =" + digits(51, 2) + "; axis=0, "},
                                              {Kind::odd, "T[3,17,2] =" + digits(102, 2) + "; axis=1, "},
                                              {Kind::odd, "f64[2,33] =" + digits(66, 4) + "; axis=1, "},
                                              {Kind::odd, "bf16[2,33] =" + digits(66, 4) + "; axis=1, "},
                                              {Kind::odd, "f16[99] =" + digits(99, 9) + "; "},
                                              {Kind::odd, "i8[33,2] = -2..2; axis=0, "},
                                              {Kind::empty, "T[0]; "},
                                              {Kind::empty, "T[0,3]; axis=0, "},
                                              {Kind::empty, "T[3,0,2]; axis=1, "},
                                              {Kind::strided, "T[2,3,33] =" + digits(198, 2) + "; axis=-1, "},
                                              {Kind::strided, "T[2,33,2] =" + digits(132, 2) + "; axis=-2, "},
                                              {Kind::strided, "T[33,2,2] =" + digits(132, 2) + "; axis=-3, "},
                                              {Kind::rank, "T[1,2,1,1,7,1,1,2] =" + digits(28, 2) + "; axis=4, "},
                                              {Kind::rank, "T[1,2,1,2,3,2,1,3] = 0..2; "},
                                              {Kind::large, "i32[60001] = -300..300; "},
                                              {Kind::large, "f32[257,63]; "},
                                              {Kind::large, "i64[20001,3] = 0..5; axis=0, "},
                                              {Kind::large, "u8[3,10001,2] = 0..3; axis=1, "}})
      cases.push_back({more.kind, more.call + sorted});
  // So many elements are sorted in another way, which can be cancelled.
  cases.push_back({Kind::large, "i8[1201,1403] = 0..2; axis=0"});
  return {.type = "Unique", .reference = unique_reference, .cases = cases, .without = {one_input}, .one_tile = true};
}

// ---------------------------------------------------------------- Compress, NonZero

std::vector<Numbers> compress_reference(const Call& c) {
  const bool whole = !c.given("axis");
  const Numbers x = whole ? flattened(c[0]) : c[0];
  Ints taken;
  for (int64_t i = 0; i < c[1].size(); ++i)
    if (c[1].values[i] != 0) taken.push_back(i);
  return {slices(x, whole ? 0 : positive_axis(c.i("axis", 0), x.shape.rank()), taken)};
}

Row compress() {
  return {.type = "Compress",
          .reference = compress_reference,
          .cases = {{Kind::odd, "T[7], bool[7] = 1 0 0 1 1 0 1"},
                    {Kind::odd, "T[7,3], bool[7] = 1 0 0 1 1 0 1; axis=0"},
                    {Kind::odd, "T[7,65], bool[7] = 0 1 1 1 0 0 0; axis=0"},
                    {Kind::odd, "T[3,7,17], bool[7] = 0 1 1 1 0 1 0; axis=1"},
                    {Kind::odd, "T[3,5,17], bool[255] =" + digits(255, 2)},
                    {Kind::odd, "T[3,5], bool[5] = 1; axis=1"},
                    {Kind::odd, "f32[6] = nan inf -inf 0 -0.0 1, bool[6] = 1 1 1 0 1 0"},
                    {Kind::empty, "T[0], bool[0]"},
                    {Kind::empty, "T[7], bool[7] = 0"},
                    {Kind::empty, "T[3,5], bool[0]; axis=1"},
                    {Kind::empty, "T[3,0], bool[3] = 1 0 1; axis=0"},
                    {Kind::broadcast, "T[7], bool[4] = 1 0 0 1"},
                    {Kind::broadcast, "T[3,7], bool[5] = 1 0 0 1 1; axis=1"},
                    {Kind::broadcast, "T[3,7], bool[11] = 1 0 0 1 1 0 0 0 0 0 1"},
                    {Kind::strided, "T[3,5,7], bool[7] = 1 0 0 1 1 0 1; axis=-1"},
                    {Kind::strided, "T[3,5,7], bool[5] = 1 0 0 1 1; axis=-2"},
                    {Kind::strided, "T[3,5,7], bool[2] = 0 1; axis=-3"},
                    {Kind::rank, "T[1,2,1,2,5,2,1,3], bool[5] = 1 0 0 1 1; axis=4"},
                    {Kind::large, "T[257,301], bool[257] =" + digits(257, 2) + "; axis=0"},
                    {Kind::large, "T[301,257], bool[257] =" + digits(257, 2) + "; axis=1"},
                    {Kind::large, "f64[70001], bool[70001] = 0..2"},
                    {Kind::large, "u8[3,257,1001], bool[257] =" + digits(257, 2) + "; axis=1"}},
          .one_tile = true};
}

std::vector<Numbers> non_zero_reference(const Call& c) {
  std::vector<Ints> found;
  for (int64_t i = 0; i < c[0].size(); ++i)
    if (c[0].values[i] != 0) found.push_back(position_of(i, c[0].shape));
  Ints coordinates;
  for (int axis = 0; axis < c[0].shape.rank(); ++axis)
    for (const Ints& at : found) coordinates.push_back(at[axis]);
  return {integers({c[0].shape.rank(), static_cast<int64_t>(found.size())}, coordinates)};
}

Row non_zero() {
  return {.type = "NonZero",
          .reference = non_zero_reference,
          .cases = {{Kind::odd, "T[7] = 1 0 0 1 1 0 1"},
                    {Kind::odd, "T[3,5,17] =" + digits(255, 2)},
                    {Kind::odd, "T[65,9] =" + digits(585, 2)},
                    {Kind::odd, "T[2,33] = 1"},
                    {Kind::odd, "T[] = 1"},
                    {Kind::odd, "f32[8] = nan inf -inf 0 -0.0 1 1e-45 -1e-45"},
                    {Kind::odd, "f64[5] = nan 0 -0.0 5e-324 -inf"},
                    {Kind::odd, "f16[5] = nan 0 -0.0 6e-8 -inf"},
                    {Kind::odd, "bf16[5] = nan 0 -0.0 1e-40 -inf"},
                    {Kind::odd, "i16[4] = 256 0 -32768 0"},
                    {Kind::odd, "u64[4] = 4294967296 0 9223372036854775808 0"},
                    {Kind::empty, "T[0]"},
                    {Kind::empty, "T[3,0,2]"},
                    {Kind::empty, "T[3,7] = 0"},
                    {Kind::empty, "T[] = 0"},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3] =" + digits(24, 2)},
                    {Kind::large, "T[301,257] = 0..2"},
                    {Kind::large, "u8[257,9,61] = 0..2"},
                    {Kind::large, "bool[4200011] = 0..2"}},
          .without = {one_input, takes_no_steps},
          .one_tile = true};
}

}  // namespace
}  // namespace reference_selection

std::vector<Row> selection_rows() {
  using namespace reference_selection;
  return {top_k(), unique(), compress(), non_zero()};
}

}  // namespace heddle::conformance

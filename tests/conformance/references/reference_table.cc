// Rows of a table that are written or combined at indices, and sums with weights.
#include <algorithm>

#include "conformance/cases/movement.h"

namespace heddle::conformance {
namespace reference_table {
namespace {

struct Places {
  explicit Places(const Call& c, size_t indices) : indices_(c[indices]), rows_(static_cast<size_t>(c[0].shape[0])) {
    length = rows_ > 0 ? c[0].values.size() / rows_ : 0;
  }
  // Calls f(begin of a row of the table, begin of a row of values).
  template <class F>
  void each(F f) const {
    for (size_t i = 0; i < indices_.values.size(); ++i) {
      const Number index = indices_.values[i];
      f(static_cast<size_t>(index < 0 ? index + static_cast<Number>(rows_) : index) * length, i * length);
    }
  }
  size_t length = 0;

 private:
  const Numbers& indices_;
  const size_t rows_;
};

std::vector<Numbers> assigned(const Call& c) {
  Numbers result = c[0];
  const Places places(c, 1);
  places.each([&](size_t to, size_t from) {
    for (size_t k = 0; k < places.length; ++k) result.values[to + k] = c[2].values[from + k];
  });
  return {result};
}

// Products are rounded to the dtype each time.
Number product(DType dtype, Number a, Number b) {
  return dtype == DType::f64 ? static_cast<double>(a) * static_cast<double>(b) : rounded(dtype, a * b);
}
Number sum(DType dtype, Number a, Number b) {
  return dtype == DType::f64 ? static_cast<double>(a) + static_cast<double>(b) : rounded(dtype, a + b);
}

std::vector<Numbers> weighted(const Call& c) {
  Numbers result = c[0];
  const DType dtype = c[0].dtype;
  const Places places(c, 2);
  places.each([&](size_t to, size_t from) {
    for (size_t k = 0; k < places.length; ++k) {
      Number& w = result.values[to + k];
      if (c[1].values[0] != 1) w = product(dtype, w, c[1].values[0]);
      for (size_t i = 3; c.has(i); i += 2) w = sum(dtype, w, product(dtype, c[i + 1].values[0], c[i].values[from + k]));
    }
  });
  return {result};
}

std::vector<Numbers> dense(const Call& c) {
  const Numbers &indices = c[0], &values = c[1];
  int64_t rows = 0;
  for (const Number index : indices.values) rows = std::max(rows, static_cast<int64_t>(index) + 1);
  Shape shape = values.shape;
  shape[0] = c.has(2) ? c[2].shape[0] : rows;
  Numbers result = zeros(values.dtype, shape);
  const size_t length = indices.size() > 0 ? values.values.size() / indices.values.size() : 0;
  for (size_t i = 0; i < indices.values.size(); ++i)
    for (size_t k = 0; k < length; ++k) {
      Number& element = result.values[static_cast<size_t>(indices.values[i]) * length + k];
      element = sum(values.dtype, element, values.values[i * length + k]);
    }
  return {result};
}

// 16-bit floats are added up as f32.
std::vector<Numbers> sum_of_pairs(const Call& c) {
  Numbers result = c[0];
  const DType dtype = c[0].dtype == DType::f64 ? DType::f64 : DType::f32;
  for (size_t k = 0; k < result.values.size(); ++k) {
    Number total = product(dtype, c[1].values[0], c[0].values[k]);
    for (size_t i = 2; c.has(i); i += 2) total = sum(dtype, total, product(dtype, c[i + 1].values[0], c[i].values[k]));
    result.values[k] = rounded(c[0].dtype, total);
  }
  return {result};
}

// The shapes of one table: its rows, the dimensions after them, the indices, and their number.
struct Shapes {
  Kind kind;
  std::string rows, behind, indices, count;
};
const std::vector<Shapes> shapes = {{Kind::odd, "1", "", "U[1] = 0", "1"},
                                    {Kind::odd, "5", "", "U[4] = 3 -1 0 3", "4"},
                                    {Kind::odd, "5", ",7", "U[6] = 3 -1 0 3 4 -2", "6"},
                                    {Kind::odd, "4", ",3,11", "U[65] = -4..4", "65"},
                                    {Kind::strided, "3", ",16", "i64[3] = -1 -2 -3", "3"},
                                    {Kind::empty, "3", ",5", "i64[0]", "0"},
                                    {Kind::empty, "0", ",5", "i64[0]", "0"},
                                    {Kind::empty, "3", ",0", "i32[2] = 1 1", "2"},
                                    {Kind::rank, "3", ",2,1,3,2,1,2,3", "i64[4] = 2 0 2 2", "4"},
                                    {Kind::large, "801", ",33", "i64[3001] = -801..801", "3001"},
                                    {Kind::large, "9", ",17", "i32[5003] = 7", "5003"}};

Row scatter_assign() {
  std::vector<Case> cases;
  for (const Shapes& s : shapes)
    cases.push_back({s.kind, "T[" + s.rows + s.behind + "], " + s.indices + ", T[" + s.count + s.behind + "]"});
  for (const char* apply : {", bool[] = 0", ", bool[1] = 1"})
    cases.push_back({Kind::odd, std::string("T[5,3], U[2] = 3 -1, T[2,3]") + apply});
  return {.type = "ScatterAssign",
          .reference = [](const Call& call) { return call.has(3) && call[3].values[0] == 0 ? std::vector{call[0]} : assigned(call); },
          .cases = cases,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a row of values for each index"}}};
}

Row scatter_weighted_sum() {
  std::vector<Case> cases;
  for (const Shapes& s : shapes)
    for (const std::string weight : {"T[] = 1", "T[1] = 0.75"})
      for (const bool twice : {false, true}) {
        const std::string values = ", T[" + s.count + s.behind + "]";
        cases.push_back({s.kind, "T[" + s.rows + s.behind + "], " + weight + ", " + s.indices + values + ", T[] = -0.5" +
                                     (twice ? values + ", T[1] = 0.3" : "")});
      }
  cases.push_back({Kind::odd, "f32[3] = 0 inf -0.0, f32[] = 0, i64[3] = 0 1 2, f32[3] = nan 1 inf, f32[] = 1"});
  return {.type = "ScatterWeightedSum",
          .reference = weighted,
          .cases = cases,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a row of values for each index"}}};
}

Row sparse_to_dense() {
  std::vector<Case> cases = {{Kind::odd, "U[1] = 0, T[1]"},
                             {Kind::odd, "U[3] = 2 0 1, T[3]"},
                             {Kind::odd, "U[3] = 2 0 2, T[3,2], f32[4]"},
                             {Kind::odd, "U[5] = 3 3 0 3 9, T[5,7]"},
                             {Kind::odd, "i32[65] = 0..11, T[65,3,11], i64[13,2]"},
                             {Kind::odd, "i64[2] = 0 2, T[2], bool[3]"},
                             {Kind::odd, "i64[4] = 0 0 1 1, f32[4] = -0.0 nan inf -inf, f32[3]"},
                             {Kind::odd, "i64[3] = 1 1 1, f16[3] = 60000 60000 -60000, f16[2]"},
                             {Kind::odd, "i64[3] = 1 1 1, i8[3] = 100 100 -3, i8[2]"},
                             {Kind::strided, "i64[4] = 9 6 3 0, T[4,16], u8[11]"},
                             {Kind::empty, "U[0], T[0,5]"},
                             {Kind::empty, "i64[0], T[0,5], f32[3]"},
                             {Kind::empty, "i64[2] = 1 1, T[2,0], f32[3,4]"},
                             {Kind::empty, "i64[2] = 1 1, T[2,0]"},
                             {Kind::empty, "i64[2] = 1 1, T[2,3], f64[4,0]"},
                             {Kind::empty, "i64[0], T[0,5], f32[0]"},
                             {Kind::rank, "i64[3] = 2 0 2, T[3,2,1,3,2,1,2,3], f32[4]"},
                             {Kind::large, "i64[301] = 0..801, T[301,333], f32[801]"},
                             {Kind::large, "i32[5003] = 7, f64[5003,17]"},
                             {Kind::large, "i64[3] = 0 1 0, f64[3,70001], f32[2]"},
                             {Kind::large, "i64[2] = 100001 7, f32[2,5], f32[200003]"}};
  for (const char* like : {"f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u16", "u32", "u64"})
    cases.push_back({Kind::odd, "i64[2] = 1 0, f32[2,3], " + std::string(like) + "[5]"});
  return {.type = "SparseToDense",
          .reference = dense,
          .cases = cases,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a row of values for each index"}}};
}

Row weighted_sum() {
  std::vector<Case> cases = {{Kind::odd, "f32[3] = 0 inf -0.0, f32[] = 0, f32[3] = nan 1 inf, f32[1] = -1"},
                             {Kind::odd, "f16[2] = 60000 1, f16[] = 2, f16[2] = 60000 -1, f16[] = -1"}};
  for (const auto& [kind, shape] : std::vector<std::pair<Kind, std::string>>{{Kind::odd, "T[]"},
                                                                             {Kind::odd, "T[1]"},
                                                                             {Kind::odd, "T[5,7]"},
                                                                             {Kind::odd, "T[1025]"},
                                                                             {Kind::empty, "T[3,0]"},
                                                                             {Kind::rank, "T[3,2,1,3,2,1,2,3]"},
                                                                             {Kind::large, "T[801,533]"}}) {
    cases.push_back({kind, shape + ", T[] = 0.7"});
    cases.push_back({kind, shape + ", T[1] = -0.5, " + shape + ", T[] = 0.3, " + shape + ", T[1,1] = 1"});
  }
  std::string many = "T[9], T[]";
  for (int i = 1; i < 70; ++i) many += ", T[9], T[]";
  cases.push_back({Kind::odd, many});
  return {.type = "WeightedSum",
          .reference = sum_of_pairs,
          .cases = cases,
          .domain = "heddle",
          .without = {{Kind::broadcast, "all of one shape"}, {Kind::strided, "element by element"}}};
}

}  // namespace
}  // namespace reference_table

std::vector<Row> table_rows() {
  using namespace reference_table;
  return {scatter_assign(), scatter_weighted_sum(), sparse_to_dense(), weighted_sum()};
}

}  // namespace heddle::conformance

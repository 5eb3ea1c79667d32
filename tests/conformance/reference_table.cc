// Rows of a table that are written or combined where indices say.
#include "conformance/movement.h"

namespace heddle::conformance {
namespace reference_table {
namespace {

struct Places {
  explicit Places(const Call& c, size_t indices) : indices_(c[indices]), rows_(static_cast<size_t>(c[0].shape[0])) {
    length = rows_ > 0 ? c[0].values.size() / rows_ : 0;
  }
  // f(where a row of the table begins, where one of the values does)
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

// Rounded to the dtype each time.
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

// Of one table that has other shapes: its rows, what is behind them, the indices, and how many there are.
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
  return {.type = "ScatterAssign",
          .reference = assigned,
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

}  // namespace
}  // namespace reference_table

std::vector<Row> table_rows() {
  using namespace reference_table;
  return {scatter_assign(), scatter_weighted_sum()};
}

}  // namespace heddle::conformance

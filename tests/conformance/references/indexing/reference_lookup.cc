// Lookups in tables, by bags, and the operators that make up their gradients.
#include <cmath>

#include "conformance/cases/movement.h"
#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_lookup {
namespace {

// The inputs of an operator; `lengths`: the list gives the number of lookups of each bag, otherwise the begin of each.
struct Ports {
  size_t indices, list, weights;
  bool lengths;
};
constexpr size_t none = 99;

size_t row_length(const Numbers& table) {
  size_t length = 1;
  for (int i = 1; i < table.shape.rank(); ++i) length *= static_cast<size_t>(table.shape[i]);
  return length;
}
Shape with_rows(const Shape& shape, int64_t rows) {
  Ints dims = {rows};
  for (int i = 1; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return shape_of(dims);
}

// Returns the number of lookups of each bag.
Ints counts_of(const Call& c, const Ports& ports) {
  const Numbers& indices = c[ports.indices];
  if (!c.has(ports.list)) return Ints(static_cast<size_t>(indices.shape[0]), indices.shape[1]);
  Ints list = c.list(ports.list);
  if (ports.lengths) return list;
  if (c.i("include_last_offset", 0) == 0) list.push_back(indices.size());
  Ints counts;
  for (size_t i = 0; i + 1 < list.size(); ++i) counts.push_back(list[i + 1] - list[i]);
  return counts;
}

Reference sums_of_bags(const Ports& ports, bool mean_of_lengths = false) {
  return [ports, mean_of_lengths](const Call& c) -> std::vector<Numbers> {
    const Numbers &table = c[0], &indices = c[ports.indices];
    const bool mean = mean_of_lengths || c.s("mode", "sum") == "mean";
    const Ints counts = counts_of(c, ports);
    const auto bags = static_cast<int64_t>(counts.size());
    const size_t length = row_length(table);
    Numbers y = zeros(table.dtype, with_rows(table.shape, bags));
    y.scale = y.values;
    Numbers bag_of = zeros(DType::i32, Shape{indices.size()}), lengths = zeros(DType::i64, Shape{bags});
    size_t lookup = 0;
    for (size_t bag = 0; bag < counts.size(); ++bag) {
      const auto count = static_cast<size_t>(counts[bag]);
      for (size_t k = 0; k < count; ++k, ++lookup) {
        const auto row = static_cast<size_t>(indices.values[lookup]);
        const Number weight = c.has(ports.weights) ? c[ports.weights].values[lookup] : 1;
        for (size_t i = 0; i < length; ++i) {
          const Number term = weight * table.values[row * length + i];
          y.values[bag * length + i] += term;
          y.scale[bag * length + i] += std::fabs(term);
        }
        bag_of.values[lookup] = static_cast<Number>(bag);
      }
      for (size_t i = bag * length; i < (bag + 1) * length; ++i) {
        if (mean && count > 0) y.values[i] /= static_cast<Number>(count), y.scale[i] /= static_cast<Number>(count);
        y.scale[i] = once_rounded(y.dtype, y.scale[i] * walk(count));
      }
      lengths.values[bag] = static_cast<Number>(count);
    }
    if (ports.lengths) return {y, bag_of};
    return {y, bag_of, lengths};
  };
}

Row bags_row(const char* type, Reference reference, std::vector<Case> cases) {
  return {.type = type,
          .reference = std::move(reference),
          .cases = std::move(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a table, and lookups in it"}},
          .signed_zeros = false};
}

Row embedding_bag() {
  std::vector<Case> cases;
  for (const char* mode : {"", "; mode=\"mean\""}) {
    const auto add = [&](Kind kind, const std::string& call) { cases.push_back({kind, call + mode}); };
    for (const char* behind : {"", ",1", ",3", ",8", ",16", ",31", ",64", ",67", ",129", ",260", ",3,11"})
      add(Kind::odd, "T[7" + std::string(behind) + "], U[11] = 0..7, i64[4] = 0 3 3 9");
    add(Kind::odd, "T[5,7], U[4,3] = 0..5");
    add(Kind::odd, "T[5,64], U[3,70] = 0..5");
    add(Kind::odd, "T[1,1], U[1] = 0, i64[1] = 0");
    add(Kind::odd, "f32[5,6], i32[7] = 0..5, i32[3] = 0 0 7");
    add(Kind::odd, "f32[3,2] = nan 1 inf 2 3 -inf, i64[4] = 0 1 1 2, i64[3] = 0 1 3");
    add(Kind::strided, "T[5,16], U[6] = 4 3 2 1 0 4, i32[3] = 0 2 6");
    add(Kind::empty, "T[5,3], U[0], i64[3] = 0");
    add(Kind::empty, "T[5,3], U[0], i64[0]");
    add(Kind::empty, "T[0,3], U[0], i64[2] = 0");
    add(Kind::empty, "T[5,0], U[4] = 0..5, i64[2] = 0 1");
    add(Kind::empty, "T[5,3], U[0,4]");
    add(Kind::empty, "T[5,3], U[4,0]");
    add(Kind::rank, "T[3,2,1,3,2,1,2,3], U[4] = 0..3, i64[2] = 0 1");
    add(Kind::large, "T[1001,33], U[3001,5] = 0..1001");
    add(Kind::large, "f32[5,40003], i64[7] = 0..5, i64[3] = 0 2 2");
    add(Kind::large, "f32[901,64], i32[5003,20] = 0..901");
    add(Kind::large, "bf16[7,5], i64[100003] = 0..7, i64[2] = 0 3");
    const std::string list = mode + std::string(*mode ? ", " : "; ") + "include_last_offset=1";
    cases.push_back({Kind::odd, "T[5,7], U[6] = 0..5, i64[4] = 0 2 2 6" + list});
    cases.push_back({Kind::empty, "T[5,7], U[0], i64[1] = 0" + list});
  }
  for (const char* behind : {"", ",1", ",5", ",16", ",67", ",129"}) {
    cases.push_back({Kind::odd, "T[7" + std::string(behind) + "], U[11] = 0..7, i64[4] = 0 3 3 9, T[11]"});
    cases.push_back({Kind::odd, "T[7" + std::string(behind) + "], U[3,5] = 0..7, -, T[3,5]"});
  }
  cases.push_back({Kind::odd, "f32[2,2] = inf 1 2 nan, i64[3] = 0 1 0, i64[2] = 0 1, f32[3] = 0 1 -1"});
  cases.push_back({Kind::large, "T[101,33], U[3001,5] = 0..101, -, T[3001,5]"});
  cases.push_back({Kind::large, "f16[7,5], i64[5003] = 0..7, i64[2] = 0 3, f16[5003]"});
  return bags_row("EmbeddingBag", sums_of_bags({1, 2, 3, false}), cases);
}

Row by_lengths(const char* type, const Ports& ports, bool mean) {
  const bool weighted = ports.weights != none;
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& table, const std::string& count, const std::string& content,
                       const std::string& lengths) {
    const std::string dtype = table.substr(0, table.find('['));
    cases.push_back({kind, table + (weighted ? ", " + dtype + "[" + count + "]" : "") + ", U[" + count + "]" + content + ", " + lengths});
  };
  for (const char* behind : {"", ",1", ",5", ",16", ",67", ",129", ",3,11"})
    add(Kind::odd, "T[7" + std::string(behind) + "]", "11", " = 0..7", "i32[4] = 3 0 6 2");
  add(Kind::odd, "T[7,3]", "5", " = 6 0 3 3 1", "i64[1] = 5");
  add(Kind::odd, "T[4,3]", "5", " = 3 0 3 2 1", "i64[4] = 1 0 3 1");
  add(Kind::odd, "T[1,1]", "1", " = 0", "i64[1] = 1");
  add(Kind::strided, "T[5,16]", "6", " = 4 3 2 1 0 4", "i64[2] = 2 4");
  add(Kind::empty, "T[5,3]", "0", "", "i32[3] = 0");
  add(Kind::empty, "T[5,3]", "0", "", "i64[0]");
  add(Kind::empty, "T[5,0]", "4", " = 0..5", "i32[2] = 1 3");
  add(Kind::empty, "T[0,3]", "0", "", "i64[2] = 0");
  add(Kind::rank, "T[3,2,1,3,2,1,2,3]", "4", " = 0..3", "i64[2] = 1 3");
  add(Kind::large, "T[1001,33]", "15005", " = 0..1001", "i32[3001] = 5");
  add(Kind::large, "f32[901,64]", "100060", " = 0..901", "i64[5003] = 20");
  return bags_row(type, sums_of_bags(ports, mean), cases);
}

// ---------------------------------------------------------------- gradients

std::vector<Numbers> bag_rows_reference(const Call& c) {
  const Numbers &values = c[0], &bags = c[1];
  const size_t length = row_length(values);
  Numbers rows = zeros(values.dtype, with_rows(values.shape, bags.size()));
  for (size_t i = 0; i < rows.values.size(); ++i) {
    const size_t lookup = i / length;
    rows.values[i] = values.values[static_cast<size_t>(bags.values[lookup]) * length + i % length];
    if (c.has(2)) rows.values[i] *= c[2].values[lookup];
  }
  return {rows};
}

Row bag_rows() {
  std::vector<Case> cases;
  for (const char* weights : {"", ", T[9]"})
    for (const char* behind : {"", ",1", ",7", ",16", ",67", ",3,11"})
      cases.push_back({Kind::odd, "T[5" + std::string(behind) + "], U[9] = 0..5" + weights});
  for (const char* const call : {"T[5,3], U[0]", "T[0,3], U[0], T[0]", "T[5,0], U[3] = 0..5"}) cases.push_back({Kind::empty, call});
  cases.push_back({Kind::odd, "T[1], U[1] = 0"});
  cases.push_back({Kind::odd, "f32[3] = nan -0 inf, i64[4] = 0 1 2 1, f32[4] = 1 2 0 -1"});
  cases.push_back({Kind::strided, "T[3,16], U[3] = 2 1 0"});
  cases.push_back({Kind::rank, "T[3,2,1,3,2,1,2,3], U[4] = 0..3"});
  cases.push_back({Kind::large, "T[301,33], U[5003] = 0..301, T[5003]"});
  cases.push_back({Kind::large, "f32[3,140001], i32[4] = 0..3"});
  return {.type = "BagRows",
          .reference = bag_rows_reference,
          .cases = cases,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a row for each bag, a bag for each lookup"}}};
}

std::vector<Numbers> weights_gradient_reference(const Call& c) {
  const Numbers &table = c[0], &indices = c[1], &bags = c[2], &dy = c[3];
  const size_t length = row_length(table);
  Numbers products = zeros(table.dtype, indices.shape);
  products.scale = products.values;
  for (size_t lookup = 0; lookup < products.values.size(); ++lookup) {
    const auto row = static_cast<size_t>(indices.values[lookup]), bag = static_cast<size_t>(bags.values[lookup]);
    for (size_t i = 0; i < length; ++i) {
      const Number term = table.values[row * length + i] * dy.values[bag * length + i];
      products.values[lookup] += term;
      products.scale[lookup] += std::fabs(term);
    }
    products.scale[lookup] = once_rounded(table.dtype, products.scale[lookup] * walk(length));
  }
  return {products};
}

Row weights_gradient() {
  std::vector<Case> cases;
  for (const char* behind : {"", ",1", ",7", ",16", ",67", ",3,11"})
    cases.push_back({Kind::odd, "T[5" + std::string(behind) + "], U[9] = 0..5, i32[9] = 0..4, T[4" + behind + "]"});
  cases.push_back({Kind::odd, "f32[5,3], i64[9] = 0..5, i64[9] = 0..4, f32[4,3]"});
  cases.push_back({Kind::odd, "T[9], U[9] = 0..9, i32[9] = 0..4, T[4]"});
  cases.push_back({Kind::odd, "T[1,1], U[1] = 0, i32[1] = 0, T[1,1]"});
  cases.push_back({Kind::odd, "f32[2,2] = nan 1 inf 1, i64[2] = 0 1, i32[2] = 0, f32[1,2] = 1 0"});
  for (const char* const call : {"T[5,3], U[0], i32[0], T[2,3]", "T[0,3], U[0], i32[0], T[0,3]", "T[5,0], U[3] = 0..5, i32[3] = 0, T[1,0]"})
    cases.push_back({Kind::empty, call});
  cases.push_back({Kind::strided, "T[5,16], U[5] = 4 3 2 1 0, i32[5] = 1 1 1 0 0, T[2,16]"});
  cases.push_back({Kind::rank, "T[3,2,1,3,2,1,2,3], U[4] = 0..3, i32[4] = 0..2, T[2,2,1,3,2,1,2,3]"});
  cases.push_back({Kind::large, "T[301,33], U[9001] = 0..301, i32[9001] = 0..200, T[200,33]"});
  cases.push_back({Kind::large, "f32[3,140001], i32[7] = 0..3, i32[7] = 0..2, f32[2,140001]"});
  return {.type = "BagWeightsGradient",
          .reference = weights_gradient_reference,
          .cases = cases,
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a row and a bag for each lookup"}},
          .signed_zeros = false};
}

}  // namespace
}  // namespace reference_lookup

std::vector<Row> lookup_rows() {
  using namespace reference_lookup;
  return {embedding_bag(),
          by_lengths("SparseLengthsSum", {1, 2, none, true}, false),
          by_lengths("SparseLengthsMean", {1, 2, none, true}, true),
          by_lengths("SparseLengthsWeightedSum", {2, 3, 1, true}, false),
          bag_rows(),
          weights_gradient()};
}

}  // namespace heddle::conformance

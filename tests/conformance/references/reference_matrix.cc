// MatMul, Gemm and Einsum.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_matrix {
namespace {

Shape prefix(const Shape& shape, int rank) {
  return Shape(shape.data(), rank);
}

// ---------------------------------------------------------------- MatMul

std::vector<Numbers> matrix_product(const Call& call) {
  const Numbers &a = call[0], &b = call[1];
  // A vector is a row on the left, a column on the right; that dimension is removed from the result.
  const Shape of_a = a.shape.rank() == 1 ? Shape{1, a.shape[0]} : a.shape, of_b = b.shape.rank() == 1 ? Shape{b.shape[0], 1} : b.shape;
  const Shape batch_a = prefix(of_a, of_a.rank() - 2), batch_b = prefix(of_b, of_b.rank() - 2), batch = broadcast_of({batch_a, batch_b});
  const int64_t rows = of_a[of_a.rank() - 2], inner = of_a[of_a.rank() - 1], columns = of_b[of_b.rank() - 1];
  Shape shape = batch;
  if (a.shape.rank() > 1) shape.push_back(rows);
  if (b.shape.rank() > 1) shape.push_back(columns);
  Numbers y = zeros(a.dtype, shape);
  y.scale = y.values;
  size_t to = 0;
  for (int64_t image = 0; image < batch.element_count(); ++image) {
    const Ints at = position_of(image, batch);
    const Number* const from_a = a.values.data() + broadcast_flat(at, batch_a) * rows * inner;
    const Number* const from_b = b.values.data() + broadcast_flat(at, batch_b) * inner * columns;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Sum sum;
        for (int64_t k = 0; k < inner; ++k) sum.add_product(from_a[i * inner + k], from_b[k * columns + j]);
        sum.store(y, to++);
      }
  }
  return {y};
}

Row matmul() {
  return {.type = "MatMul",
          .reference = matrix_product,
          .cases = {{Kind::odd, "T[3,5], T[5,7]"},
                    {Kind::odd, "T[1,1], T[1,1]"},
                    {Kind::odd, "T[5], T[5]"},
                    {Kind::odd, "T[5], T[5,7]"},
                    {Kind::odd, "T[3,5], T[5]"},
                    {Kind::odd, "T[2,3,4,5], T[5]"},
                    {Kind::odd, "T[5], T[2,3,5,4]"},
                    {Kind::odd, "f32[17,33], f32[33,65]"},
                    {Kind::odd, "f32[64,16], f32[16,7]"},
                    {Kind::odd, "f32[1,65], f32[65,129]"},
                    {Kind::odd, "f32[33,1], f32[1,17]"},
                    {Kind::odd, "f32[70,65], f32[65,1]"},
                    {Kind::odd, "f32[2,3] = nan 1 2 inf -1 1, f32[3,2] = 1 2 3 4 -inf 0.5"},
                    {Kind::odd, "f16[2,3] = nan 1 2 inf -1 1, f16[3,2] = 1 2 3 4 -inf 0.5"},
                    {Kind::odd, "f64[2,3] = nan 1 2 inf -1 1, f64[3,2] = 1 2 3 4 -inf 0.5"},
                    {Kind::empty, "T[3,0], T[0,7]"},
                    {Kind::empty, "T[0], T[0]"},
                    {Kind::empty, "T[0,5], T[5,7]"},
                    {Kind::empty, "T[2,0,5], T[5]"},
                    {Kind::empty, "T[0,3,5], T[1,5,2]"},
                    {Kind::broadcast, "T[2,1,3,5], T[3,5,4]"},
                    {Kind::broadcast, "T[3,5], T[2,3,5,4]"},
                    {Kind::broadcast, "T[2,3,4,5], T[5,3]"},
                    {Kind::broadcast, "T[4,1,3,5], T[1,2,5,2]"},
                    {Kind::broadcast, "f32[5,1,17,33], f32[3,33,9]"},
                    {Kind::broadcast, "f32[1,17,33], f32[6,33,19]"},
                    {Kind::rank, "T[2,1,2,1,2,1,3,5], T[1,2,1,2,1,2,5,4]"},
                    // Several tiles: of rows, of columns, of images; long sums.
                    {Kind::large, "f32[301,67], f32[67,133]"},
                    // Deeper than a library is called for: then the sums are of double.
                    {Kind::large, "f32[16777216], f32[16777216,1]"},
                    {Kind::large, "f32[1,5000001] = 0..1, f32[5000001,2] = 0..1"},
                    {Kind::large, "f32[7,129], f32[129,3001]"},
                    {Kind::large, "f32[13,45,31], f32[13,31,151]"},
                    {Kind::large, "f32[5,3,45,31], f32[3,31,201]"},
                    {Kind::large, "f32[3,70001], f32[70001,2]"},
                    {Kind::large, "f32[1,517], f32[517,5003]"},
                    {Kind::large, "f16[301,67], f16[67,133]"},
                    {Kind::large, "bf16[7,61,31], bf16[31,65]"},
                    {Kind::large, "f64[301,67], f64[67,133]"},
                    {Kind::large, "i32[301,37], i32[37,133]"},
                    {Kind::large, "u64[5,61,37], u64[37,65]"}},
          .ulps = 1,
          .without = {{Kind::strided, "it takes whole matrices"}},
          // Sums in f32 of up to 70001 terms: errors of half a unit of the sum so far, which grow no faster than sqrt(n) / 2 units of the
          // sum of all magnitudes and stay far below it if terms have both signs.
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 2}}};
}

// ---------------------------------------------------------------- Gemm

std::vector<Numbers> general_product(const Call& call) {
  const Numbers &a = call[0], &b = call[1];
  const bool of_a = call.i("transA", 0) != 0, of_b = call.i("transB", 0) != 0;
  const auto alpha = static_cast<Number>(call.f("alpha", 1)), beta = static_cast<Number>(call.f("beta", 1));
  const int64_t rows = a.shape[of_a ? 1 : 0], inner = a.shape[of_a ? 0 : 1], columns = b.shape[of_b ? 0 : 1];
  Numbers y = zeros(a.dtype, {rows, columns});
  y.scale = y.values;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      Sum sum;
      for (int64_t k = 0; k < inner; ++k)
        sum.add_product(a.values[static_cast<size_t>(of_a ? k * rows + i : i * inner + k)],
                        b.values[static_cast<size_t>(of_b ? j * inner + k : k * columns + j)]);
      sum.value *= alpha;
      sum.magnitude *= std::fabs(alpha);
      if (call.has(2)) sum.add_product(beta, call[2].values[static_cast<size_t>(broadcast_flat({i, j}, call[2].shape))]);
      sum.store(y, static_cast<size_t>(i * columns + j));
    }
  return {y};
}

Row gemm() {
  return {.type = "Gemm",
          .reference = general_product,
          .cases = {{Kind::odd, "T[3,5], T[5,7]"},
                    {Kind::odd, "T[3,5], T[5,7], T[3,7]; alpha=2.0, beta=3.0"},
                    {Kind::odd, "T[1,1], T[1,1], T[1]; alpha=2.0"},
                    {Kind::odd, "f32[17,33], f32[33,65], f32[65]; alpha=-0.75"},
                    {Kind::odd, "f16[17,33], f16[33,65], f16[17,65]; alpha=-0.75, beta=1.25"},
                    {Kind::odd, "bf16[17,33], bf16[33,65], bf16[65]; beta=0.5"},
                    {Kind::odd, "f64[17,33], f64[33,65], f64[65]; alpha=-0.75, beta=0.5"},
                    {Kind::odd, "f32[2,2] = nan 1 inf 0, f32[2,2] = 1 -1 1 0.5, f32[2] = 1 inf"},
                    {Kind::odd, "f64[2,2] = nan 1 inf 0, f64[2,2] = 1 -1 1 0.5, f64[2] = 1 inf"},
                    {Kind::empty, "T[3,0], T[0,7], T[7]; beta=2.0"},
                    {Kind::empty, "T[3,0], T[0,7]"},
                    {Kind::empty, "T[0,5], T[5,7], T[7]"},
                    {Kind::empty, "T[0,3], T[7,0]; transA=1, transB=1"},
                    {Kind::broadcast, "T[3,5], T[5,7], T[]"},
                    {Kind::broadcast, "T[3,5], T[5,7], T[1]; beta=2.0"},
                    {Kind::broadcast, "T[3,5], T[5,7], T[7]"},
                    {Kind::broadcast, "T[3,5], T[5,7], T[3,1]; beta=3.0"},
                    {Kind::broadcast, "T[3,5], T[5,7], T[1,7]; alpha=2.0"},
                    {Kind::broadcast, "T[3,5], T[5,7], T[1,1]"},
                    {Kind::broadcast, "f32[70,33], f32[33,40], f32[70,1]; alpha=0.5, beta=-2.0"},
                    {Kind::strided, "T[5,3], T[5,7], T[7]; transA=1"},
                    {Kind::strided, "T[3,5], T[7,5], T[7]; transB=1"},
                    {Kind::strided, "T[5,3], T[7,5], T[3,7]; transA=1, transB=1, alpha=2.0"},
                    {Kind::strided, "f32[33,65], f32[33,17], f32[17]; transA=1"},
                    {Kind::strided, "f32[65,33], f32[17,33], f32[65,17]; transB=1, beta=0.5"},
                    {Kind::strided, "f32[33,65], f32[17,33]; transA=1, transB=1, alpha=1.5"},
                    {Kind::large, "f32[301,67], f32[67,133], f32[301,133]; alpha=0.5, beta=2.0"},
                    {Kind::large, "f32[67,301], f32[133,67], f32[133]; transA=1, transB=1"},
                    // Operands that are copied for tiles of columns, and of rows.
                    {Kind::large, "f32[129,257], f32[129,1100], f32[1100]; transA=1"},
                    {Kind::large, "f32[65,1100], f32[65,257]; transA=1, alpha=1.5"},
                    {Kind::large, "f32[257,129], f32[129,1100], f32[257,1]"},
                    {Kind::large, "f32[7,129], f32[3001,129], f32[7,1]; transB=1, beta=3.0"},
                    {Kind::large, "f32[1,517], f32[5003,517], f32[5003]; transB=1"},
                    {Kind::large, "f16[301,67], f16[133,67], f16[133]; transB=1"},
                    {Kind::large, "f64[67,301], f64[67,133], f64[133]; transA=1"},
                    {Kind::large, "i32[301,37], i32[133,37], i32[301,1]; transB=1, beta=2.0"}},
          .ulps = 1,
          .without = {{Kind::rank, "all inputs are matrices"}},
          // Sums of up to 517 terms; see MatMul.
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 2}}};
}

// ---------------------------------------------------------------- Einsum

// Returns the letters of a term, one for each dimension. Those of an ellipsis are '0' and on, from the last of its dimensions.
std::string labels_of(const std::string& term, int of_ellipsis) {
  std::string labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i]))) labels += term[i];
    if (term.compare(i, 3, "...") == 0)
      for (int d = of_ellipsis; d-- > 0;) labels += static_cast<char>('0' + d);
  }
  return labels;
}

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

Equation equation_of(const Call& call) {
  std::string text = call.s("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  int of_ellipsis = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    if (terms[i].find("...") != std::string::npos) of_ellipsis = call[i].shape.rank() - static_cast<int>(labels_of(terms[i], 0).size());
  Equation equation;
  std::map<char, int> times;
  for (const std::string& term : terms) {
    equation.inputs.push_back(labels_of(term, of_ellipsis));
    for (const char label : labels_of(term, 0)) ++times[label];
  }
  if (arrow != std::string::npos) {
    equation.output = labels_of(text.substr(arrow + 2), of_ellipsis);
  } else {
    equation.output = labels_of("...", of_ellipsis);
    for (const auto& [label, count] : times)
      if (count == 1) equation.output += label;
  }
  return equation;
}

std::vector<Numbers> sum_of_products(const Call& call) {
  const Equation equation = equation_of(call);
  // An extent of 1 in an ellipsis matches any other.
  std::array<int64_t, 128> extents{};  // by label
  std::set<char> labels;
  for (size_t i = 0; i < equation.inputs.size(); ++i)
    for (size_t d = 0; d < equation.inputs[i].size(); ++d) {
      int64_t& extent = extents[static_cast<size_t>(equation.inputs[i][d])];
      if (labels.insert(equation.inputs[i][d]).second || extent == 1) extent = call[i].shape[static_cast<int>(d)];
    }
  std::string summed;
  for (const char label : labels)
    if (equation.output.find(label) == std::string::npos) summed += label;
  Shape shape;
  for (const char label : equation.output) shape.push_back(extents[static_cast<size_t>(label)]);
  int64_t count = 1;
  for (const char label : summed) count *= extents[static_cast<size_t>(label)];

  Numbers y = zeros(call[0].dtype, shape);
  y.scale = y.values;
  std::array<int64_t, 128> at{};  // by label
  for (int64_t to = 0; to < y.size(); ++to) {
    const Ints position = position_of(to, shape);
    for (size_t d = 0; d < equation.output.size(); ++d) at[static_cast<size_t>(equation.output[d])] = position[d];
    Sum sum;
    for (int64_t term = 0; term < count; ++term) {
      int64_t rest = term;
      for (size_t d = summed.size(); d-- > 0;) {
        const auto label = static_cast<size_t>(summed[d]);
        at[label] = rest % extents[label];
        rest /= extents[label];
      }
      Number product = 1;
      for (size_t i = 0; i < equation.inputs.size(); ++i) {
        int64_t flat = 0;
        for (size_t d = 0; d < equation.inputs[i].size(); ++d) {
          const int64_t extent = call[i].shape[static_cast<int>(d)];
          flat = flat * extent + (extent == 1 ? 0 : at[static_cast<size_t>(equation.inputs[i][d])]);
        }
        product *= call[i].values[static_cast<size_t>(flat)];
      }
      sum.add_product(product, 1);
    }
    sum.store(y, static_cast<size_t>(to));
  }
  return {y};
}

Row einsum() {
  return {.type = "Einsum",
          .reference = sum_of_products,
          .cases = {{Kind::odd, "T[3,5], T[5,7]; equation=\"ij,jk->ik\""},
                    {Kind::odd, "T[3,5] = 0..3, T[5] = 0..3; equation=\"ij,j\""},
                    {Kind::odd, "T[7], T[7]; equation=\"i,i->\""},
                    {Kind::odd, "T[7], T[5]; equation=\"i,j->ij\""},
                    {Kind::odd, "T[3,5,7]; equation=\"abc->\""},
                    {Kind::odd, "T[3,5,7]; equation=\" a b c -> b \""},
                    {Kind::odd, "T[3,5], T[7,5], T[4,5]; equation=\"ij,kj,lj->ikl\""},
                    {Kind::odd, "T[2,3], T[3,4], T[4,5], T[5,2]; equation=\"ab,bc,cd,da->\""},
                    {Kind::odd, "T[]; equation=\"->\""},
                    {Kind::odd, "T[], T[3]; equation=\",a->a\""},
                    {Kind::odd, "f32[3,17,33], f32[3,33,9]; equation=\"bij,bjk->bik\""},
                    {Kind::odd, "f32[5,8,16], f32[64,8]; equation=\"bhc,kh->bkc\""},
                    {Kind::odd, "f32[2,3] = nan 1 2 inf -1 1, f32[2] = 1 -1; equation=\"ij,i->j\""},
                    {Kind::empty, "T[3,0], T[0,7]; equation=\"ij,jk->ik\""},
                    {Kind::empty, "T[0,5], T[5,7]; equation=\"ij,jk\""},
                    {Kind::empty, "T[3,0]; equation=\"ij->\""},
                    {Kind::broadcast, "T[2,1,3,5], T[1,4,5,2]; equation=\"...ij,...jk->...ik\""},
                    {Kind::broadcast, "T[3,5,2], T[3]; equation=\"a...,a\""},
                    {Kind::broadcast, "T[1,5], T[3,1], T[1,1]; equation=\"...,...,...->...\""},
                    {Kind::broadcast, "T[4,2,3], T[4,1,3]; equation=\"a...,a...->...\""},
                    // Diagonals, transposes, letters in the order of ASCII.
                    {Kind::strided, "T[5,5]; equation=\"ii->i\""},
                    {Kind::strided, "T[5,5]; equation=\"ii\""},
                    {Kind::strided, "T[3,4,4,3]; equation=\"abba->ba\""},
                    {Kind::strided, "T[2,5,5]; equation=\"...ii->...i\""},
                    {Kind::strided, "T[3,5]; equation=\"ba\""},
                    {Kind::strided, "T[3,5]; equation=\"aB\""},
                    {Kind::strided, "T[2,3,2,5]; equation=\"aBa...\""},
                    {Kind::strided, "T[2,3,5,4], T[4,3,2]; equation=\"abcd,dbe->cea\""},
                    {Kind::strided, "f32[17,9,5], f32[9,33]; equation=\"abc,bd->dca\""},
                    {Kind::rank, "T[1,2,1,2,1,2,1,3], T[1,2,1,2,1,2,1,3]; equation=\"abcdefgh,abcdefgh->hgfedcba\""},
                    {Kind::rank, "T[2,1,2,1,2,1,3,2]; equation=\"...a->a...\""},
                    {Kind::large, "f32[61,37], f32[37,131]; equation=\"ij,jk->ik\""},
                    {Kind::large, "f32[100001], f32[100001]; equation=\"i,i->\""},
                    {Kind::large, "f16[31,37], f16[37,71]; equation=\"ij,jk->ki\""},
                    {Kind::large, "u8[301,257]; equation=\"ab->ba\""},
                    {Kind::large, "f64[100001], f64[100001]; equation=\"i,i->\""},
                    {Kind::large, "i16[3,70001] = -3..3; equation=\"ij->i\""}},
          .ulps = 1,
          // Sums of up to 100001 terms; see MatMul.
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 2}}};
}

}  // namespace
}  // namespace reference_matrix

std::vector<Row> matrix_rows() {
  using namespace reference_matrix;
  return {matmul(), gemm(), einsum()};
}

}  // namespace heddle::conformance

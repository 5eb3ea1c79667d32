// MatMul and Gemm against plain loops in double: broadcast batches, vectors, transposes, every split, fused operators.
#include "layout_support.h"
#include "operators/float_tiles_support.h"

namespace heddle::testing {
namespace {

Shape shape_of(const Ints& dims) {
  return Shape(dims.data(), static_cast<int>(dims.size()));
}

// NumPy's matmul, element by element.
std::vector<float> product(const Tensor& at, const Tensor& bt, const Shape& y) {
  const std::vector<float> a = values<float>(*at), b = values<float>(*bt);
  Ints ad(at->shape.begin(), at->shape.end()), bd(bt->shape.begin(), bt->shape.end()), yd(y.begin(), y.end());
  if (bd.size() == 1) bd.push_back(1), yd.push_back(1);
  if (ad.size() == 1) ad.insert(ad.begin(), 1), yd.insert(yd.end() - 1, 1);
  const size_t rank = yd.size();
  const int64_t rows = yd[rank - 2], columns = yd[rank - 1], depth = ad.back();
  int64_t images = 1;
  for (size_t i = 0; i + 2 < rank; ++i) images *= yd[i];
  auto image_of = [&](const Ints& dims, int64_t image) {
    int64_t index = 0, stride = 1;
    for (size_t i = 0; i + 2 < rank; ++i) {
      const size_t from_end = i + 3;
      const int64_t extent = yd[rank - from_end], position = image % extent;
      image /= extent;
      if (dims.size() < from_end) continue;
      const int64_t own = dims[dims.size() - from_end];
      if (own != 1) index += position * stride;
      stride *= own;
    }
    return index;
  };
  std::vector<float> result;
  for (int64_t n = 0; n < images; ++n) {
    const int64_t a0 = image_of(ad, n) * rows * depth, b0 = image_of(bd, n) * depth * columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += static_cast<double>(a[static_cast<size_t>(a0 + i * depth + k)]) * b[static_cast<size_t>(b0 + k * columns + j)];
        result.push_back(static_cast<float>(sum));
      }
    }
  }
  return result;
}

TEST(MatMul, EqualsPlainLoopsInEverySplit) {
  const std::pair<Ints, Ints> cases[] = {
      {{3, 4}, {4, 5}},
      {{1, 300}, {300, 1000}},
      {{1, 2048}, {2048, 1000}},
      {{37, 64}, {64, 17}},
      {{128, 256}, {256, 384}},
      {{300, 200}, {200, 9}},
      {{513, 65}, {65, 130}},
      {{5, 7, 48}, {48, 80}},
      {{2, 64, 96}, {2, 96, 64}},
      {{2, 12, 64, 32}, {2, 12, 32, 64}},
      {{2, 1, 40, 32}, {3, 32, 48}},
      {{4, 3, 20, 16}, {4, 1, 16, 24}},
      {{6, 40, 32}, {1, 32, 50}},
      {{1, 40, 32}, {7, 32, 50}},
      {{40}, {40, 70}},
      {{70, 40}, {40}},
      {{500}, {500}},
      {{3, 20, 30}, {30}},
      {{30}, {3, 30, 20}},
      {{3, 0}, {0, 4}},
      {{0, 3}, {3, 4}},
      {{2, 3, 4}, {0, 4, 5}},
  };
  for (const auto& [a_dims, b_dims] : cases) {
    if (a_dims.size() == 3 && b_dims.size() == 3 && b_dims[0] == 0) continue;  // 2 does not broadcast to 0
    const Tensor a = random_tensor(shape_of(a_dims), 1), b = random_tensor(shape_of(b_dims), 2);
    const std::string what = std::to_string(a_dims[0]) + "... by " + std::to_string(b_dims.back());
    Tensor first;
    for (bool constant : {true, false}) {
      OperatorCall call = call_of("MatMul", {a, b});
      call.constant_inputs = constant;
      const Tensor y = run(call)[0];
      expect_close(values<float>(*y), product(a, b, y->shape), 2e-4f, what);
      for (uint64_t seed : {1, 2}) {
        call.split_seed = seed;
        expect_same_bits(run(call)[0], y, what + ", split");
      }
    }
  }
}

TEST(MatMul, OtherDtypes) {
  const Tensor y = run1("MatMul", {tensor<int32_t>(Shape{2, 2}, {1, 2, 3, 4}), tensor<int32_t>(Shape{2, 1}, {10, 100})});
  EXPECT_EQ(values<int32_t>(*y), (std::vector<int32_t>{210, 430}));
  const Tensor d = run1("MatMul", {tensor<double>(Shape{3}, {1, 2, 3}), tensor<double>(Shape{3}, {4, 5, 6})});
  EXPECT_EQ(values<double>(*d), (std::vector<double>{32}));
  EXPECT_EQ(d->shape.rank(), 0);
}

TEST(MatMul, FusedEpilogueOpsEqualSeparateOperators) {
  const std::string gelu = "mul(mul(acc, 0.5), add(erf(mul(acc, 0.7071067811865476)), 1))";
  const std::vector<std::vector<OperatorCall::EpilogueOp>> fusions = {
      {{"add(acc, operand)", 2, HEDDLE_OPERAND_LAST_DIMENSION}},
      {{"add(acc, operand)", 2, HEDDLE_OPERAND_LAST_DIMENSION}, {gelu}},
      {{"add(operand, acc)", 2, HEDDLE_OPERAND_LAST_DIMENSION}, {"add(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}},
      {{"mul(acc, operand)", 4, HEDDLE_OPERAND_SCALAR}, {"add(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}, {"max(acc, 0)"}},
      {{"mul(acc, operand)", 2, HEDDLE_OPERAND_LAST_DIMENSION},
       {"tanh(acc)"},
       {"div(operand, add(2, abs(acc)))", 3, HEDDLE_OPERAND_SAME_SHAPE}},
      {{"mul(acc, 0.125)"}, {"add(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}},
  };
  const std::pair<Ints, Ints> cases[] = {{{128, 192}, {192, 384}},   {{1, 512}, {512, 512}},        {{3, 5}, {5, 7}},
                                         {{4, 60, 32}, {4, 32, 40}}, {{2, 3, 40, 32}, {3, 32, 40}}, {{3, 9, 16}, {16, 500}}};
  for (const auto& [a_dims, b_dims] : cases) {
    std::vector<Tensor> inputs = {random_tensor(shape_of(a_dims), 1), random_tensor(shape_of(b_dims), 2)};
    const Tensor plain = run(call_of("MatMul", inputs))[0];
    inputs.push_back(random_tensor(Shape{b_dims.back()}, 3));
    inputs.push_back(random_tensor(plain->shape, 4));
    inputs.push_back(random_tensor(Shape{}, 5));
    for (const auto& epilogue_ops : fusions) {
      Tensor want = plain;
      for (const OperatorCall::EpilogueOp& epilogue_op : epilogue_ops) want = apply_epilogue_op(want, epilogue_op, inputs);
      for (bool constant : {true, false}) {
        OperatorCall call = call_of("MatMul", inputs);
        call.epilogue_ops = epilogue_ops;
        call.constant_inputs = constant;
        const auto fused = run(call);
        ASSERT_EQ(fused.size(), 1u);
        expect_close(values<float>(*fused[0]), values<float>(*want), 1e-4f, epilogue_ops[0].expression);
        call.split_seed = 9;
        expect_same_bits(run(call)[0], fused[0], epilogue_ops[0].expression + ", split");
      }
    }
  }
}

TEST(MatMul, RefusesWhatDoesNotFit) {
  auto error = [](const Ints& a, const Ints& b) {
    return error_of(call_of("MatMul", {random_tensor(shape_of(a), 1), random_tensor(shape_of(b), 2)}));
  };
  EXPECT_NE(error({3, 4}, {5, 6}).find("expected as many columns of A (4) as rows of B (5)"), std::string::npos);
  EXPECT_NE(error({2, 3, 4}, {3, 4, 5}).find("do not broadcast"), std::string::npos);
  EXPECT_NE(error({}, {4, 5}).find("scalar"), std::string::npos);
}

struct GemmCase {
  bool transpose_a, transpose_b;
  float alpha, beta;
  Ints c;
  bool has_c = true;
};

TEST(Gemm, EqualsPlainLoops) {
  const GemmCase cases[] = {
      {false, false, 1, 1, {150}},   {false, true, 1, 1, {1, 150}},  {true, false, 0.5f, 1, {40, 150}},  {true, true, 2, -0.25f, {40, 1}},
      {false, true, 1, 1, {}},       {false, false, 1, 0, {150}},    {false, true, 1.5f, 1, {1}, false}, {false, false, 1, 1, {1, 1}},
      {true, false, 1, 0.5f, {150}}, {false, true, 1, 1, {40, 150}},
  };
  const int64_t m = 40, n = 150, k = 90;
  for (const GemmCase& c : cases) {
    const Tensor at = random_tensor(c.transpose_a ? Shape{k, m} : Shape{m, k}, 1);
    const Tensor bt = random_tensor(c.transpose_b ? Shape{n, k} : Shape{k, n}, 2);
    const Tensor ct = c.has_c ? random_tensor(shape_of(c.c), 3) : nullptr;
    const std::vector<float> a = values<float>(*at), b = values<float>(*bt), cv = ct ? values<float>(*ct) : std::vector<float>();
    std::vector<float> want;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t d = 0; d < k; ++d)
          sum += static_cast<double>(a[static_cast<size_t>(c.transpose_a ? d * m + i : i * k + d)]) *
                 b[static_cast<size_t>(c.transpose_b ? j * k + d : d * n + j)];
        double value = static_cast<double>(c.alpha) * sum;
        const int64_t rows = c.c.size() < 2 ? 1 : c.c[0], columns = c.c.empty() ? 1 : c.c.back();
        if (ct) value += static_cast<double>(c.beta) * cv[static_cast<size_t>((rows == 1 ? 0 : i * columns) + (columns == 1 ? 0 : j))];
        want.push_back(static_cast<float>(value));
      }
    }
    for (bool constant : {true, false}) {
      OperatorCall call = call_of(
          "Gemm", {at, bt, ct},
          {{"transA", int64_t{c.transpose_a}}, {"transB", int64_t{c.transpose_b}}, {"alpha", double{c.alpha}}, {"beta", double{c.beta}}});
      call.constant_inputs = constant;
      const auto y = run(call);
      ASSERT_EQ(y.size(), 1u);
      expect_close(values<float>(*y[0]), want, 1e-4f, "Gemm");
      call.split_seed = 3;
      expect_same_bits(run(call)[0], y[0], "Gemm, split");
    }
  }
}

TEST(Gemm, FusedReluAndIntegers) {
  OperatorCall call = call_of("Gemm", {random_tensor(Shape{8, 300}, 1), random_tensor(Shape{200, 300}, 2), random_tensor(Shape{200}, 3)},
                              {{"transB", int64_t{1}}});
  const Tensor plain = run(call)[0];
  call.epilogue_ops = {{"max(acc, 0)"}};
  expect_same_bits(run(call)[0], evaluate("max(x0, 0)", {plain}), "relu behind Gemm");
  const Tensor y =
      run1("Gemm", {tensor<int64_t>(Shape{1, 2}, {3, 4}), tensor<int64_t>(Shape{2, 1}, {5, 6}), tensor<int64_t>(Shape{1}, {7})});
  EXPECT_EQ(values<int64_t>(*y), (std::vector<int64_t>{46}));
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  auto error = [](const Ints& a, const Ints& b, const Ints& c) {
    return error_of(call_of("Gemm", {random_tensor(shape_of(a), 1), random_tensor(shape_of(b), 2), random_tensor(shape_of(c), 3)}));
  };
  EXPECT_NE(error({3, 4}, {5, 6}, {6}).find("expected as many columns"), std::string::npos);
  EXPECT_NE(error({3, 4}, {4, 6}, {5}).find("C is [5]"), std::string::npos);
  EXPECT_NE(error({3, 4, 1}, {4, 6}, {6}).find("expected a matrix"), std::string::npos);
}

struct Product {
  std::string type;
  std::vector<Shape> shapes;
  std::vector<Attribute> attributes = {};
};

// oneDNN may add the terms of a tile in another order than those of the whole product.
void expect_product(const Product& product) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : product.shapes) inputs.push_back(random_tensor(shape, 1 + static_cast<uint32_t>(inputs.size())));
  for (const bool constant : {true, false}) {
    OperatorCall call = call_of(product.type, {}, product.attributes);
    call.constant_inputs = constant;
    expect_f32_rounded_once(call, inputs, false);
  }
}

TEST(FloatTiles, ProductsAreThoseOfF32RoundedOnce) {
  const Product products[] = {
      {"MatMul", {{3, 4}, {4, 5}}},
      {"MatMul", {{1, 300}, {300, 1000}}},
      {"MatMul", {{1, 2048}, {2048, 1000}}},
      {"MatMul", {{128, 256}, {256, 384}}},
      {"MatMul", {{300, 200}, {200, 9}}},
      {"MatMul", {{513, 65}, {65, 130}}},
      {"MatMul", {{5, 7, 48}, {48, 80}}},
      {"MatMul", {{2, 12, 64, 32}, {2, 12, 32, 64}}},
      {"MatMul", {{2, 1, 40, 32}, {3, 32, 48}}},
      {"MatMul", {{6, 40, 32}, {1, 32, 50}}},
      {"MatMul", {{1, 40, 32}, {7, 32, 50}}},
      {"MatMul", {{40}, {40, 70}}},
      {"MatMul", {{3, 20, 30}, {30}}},
      {"MatMul", {{30}, {3, 30, 20}}},
      {"MatMul", {{3, 0}, {0, 4}}},
      {"MatMul", {{1, 1 << 22}, {1 << 22, 2}}},
      {"Gemm", {{64, 256}, {256, 256}}},
      {"Gemm", {{64, 256}, {256, 256}, {256}}},
      {"Gemm", {{256, 64}, {300, 256}, {64, 300}}, {{"transA", 1}, {"transB", 1}, {"alpha", 0.5f}, {"beta", 2.0f}}},
      {"Gemm", {{100, 70}, {70, 130}, {100, 1}}, {{"beta", 0.25f}}},
      {"Gemm", {{3, 4}, {4, 5}, {1}}},
  };
  for (const Product& product : products) expect_product(product);
}

}  // namespace
}  // namespace heddle::testing

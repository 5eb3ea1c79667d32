// SparseToDense in nets: its gradient, outputs whose number of rows only the run knows, the same bits for any number of threads, and
// refusals.
#include <cstring>

#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;
using Ints = std::vector<int64_t>;

TensorView list(const Ints& indices) {
  return testing_nets::view(indices.data(), DType::i64, Shape{static_cast<int64_t>(indices.size())});
}

// ---------------------------------------------------------------- gradients

TEST(SparseToDense, HasTheGradientThatDifferencesShow) {
  const std::vector<Shape> shapes = {Shape{3, 2}, Shape{5}};
  const Values at = {numbers(shapes[0], 3), numbers(shapes[1], 4)};
  // The number of rows is that of `like`, whose extent is open or known, or follows from the greatest index.
  for (const char* rows : {"open", "known", "counted"}) {
    NetBuilder b(rows);
    DeclaredType other = DeclaredType::of(DType::f64, shapes[1]);
    if (std::string(rows) == "open") other.dims[0] = Dim::named("n");
    std::vector<ValueId> inputs = {b.constant_ints("indices", {4, 0, 4}), b.input("values", DType::f64, shapes[0])};
    const ValueId like = b.input("like", other);
    if (std::string(rows) != "counted") inputs.push_back(like);
    const ValueId dense = b.add1("SparseToDense", "dense", inputs, {}, "heddle");
    // Every row has a weight of its own, by which its square is multiplied.
    const ValueId weights = b.add1("Unsqueeze", "weights", {like, b.constant_ints("last", {1})});
    b.output(b.add1("Mul", "loss", {b.add1("Mul", "square", {dense, dense}), weights}));
    expect_gradients(b.finish(), "loss", at, 1e-6, shapes);
  }
}

// Indices that are computed in the run, so that the extents of the output and of its gradient are found during the run.
TEST(SparseToDense, HasAGradientWhereOnlyTheRunKnowsTheRows) {
  const std::vector<Shape> shapes = {Shape{3, 2}, Shape{3, 6}};
  NetBuilder b("late");
  const ValueId values = b.input("values", DType::f64, shapes[0]), scores = b.input("scores", DType::f64, shapes[1]);
  const ValueId indices = b.add1("ArgMax", "indices", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  const ValueId dense = b.add1("SparseToDense", "dense", {indices, values}, {}, "heddle");
  b.output(b.add1("ReduceSum", "loss", {b.add1("Mul", "square", {dense, dense})}, {{"keepdims", int64_t{0}}}));
  const Values at = {numbers(shapes[0], 3), {0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}};
  expect_gradients(b.finish(), "loss", at, 1e-6, shapes);
}

// ---------------------------------------------------------------- runs

// Indices and values are inputs; `rows`: those of an input "like", 0: there is none. A further step reads the output.
Net net_of_rows(int64_t count, int64_t length, int64_t rows) {
  NetBuilder b("rows");
  std::vector<ValueId> inputs = {b.input("indices", DType::i64, Shape{count}), b.input("values", DType::f32, Shape{count, length})};
  if (rows > 0) inputs.push_back(b.input("like", DType::u8, Shape{rows}));
  b.output(b.add1("Neg", "negative", {b.add1("SparseToDense", "dense", inputs, {}, "heddle")}));
  return b.finish();
}

std::vector<float> floats_of(const Tensor& tensor) {
  const auto* const data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.shape().element_count()};
}

// FEATURES E6.
TEST(SparseToDense, HasAsManyRowsAsTheIndicesOfTheRunNeed) {
  const std::vector<float> values = {1, 1, 2, 2, 3, 3};
  for (const int threads : {1, 3}) {
    Session session = testing_nets::open(testing_nets::runtime(threads), net_of_rows(3, 2, 0));
    const auto run = [&](const Ints& indices) {
      return session.run({list(indices), testing_nets::view(values.data(), DType::f32, Shape{3, 2})});
    };
    const auto expect_rows = [&](const Ints& indices, const std::vector<float>& expected) {
      const auto ran = run(indices);
      ASSERT_TRUE(ran.ok()) << ran.status().text();
      EXPECT_EQ((*ran)[0].shape(), (Shape{static_cast<int64_t>(expected.size()) / 2, 2}));
      EXPECT_EQ(floats_of((*ran)[0]), expected);
    };
    expect_rows({2, 0, 2}, {-2, -2, -0.0f, -0.0f, -4, -4});
    expect_rows({0, 0, 0}, {-6, -6});
    expect_rows({3, 1, 0}, {-3, -3, -2, -2, -0.0f, -0.0f, -1, -1});
    const std::string negative = run({0, -1, 2}).status().text();
    EXPECT_NE(negative.find("index -1 at position 1 is negative"), std::string::npos) << negative;
    const std::string endless = run({0, INT64_MAX, 2}).status().text();
    EXPECT_NE(endless.find("index 9223372036854775807 at position 1 asks for more rows than there can be"), std::string::npos) << endless;
    const std::string large = run({0, (int64_t{1} << 50) - 1, 2}).status().text();
    EXPECT_NE(large.find("no memory for an output of shape [1125899906842624, 2], which index 1125899906842623 needs"), std::string::npos)
        << large;
    expect_rows({2, 0, 2}, {-2, -2, -0.0f, -0.0f, -4, -4});
  }
}

TEST(SparseToDense, NamesAnIndexThatIsNoRowOfLike) {
  const std::vector<float> values = {1, 1, 2, 2, 3, 3};
  const std::vector<uint8_t> like(4, 0);
  Session session = testing_nets::open(testing_nets::runtime(), net_of_rows(3, 2, 4));
  const auto run = [&](const Ints& indices) {
    return session.run(
        {list(indices), testing_nets::view(values.data(), DType::f32, Shape{3, 2}), testing_nets::view(like.data(), DType::u8, Shape{4})});
  };
  for (const int64_t wrong : {int64_t{4}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const std::string said = run({2, 0, wrong}).status().text();
    EXPECT_NE(said.find("index " + std::to_string(wrong) + " at position 2 is outside [0, 4), the rows of like"), std::string::npos)
        << said;
  }
  const auto ran = run({2, 0, 2});
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  EXPECT_EQ(floats_of((*ran)[0]), (std::vector<float>{-2, -2, -0.0f, -0.0f, -4, -4, -0.0f, -0.0f}));
}

// FEATURES E6: rows that many indices name, whose sums depend on the order in which they are added up.
TEST(SparseToDense, GivesTheSameBitsForAnyNumberOfThreads) {
  constexpr int64_t count = 2000, length = 67, rows = 97;
  Ints indices;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) indices.push_back(i * i % rows);
  for (int64_t i = 0; i < count * length; ++i) values.push_back(1.0f / static_cast<float>(1 + i % 977));
  indices[0] = rows - 1;  // so that all rows are needed
  std::vector<float> expected(static_cast<size_t>(rows * length), 0);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k)
      expected[static_cast<size_t>(indices[static_cast<size_t>(i)] * length + k)] += values[static_cast<size_t>(i * length + k)];
  for (float& value : expected) value = -value;
  const std::vector<uint8_t> like(rows, 0);
  for (const bool is_given : {false, true})
    for (const int threads : {1, 2, 3, 8}) {
      Session session = testing_nets::open(testing_nets::runtime(threads), net_of_rows(count, length, is_given ? rows : 0));
      std::vector<TensorView> inputs = {list(indices), testing_nets::view(values.data(), DType::f32, Shape{count, length})};
      if (is_given) inputs.push_back(testing_nets::view(like.data(), DType::u8, Shape{rows}));
      const auto ran = session.run(inputs);
      ASSERT_TRUE(ran.ok()) << ran.status().text();
      ASSERT_EQ((*ran)[0].shape(), (Shape{rows, length}));
      EXPECT_EQ(std::memcmp((*ran)[0].data(), expected.data(), expected.size() * sizeof(float)), 0) << threads;
    }
}

}  // namespace
}  // namespace heddle

// The peak memory of the gradient of a value with many readers, as planned: a few times the value, however many readers there are.
#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;

constexpr int64_t rows = 600, columns = 256;

// Adds a reader of `x` and returns its output, of any shape.
using Reader = ValueId (*)(NetBuilder& b, ValueId x, int k, int readers);

ValueId slice(NetBuilder& b, ValueId x, int k, int readers) {
  const std::string number = std::to_string(k);
  const int64_t height = rows / readers;
  return b.add1("Slice", "y" + number,
                {x, b.constant_ints("from" + number, {k * height}), b.constant_ints("to" + number, {(k + 1) * height}),
                 b.constant_ints("axis" + number, {0})});
}

ValueId gather(NetBuilder& b, ValueId x, int k, int readers) {
  const std::string number = std::to_string(k);
  return b.add1("GatherND", "y" + number,
                {x, b.constant("at" + number, Blob::copy_of(DType::i64, Shape{1, 1}, std::vector<int64_t>{k * (rows / readers)}.data()))});
}

ValueId layer_normalization(NetBuilder& b, ValueId x, int k, int) {
  const std::string number = std::to_string(k);
  return b.add1("LayerNormalization", "y" + number,
                {x, b.constant("scale" + number, testing_nets::blob(Shape{columns}, 0.5f + 0.01f * static_cast<float>(k), 0.01f))});
}

ValueId mat_mul(NetBuilder& b, ValueId x, int k, int) {
  const std::string number = std::to_string(k);
  return b.add1("MatMul", "y" + number, {x, b.constant("w" + number, testing_nets::blob(Shape{columns, columns}, 0.5f, 0.01f))});
}

ValueId leaky(NetBuilder& b, ValueId x, int k, int) {
  return b.add1("LeakyRelu", "y" + std::to_string(k), {x}, {{"alpha", 0.01f * static_cast<float>(k)}});
}

ValueId scaled(NetBuilder& b, ValueId x, int k, int) {
  const std::string number = std::to_string(k);
  return b.add1("Mul", "y" + number, {x, b.constant("f" + number, testing_nets::blob(Shape{columns}, 0.5f, 0.01f))});
}

ValueId transposed(NetBuilder& b, ValueId x, int k, int) {
  return b.add1("Transpose", "y" + std::to_string(k), {x}, {{"perm", std::vector<int64_t>{1, 0}}});
}

struct Kind {
  const char* name;
  Reader reader;
};
constexpr Kind kinds[] = {{"Slice", slice},         {"GatherND", gather}, {"LayerNormalization", layer_normalization},
                          {"MatMul", mat_mul},      {"LeakyRelu", leaky}, {"Mul", scaled},
                          {"Transpose", transposed}};

// The sum of the outputs of `readers` readers of a value, with the gradient of that value as its output.
Net net_of_readers(const Kind& kind, int readers) {
  NetBuilder b(kind.name);
  const ValueId x = b.input("x", DType::f32, Shape{rows, columns});
  ValueId sum;
  for (int k = 0; k < readers; ++k) {
    const ValueId y = kind.reader(b, x, k, readers);
    sum = k == 0 ? y : b.add1("Add", "sum" + std::to_string(k), {sum, y});
  }
  b.output(b.add1("ReduceMean", "loss", {sum}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

struct Peaks {
  double peak = 0, bound = 0;  // in numbers of values
};

Peaks peaks_of(const Kind& kind, int readers, int threads) {
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"x"};
  options.outputs = true;
  auto made = derived(net_of_readers(kind, readers), options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(threads), std::move(made->net));
  const std::vector<float> from(rows * columns, 1.0f);
  const auto plan = session.plan({testing_nets::view(from.data(), DType::f32, Shape{rows, columns})});
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  constexpr double bytes = rows * columns * sizeof(float);
  return {static_cast<double>((*plan)->memory[0].peak_bytes) / bytes, static_cast<double>((*plan)->memory[0].lower_bound_bytes) / bytes};
}

class ReadersMemory : public testing::TestWithParam<Kind> {};

TEST_P(ReadersMemory, IsAFewTimesTheValue) {
  for (const int threads : {1, 2, 8})
    for (const int readers : {2, 3, 10, 40, 300}) {
      const Peaks found = peaks_of(GetParam(), readers, threads);
      EXPECT_LE(found.peak, 4) << readers << " readers, " << threads << " threads";
      EXPECT_LE(found.bound, found.peak) << readers << " readers, " << threads << " threads";
    }
}

// Parts that overlap, are reversed, or leave elements out, are added to sums that other readers have begun, and vice versa.
TEST(ReadersSum, TakesInParts) {
  for (const bool parts_last : {false, true}) {
    NetBuilder b(parts_last ? "parts last" : "parts first");
    const ValueId x = b.input("x", DType::f64, Shape{4, 6});
    std::vector<ValueId> read;
    const auto sliced = [&](const std::string& name, std::vector<int64_t> from, std::vector<int64_t> to, std::vector<int64_t> steps) {
      return b.add1("Slice", name,
                    {x, b.constant_ints(name + ".from", from), b.constant_ints(name + ".to", to), b.constant_ints(name + ".axes", {0, 1}),
                     b.constant_ints(name + ".steps", steps)});
    };
    const auto parts = [&] {
      read.push_back(sliced("columns", {0, 1}, {4, 4}, {1, 1}));
      read.push_back(sliced("backwards", {-1, -1}, {-9, -9}, {-2, -1}));
      read.push_back(sliced("apart", {1, 0}, {3, 6}, {1, 3}));
      read.push_back(sliced("rows", {1, 0}, {3, 6}, {1, 1}));
      const std::vector<int64_t> rows_read = {3, 0, 3};
      read.push_back(b.add1("GatherND", "gathered", {x, b.constant("at", Blob::copy_of(DType::i64, Shape{3, 1}, rows_read.data()))}));
    };
    if (!parts_last) parts();
    read.push_back(b.add1("Mul", "square", {x, x}));
    read.push_back(b.add1("Sin", "sine", {x}));
    if (parts_last) parts();
    ValueId loss;
    for (size_t i = 0; i < read.size(); ++i) {
      const std::string number = std::to_string(i);
      const ValueId one = b.add1("ReduceSumSquare", "squares" + number, {read[i]}, {{"keepdims", int64_t{0}}});
      loss = i == 0 ? one : b.add1("Add", i + 1 == read.size() ? "loss" : "losses" + number, {loss, one});
    }
    b.output(loss);
    expect_gradients(b.finish(), "loss", {numbers(Shape{4, 6}, 3)});
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReadersMemory, testing::ValuesIn(kinds), [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace heddle

// Attention on the CUDA device: which nets become cuda::Attention, which kernel runs it, and its results, compared with sums in double.
#include <algorithm>
#include <cmath>

#include "conformance/judge.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using conformance::Number;
using conformance::Numbers;

constexpr const char* fused_kernel = "cuda:cudnn_attention";
constexpr const char* composed_kernel = "cuda:cublaslt_attention";

struct Extents {
  int64_t batch = 2, heads = 3, queries = 5, keys = 7, depth = 8, width = 16;
};

Shape shape_of(int64_t heads_axis, const Extents& e, int64_t rows, int64_t columns) {
  return heads_axis == 1 ? Shape{e.batch, e.heads, rows, columns} : Shape{e.batch, rows, e.heads, columns};
}

// Multiples of 1/8, up to one and a half.
Numbers eighths(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 dice(seed);
  Numbers numbers = conformance::zeros(dtype, shape);
  for (Number& number : numbers.values) number = (static_cast<int>(dice() % 25) - 12) / 8.0L;
  return numbers;
}

// Computes softmax(factor query key^T) value.
Numbers attend(DType dtype, int64_t heads_axis, const Extents& e, const std::vector<Numbers>& in, double factor) {
  Numbers out = conformance::zeros(dtype, shape_of(heads_axis, e, e.queries, e.width));
  const auto at = [&](int64_t b, int64_t h, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    return static_cast<size_t>(heads_axis == 1 ? ((b * e.heads + h) * rows + row) * columns + column
                                               : ((b * rows + row) * e.heads + h) * columns + column);
  };
  for (int64_t b = 0; b < e.batch; ++b)
    for (int64_t h = 0; h < e.heads; ++h)
      for (int64_t q = 0; q < e.queries; ++q) {
        std::vector<Number> weights(static_cast<size_t>(e.keys));
        Number sum = 0;
        for (int64_t k = 0; k < e.keys; ++k) {
          Number score = 0;
          for (int64_t c = 0; c < e.depth; ++c)
            score += in[0].values[at(b, h, q, e.queries, c, e.depth)] * in[1].values[at(b, h, k, e.keys, c, e.depth)];
          sum += weights[static_cast<size_t>(k)] = std::exp(static_cast<Number>(factor) * score);
        }
        for (int64_t k = 0; k < e.keys; ++k)
          for (int64_t c = 0; c < e.width; ++c)
            out.values[at(b, h, q, e.queries, c, e.width)] +=
                weights[static_cast<size_t>(k)] / sum * in[2].values[at(b, h, k, e.keys, c, e.width)];
      }
  // The error of a weight is relative to 1, and values are up to 1.5.
  out.scale.assign(out.values.size(), 2);
  return out;
}

struct AttentionCase {
  DType dtype = DType::f16;
  int64_t heads_axis = 1;
  Extents extents;
  std::optional<double> scale;
  bool divides = false;
  bool scale_is_input = false;
  double factor() const { return !scale ? 1 : divides ? 1 / *scale : *scale; }
};

class CudaAttention : public StandinTest {
 protected:
  static std::vector<Numbers> inputs_of(const AttentionCase& node) {
    const Extents& e = node.extents;
    std::vector<Numbers> all = {eighths(node.dtype, shape_of(node.heads_axis, e, e.queries, e.depth), 1),
                                eighths(node.dtype, shape_of(node.heads_axis, e, e.keys, e.depth), 2),
                                eighths(node.dtype, shape_of(node.heads_axis, e, e.keys, e.width), 3)};
    if (node.scale_is_input) all.push_back(scale_of(node));
    return all;
  }
  static Numbers scale_of(const AttentionCase& node) {
    Numbers scale = conformance::zeros(node.dtype, Shape{});
    scale.values[0] = *node.scale;
    return scale;
  }
  static std::vector<ValueId> ports(NetBuilder& b, const AttentionCase& node) {
    const char* const names[] = {"query", "key", "value", "scale"};
    std::vector<ValueId> all;
    for (const Numbers& numbers : inputs_of(node)) all.push_back(b.input(names[all.size()], numbers.dtype, numbers.shape));
    if (node.scale && !node.scale_is_input) all.push_back(b.constant("scale", conformance::blob_of(scale_of(node))));
    return all;
  }
  static Net operator_net(const AttentionCase& node) {
    NetBuilder b("attention");
    const std::vector<ValueId> in = ports(b, node);
    b.output(b.add1("Attention", "y", in, {{"heads_axis", node.heads_axis}, {"divides", int64_t{node.divides}}}, "cuda"));
    return b.finish();
  }
  // Builds the net as exporters write it.
  static Net composed_net(const AttentionCase& node, bool shows_scores = false) {
    using Ints = std::vector<int64_t>;
    NetBuilder b("attention");
    const std::vector<ValueId> in = ports(b, node);
    const bool split = node.heads_axis == 2;
    const auto swapped = [&](const char* name, ValueId of) { return b.add1("Transpose", name, {of}, {{"perm", Ints{0, 2, 1, 3}}}); };
    const ValueId query = split ? swapped("q", in[0]) : in[0], value = split ? swapped("v", in[2]) : in[2];
    const ValueId key = b.add1("Transpose", "k", {in[1]}, {{"perm", split ? Ints{0, 2, 3, 1} : Ints{0, 1, 3, 2}}});
    const ValueId scores = b.add1("MatMul", "scores", {query, key});
    const ValueId scaled = node.scale ? b.add1(node.divides ? "Div" : "Mul", "scaled", {scores, in[3]}) : scores;
    const ValueId weights = b.add1("Softmax", "weights", {scaled}, {{"axis", int64_t{-1}}});
    const ValueId mixed = b.add1("MatMul", "mixed", {weights, value});
    b.output(split ? swapped("merged", mixed) : mixed);
    if (shows_scores) b.output(scores);
    return b.finish();
  }
  // Runs the net, checks output 0, and returns the kernels of cuda::Attention in the plan.
  std::vector<std::string> run(Net net, const AttentionCase& node, const SessionOptions& options, double ulps = 8) {
    const Runtime runtime = cuda_runtime();
    std::vector<std::shared_ptr<const Blob>> blobs;
    for (const Numbers& numbers : inputs_of(node)) blobs.push_back(conformance::blob_of(numbers));
    auto made = testing_standin::prepare(runtime, std::move(net), options);
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (!made.ok()) return {};
    for (size_t i = 0; i < blobs.size(); ++i) EXPECT_TRUE(made->context.bind_input(i, blobs[i]->data).ok());
    for (int i = 0; i < 2; ++i) {
      const Status status = made->context.run();
      EXPECT_TRUE(status.ok()) << status.text();
    }
    const TensorView y = made->context.output(0);
    const Numbers expected = attend(node.dtype, node.heads_axis, node.extents, inputs_of(node), node.factor());
    EXPECT_EQ(conformance::difference({Blob::copy_of(y.dtype, y.shape, y.data)}, {expected}, {ulps, false}), "");
    EXPECT_EQ(broken(), "");
    std::vector<std::string> kernels;
    for (const PlanStep& step : made->plan().steps)
      if (step.type == "Attention") kernels.push_back(step.kernel->name);
    return kernels;
  }
};

using KernelNames = std::vector<std::string>;

TEST_F(CudaAttention, NetsOfProductsAndSoftmaxBecomeIt) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const int64_t heads_axis : {1, 2})
      for (const bool divides : {false, true})
        for (const std::optional<double> scale : {std::optional<double>(), std::optional<double>(0.375)}) {
          SCOPED_TRACE(std::string(to_string(dtype)) + (heads_axis == 2 ? " split heads" : "") + (divides ? " divides" : ""));
          const AttentionCase node = {dtype, heads_axis, {}, scale, divides && scale, false};
          EXPECT_EQ(run(composed_net(node), node, on_cuda()), KernelNames{fused_kernel});
        }
}

TEST_F(CudaAttention, OtherNetsStayAsTheyAre) {
  AttentionCase node = {DType::f16, 2, {}, 0.375, false, false};
  EXPECT_EQ(run(composed_net(node), node, {}, 64), KernelNames{}) << "on the host";
  EXPECT_EQ(run(composed_net(node, true), node, on_cuda(), 64), KernelNames{}) << "scores are an output";
  node.dtype = DType::f32;
  EXPECT_EQ(run(composed_net(node), node, on_cuda(), 64), KernelNames{}) << "cuDNN has no engine for f32";
}

TEST_F(CudaAttention, WhatCudnnHasNoEngineForIsComposed) {
  const Extents odd = {2, 3, 5, 7, 6, 10}, one_head = {2, 1, 5, 7, 6, 10}, one_row = {1, 3, 1, 1, 1, 1}, of_no_columns = {2, 3, 5, 7, 0, 4},
                no_keys = {2, 3, 5, 0, 6, 10}, long_rows = {1, 2, 3, 5000, 4, 3};
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const int64_t heads_axis : {1, 2})
      for (const Extents& e : {odd, one_head, one_row, of_no_columns, no_keys, long_rows}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " axis " + std::to_string(heads_axis) + " depth " + std::to_string(e.depth) +
                     " keys " + std::to_string(e.keys));
        const AttentionCase node = {dtype, heads_axis, e, 0.375, false, false};
        EXPECT_EQ(run(operator_net(node), node, on_cuda(), 64), KernelNames{composed_kernel});
      }
}

TEST_F(CudaAttention, AScaleThatOnlyTheRunKnows) {
  for (const bool divides : {false, true}) {
    const AttentionCase node = {DType::f16, 2, {}, 0.375, divides, true};
    EXPECT_EQ(run(composed_net(node), node, on_cuda(), 64), KernelNames{composed_kernel});
  }
}

TEST_F(CudaAttention, AScaleThatIsNotPositive) {
  for (const double scale : {-0.375, 0.0}) {
    const AttentionCase node = {DType::f16, 2, {}, scale, false, false};
    EXPECT_EQ(run(composed_net(node), node, on_cuda(), 64), KernelNames{composed_kernel});
  }
}

TEST_F(CudaAttention, EmptyOutputs) {
  for (const Extents& e : {Extents{0, 3, 5, 7, 8, 8}, Extents{2, 3, 0, 7, 8, 8}, Extents{2, 3, 5, 7, 8, 0}}) {
    const AttentionCase node = {DType::f16, 1, e, 0.375, false, false};
    EXPECT_EQ(run(operator_net(node), node, on_cuda()), KernelNames{fused_kernel});
  }
}

// There are 2^64 scores, a number that wraps to 0 in 64 bits.
TEST_F(CudaAttention, MoreScoresThanCanBeCountedAreRefused) {
  const StandinSetting large("MEMORY", std::to_string(uint64_t{1} << 40));
  NetBuilder b("large");
  const ValueId x = b.input("x", DType::f16, Shape{16, 1, int64_t{1} << 30, 1});
  b.output(b.add1("Attention", "y", {x, x, x}, {}, "cuda"));
  SessionOptions options = on_cuda();
  options.limits.tensor_bytes = options.limits.plan_bytes = int64_t{1} << 40;
  auto session = cuda_runtime().open(b.finish(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const Status status = session->plan().status();
  EXPECT_NE(status.text().find("operations, most of them (8e+18) in operator \"y\""), std::string::npos) << status.text();
}

TEST_F(CudaAttention, ScoresForWhichThereIsNoRoomAreRefused) {
  NetBuilder b("rows");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3, 100, 1});
  b.output(b.add1("Attention", "y", {x, x, x}, {}, "cuda"));
  SessionOptions options = on_cuda();
  options.memory_limit = 200'000;  // scores take 240000 bytes
  const Status status = testing_standin::prepare(cuda_runtime(), b.finish(), options).status();
  EXPECT_NE(status.text().find("its scores alone are more than the"), std::string::npos) << status.text();
}

TEST_F(CudaAttention, ExtentsThatDoNotGoTogether) {
  const Runtime runtime = cuda_runtime();
  const auto refused = [&](const Shape& key, const Shape& value, int64_t heads_axis) {
    NetBuilder b("wrong");
    const ValueId query = b.input("query", DType::f16, Shape{2, 3, 5, 8});
    b.output(b.add1("Attention", "y", {query, b.input("key", DType::f16, key), b.input("value", DType::f16, value)},
                    {{"heads_axis", heads_axis}}, "cuda"));
    const auto made = testing_standin::prepare(runtime, b.finish(), on_cuda());
    return made.ok() ? std::string("taken") : made.status().text();
  };
  EXPECT_NE(refused({2, 3, 7, 9}, {2, 3, 7, 8}, 1).find("key is [2, 3, 7, 9], expected dimension 3 to be 8, the query's columns"),
            std::string::npos);
  EXPECT_NE(refused({2, 4, 7, 8}, {2, 3, 7, 8}, 1).find("key is [2, 4, 7, 8], expected dimension 1 to be 3, the query's heads"),
            std::string::npos);
  EXPECT_NE(refused({2, 3, 7, 8}, {2, 3, 6, 8}, 1).find("value is [2, 3, 6, 8], expected dimension 2 to be 7, the key's rows"),
            std::string::npos);
  EXPECT_NE(refused({1, 3, 7, 8}, {2, 3, 7, 8}, 1).find("key is [1, 3, 7, 8], expected dimension 0 to be 2, the query's"),
            std::string::npos);
  EXPECT_NE(refused({3, 7, 8}, {2, 3, 7, 8}, 1).find("key is [3, 7, 8], expected four dimensions"), std::string::npos);
  EXPECT_NE(refused({2, 3, 7, 8}, {2, 3, 7, 8}, 3).find("heads_axis is 3, expected 1 or 2"), std::string::npos);
}

}  // namespace
}  // namespace heddle::cuda

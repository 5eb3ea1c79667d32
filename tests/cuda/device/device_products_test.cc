// MatMul and Gemm on the CUDA device, by the stand-in's cuBLASLt: the host's results, and the number of calls.
#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>

#include "conformance/judge.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;

// Multiples of 1/4: products and sums of some hundred of them are exact in f32.
std::shared_ptr<const Blob> quarters(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 dice(seed);
  conformance::Numbers numbers = conformance::zeros(dtype, shape);
  for (conformance::Number& number : numbers.values) number = (static_cast<int>(dice() % 25) - 12) / 4.0L;
  return conformance::blob_of(numbers);
}

using Build = std::function<void(NetBuilder& b)>;

class CudaProducts : public StandinTest {
 protected:
  struct Result {
    std::vector<conformance::Numbers> host;
    std::vector<std::shared_ptr<const Blob>> device;
    std::vector<std::string> calls;  // of one run on the device
    int64_t host_steps = 0;          // computing steps on the host in the device's plan
  };

  static std::vector<std::shared_ptr<const Blob>> outputs(const Prepared& prepared) {
    std::vector<std::shared_ptr<const Blob>> all;
    for (size_t i = 0; i < prepared.context.output_count(); ++i) {
      const TensorView y = prepared.context.output(i);
      all.push_back(Blob::copy_of(y.dtype, y.shape, y.data));
    }
    return all;
  }

  Result compare(const Build& build, double ulps = 8) {
    const Runtime runtime = cuda_runtime();
    Result result;
    std::optional<Prepared> host, device;
    const auto run_on = [&](const SessionOptions& options, std::optional<Prepared>* prepared) {
      NetBuilder b("products");
      build(b);
      auto made = testing_standin::prepare(runtime, b.finish(), options);
      ASSERT_TRUE(made.ok()) << made.status().text();
      prepared->emplace(std::move(*made));
      Prepared& p = **prepared;
      p.inputs.clear();
      for (const PortInfo& port : p.session.inputs()) p.inputs.push_back(quarters(port.dtype, port.shape, p.inputs.size() + 1));
      for (size_t i = 0; i < p.inputs.size(); ++i) ASSERT_TRUE(p.context.bind_input(i, p.inputs[i]->data).ok());
      const Status status = p.context.run();
      ASSERT_TRUE(status.ok()) << status.text();
    };
    run_on({}, &host);
    run_on(on_cuda(), &device);
    if (!host || !device) return result;
    for (const auto& blob : outputs(*host)) result.host.push_back(conformance::numbers_of(*blob));
    cuda.log(1);
    EXPECT_TRUE(device->context.run().ok());
    std::istringstream in(cuda.logged());
    cuda.log(0);
    for (std::string call; std::getline(in, call, ',');) result.calls.push_back(call);
    result.device = outputs(*device);
    for (const PlanStep& step : device->plan().steps) result.host_steps += !step.on_device && step.type != "Fence";
    EXPECT_EQ(conformance::difference(result.device, result.host, {ulps, false}), "");
    EXPECT_EQ(broken(), "");
    return result;
  }
  static int64_t count(const Result& result, const std::string& call) { return std::count(result.calls.begin(), result.calls.end(), call); }
};

constexpr DType floats[] = {DType::f32, DType::f16, DType::bf16, DType::f64};

TEST_F(CudaProducts, MatMulOfAllShapesAndDtypes) {
  const std::pair<Shape, Shape> shapes[] = {
      {{3, 5}, {5, 7}},
      {{1, 1}, {1, 1}},
      {{5}, {5}},
      {{5}, {5, 4}},
      {{3, 5}, {5}},
      {{2, 3, 5}, {5, 7}},
      {{2, 3, 5}, {2, 5, 7}},
      {{1, 3, 5}, {4, 5, 7}},
      {{2, 1, 3, 5}, {4, 5, 2}},
      {{2, 4, 3, 5}, {2, 1, 5, 6}},
      {{0, 5}, {5, 3}},
      {{3, 0}, {0, 4}},
      {{2, 1, 3, 70}, {1, 3, 70, 9}},
      {{17, 130}, {130, 33}},
  };
  for (const DType dtype : floats)
    for (const auto& [a, b] : shapes) {
      SCOPED_TRACE(std::string(to_string(dtype)) + a.text() + " " + b.text());
      const Result result = compare([&, a = a, b = b](NetBuilder& net) {
        net.output(net.add1("MatMul", "y", {net.input("a", dtype, a), net.input("b", dtype, b)}));
      });
      EXPECT_EQ(result.host_steps, 0);
    }
}

// More calls than allowed, one for each matrix that is repeated: copies in scratch leave one call. For both operands, and for one.
TEST_F(CudaProducts, ManyMatricesWithoutACommonStepAreOneCall) {
  const std::pair<Shape, Shape> shapes[] = {
      {{9, 1, 9, 1, 9, 1, 2}, {1, 8, 1, 8, 1, 2, 1}},
      {{9, 8, 9, 8, 9, 1, 3}, {1, 8, 1, 8, 1, 3, 2}},
  };
  for (const DType dtype : floats)
    for (const auto& [a, b] : shapes) {
      SCOPED_TRACE(std::string(to_string(dtype)) + a.text() + " " + b.text());
      const bool both = a[1] == 1;
      const Result result = compare([&, a = a, b = b](NetBuilder& net) {
        net.output(net.add1("MatMul", "y", {net.input("a", dtype, a), net.input("b", dtype, b)}));
      });
      EXPECT_EQ(result.host_steps, 0);
      EXPECT_EQ(count(result, "cublasLtMatmul"), 1);
      EXPECT_EQ(count(result, "cudaLaunchKernelExC"), both ? 2 : 1);
    }
}

TEST_F(CudaProducts, WhereThereIsNoRoomForTheirCopiesItIsSaid) {
  NetBuilder net("products");
  net.output(net.add1("MatMul", "y",
                      {net.input("a", DType::f32, Shape{9, 1, 9, 1, 9, 1, 2}), net.input("b", DType::f32, Shape{1, 8, 1, 8, 1, 2, 1})}));
  SessionOptions options = on_cuda();
  options.memory_limit = 400'000;  // a copy takes 373248 bytes, the output half of that
  const Status status = testing_standin::prepare(cuda_runtime(), net.finish(), options).status();
  EXPECT_NE(status.text().find("a product of 46656 matrices with no common step between them, for which copies of 8 bytes each"),
            std::string::npos)
      << status.text();
}

TEST_F(CudaProducts, SumsOfProducts) {
  const std::pair<const char*, std::vector<Shape>> equations[] = {
      {"ij,jk->ik", {Shape{3, 5}, Shape{5, 7}}},
      {"...ij,...kj->...ki", {Shape{2, 1, 3, 5}, Shape{4, 7, 5}}},
      {"ii->i", {Shape{5, 5}}},
      {"i,i->", {Shape{300}, Shape{300}}},
      {"a,b,a->ab", {Shape{2}, Shape{3}, Shape{2}}},
      {"ij->ji", {Shape{3, 5}}},
      {"ij,jk->ik", {Shape{3, 0}, Shape{0, 7}}},
      {"ij,jk->ik", {Shape{0, 5}, Shape{5, 7}}},
  };
  for (const DType dtype : floats)
    for (const auto& [equation, shapes] : equations) {
      SCOPED_TRACE(std::string(to_string(dtype)) + equation);
      const Result result = compare([&, equation = equation, shapes = shapes](NetBuilder& net) {
        std::vector<ValueId> inputs;
        for (const Shape& shape : shapes) inputs.push_back(net.input("x" + std::to_string(inputs.size()), dtype, shape));
        net.output(net.add1("Einsum", "y", inputs, {{"equation", std::string(equation)}}));
      });
      EXPECT_EQ(result.host_steps, 0);
    }
}

// Which sums are products of matrices, in how many calls.
TEST_F(CudaProducts, SumsThatAreMatrixProducts) {
  struct Case {
    const char* equation;
    Shape a, b;
    int64_t products;  // 0: it is left to a kernel of this plugin
  };
  constexpr int64_t of_sums = -1;  // one, over labels of one operand alone; not for 16 bits, where sums would be rounded in between
  const Case cases[] = {
      {"ij,jk->ik", {17, 33}, {33, 9}, 1},
      {"ji,jk->ik", {33, 17}, {33, 9}, 1},
      {"ij,kj->ik", {17, 33}, {9, 33}, 1},
      {"ij,jk->ki", {17, 33}, {33, 9}, 1},
      {"ji,kj->ki", {33, 17}, {9, 33}, 1},
      {"bhqd,bhkd->bhqk", {2, 3, 5, 8}, {2, 3, 7, 8}, 1},
      {"bqhd,bkhd->bhqk", {2, 5, 3, 8}, {2, 7, 3, 8}, 2},  // heads within rows
      {"bhqk,bkhd->bqhd", {2, 3, 5, 7}, {2, 7, 3, 8}, 2},
      {"bhc,kh->bkc", {5, 8, 16}, {64, 8}, 1},   // one matrix times several
      {"abc,cbd->ad", {4, 3, 5}, {5, 3, 6}, 1},  // summed labels in another order: one operand is permuted before
      {"abc,bcd->ad", {4, 3, 5}, {3, 5, 6}, 1},  // summed labels in the same order
      {"ab,ab->ab", {4, 3}, {4, 3}, 0},
      {"ij,jk->ijk", {4, 3}, {3, 5}, 0},
      {"iij,jk->ik", {4, 4, 3}, {3, 5}, 1},  // a diagonal has a step
      {"ij,kj->i", {4, 3}, {5, 3}, of_sums},
      {"ij,j->i", {4, 3}, {3}, 1},
  };
  for (const DType dtype : floats)
    for (const Case& one : cases) {
      SCOPED_TRACE(std::string(to_string(dtype)) + one.equation);
      const Result result = compare([&](NetBuilder& net) {
        net.output(net.add1("Einsum", "y", {net.input("a", dtype, one.a), net.input("b", dtype, one.b)},
                            {{"equation", std::string(one.equation)}}));
      });
      EXPECT_EQ(result.host_steps, 0);
      const bool is_narrow = dtype == DType::f16 || dtype == DType::bf16;
      EXPECT_EQ(count(result, "cublasLtMatmul"), one.products != of_sums ? one.products : is_narrow ? 0 : 1);
    }
}

TEST_F(CudaProducts, GemmWithEveryC) {
  for (const DType dtype : floats)
    for (const Shape& c : {Shape{3, 7}, Shape{7}, Shape{1, 7}, Shape{3, 1}, Shape{1}, Shape{}})
      for (const double beta : {1.0, 0.5, 0.0})
        for (const int flags : {0, 1, 2, 3}) {
          SCOPED_TRACE(std::string(to_string(dtype)) + c.text() + " " + std::to_string(beta) + " " + std::to_string(flags));
          compare([&](NetBuilder& net) {
            const ValueId x = net.input("a", dtype, flags & 1 ? Shape{5, 3} : Shape{3, 5});
            const ValueId y = net.input("b", dtype, flags & 2 ? Shape{7, 5} : Shape{5, 7});
            net.output(net.add1("Gemm", "y", {x, y, net.input("c", dtype, c)},
                                {{"alpha", 0.5}, {"beta", beta}, {"transA", int64_t{flags & 1}}, {"transB", int64_t{flags >> 1}}}));
          });
        }
}

TEST_F(CudaProducts, GemmOfNoDepthIsC) {
  compare([](NetBuilder& net) {
    const ValueId a = net.input("a", DType::f32, Shape{3, 0}), b = net.input("b", DType::f32, Shape{0, 4});
    net.output(net.add1("Gemm", "y", {a, b, net.input("c", DType::f32, Shape{3, 4})}, {{"beta", 2.0}}));
  });
}

// Epilogues that cuBLASLt applies to the product take no launch of their own, and a constant bias no call.
TEST_F(CudaProducts, BiasResidualAndActivationGoWithTheProduct) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const char* activation : {"", "Relu", "Gelu"}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + activation);
      const Result result = compare(
          [&](NetBuilder& net) {
            ValueId v =
                net.add1("MatMul", "product", {net.input("x", dtype, Shape{2, 6, 8}), net.constant("w", quarters(dtype, Shape{8, 10}, 5))});
            v = net.add1("Add", "biased", {v, net.constant("bias", quarters(dtype, Shape{10}, 6))});
            v = net.add1("Add", "residual", {v, net.input("r", dtype, Shape{2, 6, 10})});
            if (activation == std::string("Relu")) v = net.add1("Relu", "y", {v});
            if (activation == std::string("Gelu")) v = net.add1("Gelu", "y", {v}, {{"approximate", std::string("tanh")}});
            net.output(v);
          },
          64);
      EXPECT_EQ(count(result, "cublasLtMatmul"), 1);
      EXPECT_EQ(count(result, "cublasLtMatmulDescSetAttribute"), 0);
      EXPECT_EQ(count(result, "cudaLaunchKernelExC"), 0) << ::testing::PrintToString(result.calls);
    }
}

TEST_F(CudaProducts, ABiasOfEachRunIsToldInEachRun) {
  const Result result = compare([](NetBuilder& net) {
    const ValueId bias = net.input("bias", DType::f32, Shape{20});
    const ValueId v = net.add1("MatMul", "product", {net.input("x", DType::f32, Shape{6, 8}), net.input("w", DType::f32, Shape{8, 20})});
    net.output(net.add1("Add", "biased", {v, bias}));
  });
  EXPECT_EQ(count(result, "cublasLtMatmul"), 1);
  EXPECT_EQ(count(result, "cudaLaunchKernelExC"), 0);
  EXPECT_EQ(count(result, "cublasLtMatmulDescInit_internal"), 1);
}

TEST_F(CudaProducts, WhatCublasHasNotIsOneLaunchBehindIt) {
  for (const DType dtype : floats) {
    SCOPED_TRACE(to_string(dtype));
    const Result result = compare(
        [&](NetBuilder& net) {
          ValueId v = net.add1("MatMul", "product", {net.input("x", dtype, Shape{6, 8}), net.input("w", dtype, Shape{8, 10})});
          v = net.add1("Add", "biased", {v, net.constant("bias", quarters(dtype, Shape{10}, 6))});
          v = net.add1("Tanh", "tanh", {v});
          v = net.add1("Mul", "scaled", {v, net.constant("half", quarters(dtype, Shape{}, 8))});
          net.output(net.add1("Mul", "gated", {v, net.input("r", dtype, Shape{6, 10})}));
        },
        64);
    EXPECT_EQ(count(result, "cublasLtMatmul"), 1);
    if (dtype != DType::f64) {  // the host fuses no others
      EXPECT_EQ(count(result, "cudaLaunchKernelExC"), 1) << ::testing::PrintToString(result.calls);
    }
  }
}

TEST_F(CudaProducts, NothingIsLeftBehind) {
  compare([](NetBuilder& net) {
    net.output(net.add1("MatMul", "y", {net.input("a", DType::f32, Shape{3, 5}), net.input("b", DType::f32, Shape{5, 7})}));
  });
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda

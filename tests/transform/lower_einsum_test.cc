// lower_einsum: the operators that equations become, the equations that stay, and results equal to those of the general loops.
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/random.h"
#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// An Einsum of inputs x0, x1, ...
Net einsum(const std::string& equation, const std::vector<Shape>& shapes, DType dtype = DType::f32) {
  NetBuilder b("e");
  std::vector<ValueId> inputs;
  for (const Shape& shape : shapes) inputs.push_back(b.input("x" + std::to_string(inputs.size()), dtype, shape));
  b.output(b.add1("Einsum", "y", inputs, {{"equation", equation}}));
  return b.finish();
}

// Returns the lines of the operators that it becomes, without constants.
std::string lowered(const Net& net, const Stages& stages = {}) {
  const std::string text = transformed(net, {"lower_einsum"}, stages);
  std::string lines;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.find('(') != std::string::npos && line.find(" = ") != std::string::npos) lines += line + "\n";
  }
  return lines;
}

// Returns the types of the operators, in order.
std::string operators_of(const Net& net, const Stages& stages = {}) {
  const std::string lines = lowered(net, stages);
  std::string types;
  for (size_t at = lines.find(" = "); at != std::string::npos; at = lines.find(" = ", at + 1))
    types += (types.empty() ? "" : " ") + lines.substr(at + 3, lines.find_first_of("(/", at + 3) - at - 3);
  return types;
}

TEST(LowerEinsum, AMatrixProduct) {
  EXPECT_EQ(transformed(einsum("ij,jk->ik", {Shape{2, 3}, Shape{3, 4}}), {"lower_einsum"}), R"net(e(x0: f32[2, 3], x1: f32[3, 4]) -> (y)
y: f32[2, 4] = MatMul/13(x0, x1) # y/MatMul0
)net");
}

TEST(LowerEinsum, ABatchThatIsReadTurned) {
  EXPECT_EQ(transformed(einsum("bhqd,bhkd->bhqk", {Shape{2, 5, 3, 4}, Shape{2, 5, 6, 4}}), {"lower_einsum"}),
            R"net(e(x0: f32[2, 5, 3, 4], x1: f32[2, 5, 6, 4]) -> (y)
y/Transpose0: f32[2, 5, 4, 6] = Transpose/13(x1) perm=[0, 1, 3, 2]
y: f32[2, 5, 3, 6] = MatMul/13(x0, y/Transpose0) # y/MatMul1
)net");
}

TEST(LowerEinsum, WhatEquationsBecome) {
  const struct {
    const char* equation;
    std::vector<Shape> shapes;
    const char* operators;
  } cases[] = {
      {"ij->ji", {Shape{2, 3}}, "Transpose"},
      {"ij->ij", {Shape{2, 3}}, "Identity"},
      {"ij->", {Shape{2, 3}}, "ReduceSum"},
      {"abc->ca", {Shape{2, 3, 4}}, "ReduceSum Transpose"},
      {"...ij->...ji", {Shape{5, 2, 3}}, "Transpose"},
      {"ij,kj->ik", {Shape{2, 3}, Shape{4, 3}}, "Gemm"},
      {"ji,jk", {Shape{3, 2}, Shape{3, 4}}, "Gemm"},
      {"ij,jk->ki", {Shape{2, 3}, Shape{3, 4}}, "Gemm"},
      {"ij,ij->ij", {Shape{2, 3}, Shape{2, 3}}, "Mul"},
      {"i,j->ij", {Shape{2}, Shape{3}}, "Reshape Reshape MatMul"},
      {"bi,bj->bij", {Shape{4, 2}, Shape{4, 3}}, "Reshape Reshape Mul"},
      {"i,i->", {Shape{4}, Shape{4}}, "Mul ReduceSum"},
      {"bi,ib->b", {Shape{3, 4}, Shape{4, 3}}, "Transpose Mul ReduceSum"},
      {"ij,jk->jk", {Shape{2, 3}, Shape{3, 4}}, "ReduceSum Reshape Mul"},
      {"...ij,...jk->...ik", {Shape{5, 2, 3}, Shape{3, 4}}, "MatMul"},
      {"ij,jk->ik", {Shape{2, 1}, Shape{3, 4}}, "ReduceSum Reshape MatMul"},
      {"ac,bd->abcd", {Shape{2, 3}, Shape{4, 5}}, "Reshape Reshape Mul"},
      {"ij,jk,kl->il", {Shape{2, 3}, Shape{3, 4}, Shape{4, 5}}, "MatMul MatMul"},
      {"bij,bjk->bik", {Shape{6, 2, 3}, Shape{6, 3, 4}}, "MatMul"},
      // Diagonals are left to the general loops.
      {"ii->i", {Shape{3, 3}}, "Einsum"},
      {"iij,jk->ik", {Shape{2, 2, 3}, Shape{3, 4}}, "Einsum MatMul"},
  };
  for (const auto& c : cases) EXPECT_EQ(operators_of(einsum(c.equation, c.shapes)), c.operators) << c.equation;
  EXPECT_EQ(operators_of(einsum("ij,jk->ik", {Shape{2, 3}, Shape{3, 4}}, DType::i8)), "Einsum");
  EXPECT_EQ(operators_of(einsum("ij,jk->ik", {Shape{2, 0}, Shape{0, 4}})), "Einsum");
  // Rounded before the product, the sum of one operand alone would lose bits.
  EXPECT_EQ(operators_of(einsum("ij,jk->jk", {Shape{2, 3}, Shape{3, 4}}, DType::f16)), "Einsum");
  EXPECT_EQ(operators_of(einsum("ij,jk->ik", {Shape{2, 3}, Shape{3, 4}}, DType::f16)), "MatMul");
  EXPECT_EQ(operators_of(einsum("i,i->", {Shape{4}, Shape{4}}, DType::f16)), "Reshape Reshape MatMul Reshape");
  // A product of two operands would be a thousand times as large as the operands and the result.
  EXPECT_EQ(operators_of(einsum("ai,bi,ci,di->i", {Shape{32, 9}, Shape{32, 9}, Shape{32, 9}, Shape{32, 9}})),
            "ReduceSum ReduceSum Mul ReduceSum Mul ReduceSum Mul");
  EXPECT_EQ(operators_of(einsum("ai,aj,ak->ijk", {Shape{300, 9}, Shape{300, 9}, Shape{300, 9}})), "Einsum");
}

TEST(LowerEinsum, ExtentsThatOnlyTheRunKnowsStay) {
  NetBuilder b("late");
  const ValueId x = b.input("x", DType::f32, Shape{4, 2});
  const ValueId found = b.add1("Unique", "found", {x});
  b.output(b.add1("Einsum", "y", {found, x}, {{"equation", std::string("i,jk->jk")}}));
  const std::string text = transformed(b.finish(), {"lower_einsum"});
  EXPECT_NE(text.find("= Einsum(found, x)"), std::string::npos) << text;
}

// A weight is transposed once, before anything runs, and the bias is added by the product.
TEST(LowerEinsum, AConstantIsTurnedAheadAndABiasIsFused) {
  NetBuilder b("projection");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3, 2}), w = b.constant("w", blob(Shape{2, 2}, 1, 1));
  const ValueId projected = b.add1("Einsum", "projected", {x, w}, {{"equation", std::string("bti,oi->bto")}});
  b.output(b.add1("Add", "y", {projected, b.input("bias", DType::f32, Shape{2})}));
  EXPECT_EQ(transformed(b.finish(), {"optimize"}), R"net(projection(x: f32[2, 3, 2], bias: f32[2]) -> (y)
projected/Transpose0: f32[2, 2] = [1, 3, 2, 4]
y: f32[2, 3, 2] = MatMul/13(x, projected/Transpose0, bias) then Add(add(acc, operand)) operand=bias last dimension # projected/MatMul1
)net");
}

// ---------------------------------------------------------------- results

std::string letters(uint64_t& state, size_t count, size_t of) {
  std::string labels;
  while (labels.size() < count) {
    const char c = static_cast<char>('a' + next_random(state) % of);
    if (labels.find(c) == std::string::npos) labels += c;
  }
  return labels;
}

// An equation of random operands; some axes of an operand have one element where others have several.
struct RandomEinsum {
  std::string equation;
  std::vector<Shape> shapes;

  explicit RandomEinsum(uint64_t& state) {
    constexpr int64_t extents[] = {2, 3, 4, 1, 5, 2};
    const bool dots = next_random(state) % 4 == 0;
    const size_t operands = 1 + next_random(state) % 5 % 3;
    std::string all;
    for (size_t k = 0; k < operands; ++k) {
      std::string labels = letters(state, 1 + next_random(state) % 4, 6);
      if (next_random(state) % 8 == 0) labels += labels[0];  // a diagonal
      Shape shape;
      if (dots) shape.push_back(next_random(state) % 3 == 0 ? 1 : 3);
      for (const char c : labels) {
        shape.push_back(next_random(state) % 6 == 0 ? 1 : extents[c - 'a']);
        if (all.find(c) == std::string::npos) all += c;
      }
      equation += std::string(k > 0 ? "," : "") + (dots ? "..." : "") + labels;
      shapes.push_back(shape);
    }
    if (next_random(state) % 5 == 0) return;  // without an arrow
    std::string output;
    for (const char c : letters(state, 6, 6))
      if (all.find(c) != std::string::npos && next_random(state) % 3 != 0) output += c;
    if (output.size() > 6) output.resize(6);
    equation += "->" + std::string(dots && next_random(state) % 4 != 0 ? "..." : "") + output;
  }
};

std::shared_ptr<const Blob> whole_numbers(DType dtype, const Shape& shape, uint64_t& state) {
  std::byte* data = nullptr;
  const auto made = Blob::allocate(dtype, shape, &data);
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    const auto number = static_cast<int64_t>(next_random(state) % 7) - 3;
    if (dtype == DType::f32) reinterpret_cast<float*>(data)[i] = static_cast<float>(number);
    if (dtype == DType::f64) reinterpret_cast<double*>(data)[i] = static_cast<double>(number);
    if (dtype == DType::f16) reinterpret_cast<uint16_t*>(data)[i] = f16_of_float(static_cast<float>(number));
    if (dtype == DType::bf16) reinterpret_cast<uint16_t*>(data)[i] = bf16_of_float(static_cast<float>(number));
    if (dtype == DType::i32) reinterpret_cast<int32_t*>(data)[i] = static_cast<int32_t>(number * 300000007);
    if (dtype == DType::i64) reinterpret_cast<int64_t*>(data)[i] = number * 1300000000000000007;
  }
  return made;
}

Result<Tensor> result_of(const Runtime& runtime, const Net& net, const std::vector<std::shared_ptr<const Blob>>& inputs, bool lowers,
                         const std::string& device) {
  SessionOptions options;
  options.device = device;
  options.copies = Copies::automatic;
  HEDDLE_TRY(Session session, runtime.open(Net(net), options));
  Internals::of(session).pipeline.transform.lower_einsum = lowers;
  std::vector<TensorView> views;
  for (const auto& input : inputs) views.push_back(view(input->data, input->dtype, input->shape));
  HEDDLE_TRY(std::vector<Tensor> results, session.run(views));
  return std::move(results[0]);
}

// Whole numbers are exact in floats, those of 16 bits are rounded once, and integers wrap either way: all results are equal.
TEST(LowerEinsum, RandomEquationsGiveWhatTheGeneralLoopsGive) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  options.default_plugins = false;
  options.threads = 1;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  constexpr DType dtypes[] = {DType::f32, DType::i32, DType::f64, DType::i64, DType::f16, DType::bf16};
  uint64_t state = 41;
  int refused = 0, stayed = 0;
  for (int k = 0; k < 600; ++k) {
    const RandomEinsum random(state);
    const DType dtype = dtypes[k % 6];
    const Net net = einsum(random.equation, random.shapes, dtype);
    std::vector<std::shared_ptr<const Blob>> inputs;
    for (const Shape& shape : random.shapes) inputs.push_back(whole_numbers(dtype, shape, state));
    std::string where = random.equation + " " + std::string(to_string(dtype));
    for (const Shape& shape : random.shapes) where += shape.text();
    const std::string device = k % 5 == 0 ? "sim:0" : "cpu:0";
    const auto loops = result_of(*runtime, net, inputs, false, device);
    refused += !loops.ok();
    if (!loops.ok()) continue;
    const auto lower = result_of(*runtime, net, inputs, true, device);
    ASSERT_TRUE(lower.ok()) << where << ": " << lower.status().text();
    ASSERT_EQ(lower->shape(), loops->shape()) << where;
    stayed += operators_of(net) == "Einsum" && dtype != DType::f16 && dtype != DType::bf16;  // one operand's diagonal
    for (int64_t i = 0; i < loops->shape().element_count(); ++i) {
      const auto number = [&](const Tensor& t) {
        if (dtype == DType::f32) return static_cast<double>(static_cast<const float*>(t.data())[i]);
        if (dtype == DType::f64) return static_cast<const double*>(t.data())[i];
        if (dtype == DType::f16) return static_cast<double>(float_of_f16(static_cast<const uint16_t*>(t.data())[i]));
        if (dtype == DType::bf16) return static_cast<double>(float_of_bf16(static_cast<const uint16_t*>(t.data())[i]));
        if (dtype == DType::i32) return static_cast<double>(static_cast<const int32_t*>(t.data())[i]);
        return static_cast<double>(static_cast<const int64_t*>(t.data())[i]);
      };
      ASSERT_EQ(number(*lower), number(*loops)) << where << " element " << i;
    }
  }
  EXPECT_LT(refused, 50) << "equations that fit their operands are few";
  EXPECT_LT(stayed, 50);
}

// Gradients are Einsums, which are lowered like others.
TEST(LowerEinsum, GradientsBecomeProductsToo) {
  NetBuilder b("gradient");
  const ValueId x = b.input("x", DType::f32, Shape{6, 2, 3}), w = b.variable("w", blob(Shape{4, 3}, 1, 1), true);
  const ValueId y = b.add1("Einsum", "y", {x, w}, {{"equation", std::string("bti,oi->bto")}});
  b.output(b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {y, y})}, {{"keepdims", int64_t{0}}}));
  TrainingOptions options;
  options.losses = {"loss"};
  const auto net = testing_derive::trained(b.finish(), options);
  ASSERT_TRUE(net.ok()) << net.status().text();
  const std::string text = transformed(*net, {"optimize"});
  EXPECT_EQ(text.find("Einsum("), std::string::npos) << text;
  EXPECT_NE(text.find("Gemm/13("), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle

// Fused and unfused forms of every epilogue agree on NaN, zeros of both signs, infinities and denormals. CTest runs this file once per
// instruction set (CMakeLists.txt beside it).
#include <algorithm>
#include <cmath>
#include <functional>

#include "onednn/onednn_patterns.h"
#include "operators/fusion/fusion_support.h"

namespace heddle::testing {
namespace {

// A compute operator whose accumulators are the special values, as far as its shape allows one to each output row (or pixel).
struct Compute {
  std::string name;
  OperatorCall call;
  Shape output;
  int channel_axis;  // of the output
  // The largest number of products of small integers in an output. The order in which the kernel adds a bias is not specified: on some
  // processors before the products. 0: after them.
  int64_t bias_products = 0;
};

float special(size_t i) {
  return special_values()[i % special_values().size()];
}

Tensor filled(const Shape& shape, const std::function<float(int64_t)>& value) {
  std::vector<float> v(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = value(static_cast<int64_t>(i));
  return tensor<float>(shape, v);
}

// Row r of a holds one special value among zeros, and b is ones, so that every column of row r of y sums up to it.
Compute matmul(const std::string& name, int64_t batch, int64_t rows, int64_t depth, int64_t columns, bool constant) {
  const auto value = [depth](int64_t i) {
    const int64_t row = i / depth;
    return i % depth == (row * 7 + depth - 1) % depth ? special(static_cast<size_t>(row)) : 0.0f;
  };
  const Shape a = batch ? Shape{batch, rows, depth} : Shape{rows, depth};
  Compute c = {name,
               call_of("MatMul", {filled(a, value),
                                  filled(batch ? Shape{batch, depth, columns} : Shape{depth, columns}, [](int64_t) { return 1.0f; })}),
               batch ? Shape{batch, rows, columns} : Shape{rows, columns}, batch ? 2 : 1};
  c.call.constant_inputs = constant;
  return c;
}

// Kernels of extents 1 and 3; pixels lie so far apart that no window contains two special values.
Compute convolution(const std::string& name, int64_t channels, int64_t outputs, int64_t groups, int64_t size, int64_t kernel,
                    int64_t stride, const std::string& type = "Conv") {
  const int64_t inner = type == "Conv" ? channels / groups : outputs;
  const auto value = [=](int64_t i) {
    const int64_t x = i % size, y = i / size % size, c = i / size / size % channels;
    return c % inner == 0 && x % stride == 0 && y % stride == 0 ? special(static_cast<size_t>(y / stride * 5 + x / stride)) : 0.0f;
  };
  const Shape weights = type == "Conv" ? Shape{outputs, channels / groups, kernel, kernel} : Shape{channels, outputs, kernel, kernel};
  const int64_t middle = kernel / 2;
  const auto weight = [=](int64_t i) {
    const bool centre = i % kernel == middle && i / kernel % kernel == middle;
    return centre ? 1.0f : 0.0f;
  };
  Compute c = {name, call_of(type, {filled(Shape{1, channels, size, size}, value), filled(weights, weight)}), {}, 1};
  const std::vector<int64_t> pads(4, middle);
  c.call.attributes = {{"pads", pads}, {"strides", std::vector<int64_t>{stride, stride}}, {"group", groups}};
  const int64_t out = type == "Conv" ? (size + 2 * middle - kernel) / stride + 1 : (size - 1) * stride + kernel - 2 * middle;
  c.output = Shape{1, outputs, out, out};
  c.call.constant_inputs = true;
  return c;
}

std::vector<Compute> computes() {
  std::vector<Compute> all;
  all.push_back(matmul("MatMul", 0, 61, 16, 70, true));
  all.push_back(matmul("MatMul of two tiles", 0, 224, 128, 256, true));
  all.push_back(matmul("MatMul of values", 0, 61, 16, 70, false));
  all.push_back(matmul("MatMul of one product", 0, 61, 1, 70, false));
  all.push_back(matmul("MatMul, plain loops", 0, 61, 2, 16, true));
  all.push_back(matmul("MatMul of images", 2, 61, 16, 70, false));
  Compute gemm = matmul("Gemm", 0, 61, 16, 70, true);
  gemm.call.type = "Gemm";
  all.push_back(gemm);
  all.push_back(convolution("Conv 1x1", 16, 64, 1, 14, 1, 1));
  all.push_back(convolution("Conv 1x1 of two tiles", 64, 256, 1, 14, 1, 1));
  all.push_back(convolution("Conv 3x3", 16, 32, 1, 40, 3, 3));
  all.push_back(convolution("Conv 3x3 of three channels", 3, 32, 1, 40, 3, 3));
  all.push_back(convolution("Conv of groups", 16, 32, 4, 40, 3, 3));
  all.push_back(convolution("Conv depthwise", 24, 24, 24, 28, 3, 2));
  all.push_back(convolution("Conv depthwise of odd channels", 5, 5, 5, 28, 3, 2));
  all.push_back(convolution("ConvTranspose", 8, 16, 1, 14, 3, 3, "ConvTranspose"));
  return all;
}

struct EpilogueOp {
  std::string text;  // of acc and operand
  int32_t kind = HEDDLE_OPERAND_NONE;
};
using EpilogueOps = std::vector<EpilogueOp>;

Shape operand_shape(const Compute& compute, int32_t kind) {
  if (kind == HEDDLE_OPERAND_SAME_SHAPE) return compute.output;
  if (kind == HEDDLE_OPERAND_SCALAR) return Shape{1};
  Shape shape;
  for (int i = 0; i < compute.output.rank(); ++i) shape.push_back(i == compute.channel_axis ? compute.output[i] : 1);
  return shape;
}

std::string renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

std::vector<float> epilogue_ops_apart(const Compute& compute, const Tensor& accumulators, const EpilogueOps& epilogue_ops,
                                      const std::vector<Tensor>& operands) {
  Tensor value = accumulators;
  for (size_t i = 0; i < epilogue_ops.size(); ++i) {
    std::vector<Tensor> inputs = {value};
    if (operands[i]) inputs.push_back(operands[i]);
    value = evaluate(renamed(renamed(epilogue_ops[i].text, "acc", "x0"), "operand", "x1"), inputs);
  }
  EXPECT_EQ(value->shape, compute.output);
  return values<float>(*value);
}

// Returns true if a bias and a residual are both added. Kernels add them in an order of their own, which rounds differently: operands are
// then those whose sums are exact.
bool adds_twice(const EpilogueOps& epilogue_ops) {
  return std::count_if(epilogue_ops.begin(), epilogue_ops.end(), [](const EpilogueOp& s) { return s.text == "add(acc, operand)"; }) > 1;
}

// Replaces results that differ only by the order of adding a bias, by the expected ones: where its sum with integers is not exact,
// differences within the rounding of the additions are accepted.
void settle_order(const Compute& compute, const std::vector<float>& bias, const std::vector<float>& expected, std::vector<float>* got) {
  constexpr double largest_product = 4, half_an_ulp = 0x1p-24;
  const size_t inner = expected.size() / bias.size();  // of one batch, with the channels in front
  for (size_t i = 0; i < expected.size(); ++i) {
    const double b = bias[i / inner], products = static_cast<double>(compute.bias_products);
    const bool is_exact = !std::isfinite(b) || std::abs(b) > 1e30 || (std::abs(b) <= 100 && b * 2 == std::round(b * 2));
    const double bound = (products + 1) * half_an_ulp * (std::abs(b) + products * largest_product);
    if (!is_exact && std::abs(static_cast<double>((*got)[i]) - static_cast<double>(expected[i])) <= bound) (*got)[i] = expected[i];
  }
}

// `salt` rotates the order of the special values in the operands, so that each is combined with each.
bool same(const Compute& compute, const Tensor& accumulators, const EpilogueOps& epilogue_ops, size_t salt) {
  OperatorCall fused = compute.call;
  std::vector<Tensor> operands;
  std::string shown = compute.name;
  for (const EpilogueOp& epilogue_op : epilogue_ops) {
    shown += " | " + epilogue_op.text + " " + std::to_string(epilogue_op.kind);
    OperatorCall::EpilogueOp& s = fused.epilogue_ops.emplace_back();
    s.expression = epilogue_op.text;
    s.operand_kind = epilogue_op.kind;
    operands.push_back(nullptr);
    if (epilogue_op.kind == HEDDLE_OPERAND_NONE) continue;
    operands.back() = filled(operand_shape(compute, epilogue_op.kind), [&](int64_t i) {
      const size_t at = static_cast<size_t>(i) + salt;
      return special(adds_twice(epilogue_ops) ? at % 6 : at);
    });
    s.operand_input = static_cast<int32_t>(fused.inputs.size());
    fused.inputs.push_back(operands.back());
  }
  const auto outputs = run(fused);
  if (outputs.size() != 1) return false;
  std::vector<float> got = values<float>(*outputs[0]);
  const std::vector<float> expected = epilogue_ops_apart(compute, accumulators, epilogue_ops, operands);
  EXPECT_EQ(got.size(), expected.size()) << shown;
  if (got.size() != expected.size()) return false;
  if (compute.bias_products > 0 && epilogue_ops[0].text == "add(acc, operand)")
    settle_order(compute, values<float>(*operands[0]), expected, &got);
  const std::string difference = first_difference(got.data(), expected.data(), got.size(), Nans::any);
  EXPECT_TRUE(difference.empty()) << shown << ", fused and apart: " << difference;
  return difference.empty();
}

using Numbers = std::vector<std::pair<double, double>>;
const Numbers odd_numbers = {{0.25, 6}, {0, 6},        {-0.0, 0.0}, {0.0, 0.0}, {0.0, -0.0}, {-1, 0.0},  {-1, -0.0},
                             {-0.0, 1}, {-0.5, -0.25}, {3, -3},     {1, 1},     {-inf, inf}, {inf, inf}, {1e-40, 1e-38}};

// Returns the pattern with numbers for "a" and "b".
std::vector<std::string> with_numbers(const std::string& text, const Numbers& numbers = odd_numbers) {
  const auto names = [&](char name) {
    expression::Program program;
    std::string error;
    EXPECT_TRUE(expression::parse(text, {}, program, error)) << text << ": " << error;
    return std::find(program.inputs.begin(), program.inputs.end(), std::string(1, name)) != program.inputs.end();
  };
  const auto print = [&](double a, double b) {
    expression::Program program;
    std::string error;
    EXPECT_TRUE(expression::parse(text, {{"a", a}, {"b", b}}, program, error)) << error;
    return expression::print(program);
  };
  if (!names('a') && !names('b')) return {print(0, 0)};
  std::vector<std::string> texts;
  for (const auto& [a, b] : numbers) texts.push_back(print(a, b));
  return texts;
}

std::vector<EpilogueOps> epilogues() {
  const int32_t kinds[] = {HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR};
  std::vector<EpilogueOps> all;
  for (const std::string& pattern : cpu::onednn::post_op_texts())
    for (const std::string& text : with_numbers(pattern)) {
      if (text.find("operand") == std::string::npos) {
        all.push_back({{text}});
        continue;
      }
      for (const int32_t kind : kinds) {
        all.push_back({{text, kind}});
        all.push_back({{renamed(renamed(renamed(text, "acc", "other"), "operand", "acc"), "other", "operand"), kind}});
      }
    }
  for (const PointwiseOperator& op : pointwise_operators(*cpu_registry().snapshot(), DType::f32)) {
    if (op.inputs == 1) all.push_back({{renamed(op.program, "x0", "acc")}});
    if (op.inputs == 2)
      for (const int32_t kind : kinds) all.push_back({{renamed(renamed(op.program, "x0", "acc"), "x1", "operand"), kind}});
  }
  // Several epilogue ops: one that is not fused ends the fused part, and a NaN that reaches a later epilogue op is one for all.
  const EpilogueOp bias = {"add(acc, operand)", HEDDLE_OPERAND_LAST_DIMENSION}, residual = {"add(acc, operand)", HEDDLE_OPERAND_SAME_SHAPE};
  const EpilogueOp relu = {"max(acc, 0)"}, clip = {"min(max(acc, 0), 6)"}, twice = {"mul(acc, 2)"}, root = {"sqrt(acc)"};
  const EpilogueOp largest = {"max(acc, operand)", HEDDLE_OPERAND_LAST_DIMENSION};
  for (const EpilogueOps& epilogue_ops : std::vector<EpilogueOps>{{bias, relu},
                                                                  {bias, residual, relu},
                                                                  {residual, relu},
                                                                  {relu, residual},
                                                                  {bias, clip, twice},
                                                                  {twice, relu, twice, clip},
                                                                  {relu, root, clip},
                                                                  {root, relu},
                                                                  {bias, largest, relu},
                                                                  {relu, largest, residual, relu},
                                                                  {residual, residual},
                                                                  {clip, residual, clip}})
    all.push_back(epilogue_ops);
  // Each bound, factor or term followed by each other with other numbers.
  std::vector<std::string> firsts, seconds;
  for (const std::string& pattern : cpu::onednn::post_op_texts()) {
    if (pattern.find("operand") != std::string::npos) continue;
    firsts.push_back(with_numbers(pattern, {{0.25, 6}}).front());
    seconds.push_back(with_numbers(pattern, {{-0.5, -0.25}}).front());
  }
  for (const std::string& first : firsts)
    for (const std::string& second : seconds) all.push_back({{first}, {second}});
  return all;
}

void expect_all_same(size_t first, size_t count) {
  const std::vector<Compute> all = computes();
  const std::vector<EpilogueOps> epilogue_ops = epilogues();
  ASSERT_LE(first + count, all.size());
  for (size_t i = first; i < first + count; ++i) {
    const auto accumulators = run(all[i].call);
    ASSERT_EQ(accumulators.size(), 1u) << all[i].name;
    ASSERT_EQ(accumulators[0]->shape, all[i].output) << all[i].name;
    size_t salt = 0, failures = 0;
    for (EpilogueOps one : epilogue_ops) {
      for (EpilogueOp& s : one)
        if (s.kind == HEDDLE_OPERAND_LAST_DIMENSION && all[i].channel_axis == 1 && all[i].output.rank() == 4)
          s.kind = HEDDLE_OPERAND_PER_CHANNEL;
      if (!same(all[i], accumulators[0], one, salt++) && ++failures == 10) return;  // one mistake shows in many of them
    }
  }
}

// The plugin leaves a text that it cannot parse out of its table.
TEST(FusedEpilogue, EachPatternIsRecognised) {
  for (const std::string& pattern : cpu::onednn::post_op_texts()) {
    expression::Program program;
    std::string error;
    ASSERT_TRUE(expression::parse(with_numbers(pattern, {{0.25, 6}}).front(), {}, program, error)) << pattern << ": " << error;
    EXPECT_NE(cpu::onednn::match_post_op(program).kind, cpu::onednn::MatchedPostOp::Kind::none) << pattern;
  }
}

TEST(FusedEpilogue, OfMatrixProductsChangesNoSpecialValue) {
  expect_all_same(0, 7);
}
TEST(FusedEpilogue, OfConvolutionsChangesNoSpecialValue) {
  expect_all_same(7, computes().size() - 7);
}

// One to three spatial dimensions, groups and padding: oneDNN takes another implementation for many of them.
TEST(FusedEpilogue, OfConvolutionsOfEveryRankTakesEachChannelsOperand) {
  size_t salt = 0;
  for (const std::string type : {"Conv", "ConvTranspose"})
    for (int rank = 1; rank <= 3; ++rank)
      for (const int64_t groups : {1, 2})
        for (const int64_t kernel : {1, 3})
          for (const int64_t pad : {0, 1}) {
            const int64_t channels = 4, size = 5;
            Shape x{1, channels}, w{channels, channels / groups};
            for (int i = 0; i < rank; ++i) x.push_back(size), w.push_back(kernel);
            // Small integers, so that every sum is exact, and a zero here and there.
            const auto value = [](int64_t i) { return static_cast<float>(i * 7 % 5 - 2); };
            const std::string name = type + " " + std::to_string(rank) + "-D, groups " + std::to_string(groups) + ", kernel " +
                                     std::to_string(kernel) + ", pads " + std::to_string(pad);
            Compute c = {name, call_of(type, {filled(x, value), filled(w, value)}), {}, 1};
            c.call.attributes = {{"pads", std::vector<int64_t>(2 * static_cast<size_t>(rank), pad)}, {"group", groups}};
            c.call.constant_inputs = true;
            c.bias_products = w.element_count() / channels;
            const auto accumulators = run(c.call);
            ASSERT_EQ(accumulators.size(), 1u) << name;
            c.output = accumulators[0]->shape;
            const int32_t kind = HEDDLE_OPERAND_PER_CHANNEL;
            for (const EpilogueOps& epilogue_ops :
                 std::vector<EpilogueOps>{{{"max(acc, 0)"}},
                                          {{"min(max(acc, 0), 6)"}},
                                          {{"mul(acc, operand)", kind}},
                                          {{"add(acc, operand)", kind}},
                                          {{"div(acc, operand)", kind}},
                                          {{"max(acc, 0)"}, {"sub(acc, operand)", kind}},
                                          {{"min(acc, operand)", kind}, {"add(acc, operand)", HEDDLE_OPERAND_SAME_SHAPE}}})
              same(c, accumulators[0], epilogue_ops, ++salt);
          }
}

// A tile with a NaN is computed again by another primitive: nothing else in it may change.
TEST(FusedEpilogue, ANanChangesNoOtherElement) {
  for (const int64_t depth : {16, 100, 700}) {
    const auto value = [](int64_t i) { return static_cast<float>(i * 7919 % 1000) / 499.0f - 1.0f; };
    const Tensor b = filled(Shape{depth, 96}, [&](int64_t i) { return value(i + 5); });
    std::vector<float> results[2];
    for (const bool nan : {false, true}) {
      OperatorCall call =
          call_of("MatMul", {filled(Shape{40, depth}, [&](int64_t i) { return nan && i == 0 ? std::nanf("") : value(i); }), b});
      call.constant_inputs = true;
      call.epilogue_ops = {{"max(acc, 0)", -1, HEDDLE_OPERAND_NONE}};
      const auto outputs = run(call);
      ASSERT_EQ(outputs.size(), 1u);
      results[nan] = values<float>(*outputs[0]);
    }
    for (size_t i = 0; i < 96; ++i) EXPECT_TRUE(std::isnan(results[1][i])) << i;
    EXPECT_EQ(first_difference(results[0].data() + 96, results[1].data() + 96, results[0].size() - 96, Nans::by_bits), "") << depth;
  }
}

}  // namespace
}  // namespace heddle::testing

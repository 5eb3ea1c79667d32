// Elementwise operators fused before and after operators, within the same kernels, on the emulated grid.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "cuda/nvrtc_check.h"
#include "generate/operators/channel_launches.h"
#include "generate/pointwise/epilogue_expression.h"
#include "generate/pointwise/fused_expression.h"
#include "generate/reduce/reduce_launches.h"
#include "generate/rows/row_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// Returns "abs(acc) * same - one", whose operands are the node's input `first` and the next one.
FusedExpression expression_of(const std::string& text, uint32_t first, DType dtype) {
  FusedExpression fused;
  fused.program.inputs = {"acc", "same", "one"};
  std::string error;
  EXPECT_TRUE(expression::parse(text, {}, fused.program, error)) << error;
  fused.operands = {{first, static_cast<heddle_dtype>(dtype), false}, {first + 1, static_cast<heddle_dtype>(dtype), true}};
  return fused;
}
const char* const in_front = "abs(acc) * same - one";
const char* const at_the_back = "max(acc, 0) * same + one";

// Returns small whole numbers, so that the prologue of an operator rounds nothing.
Tensor whole_numbers(DType dtype, const Shape& shape, uint64_t seed) {
  Numbers numbers = conformance::numbers_of(*random_tensor(dtype, shape, -4, 5, seed));
  for (Number& n : numbers.values) n = std::floor(n);
  return conformance::blob_of(numbers);
}

Numbers behind_of(Numbers y, const Tensor& same, const Tensor& one) {
  const Numbers factors = conformance::numbers_of(*same);
  const Number more = conformance::numbers_of(*one).values[0];
  if (y.scale.empty()) y.scale.assign(y.values.size(), 0);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const Number scale = std::max(y.scale[i], std::fabs(y.values[i]));
    y.values[i] = std::max<Number>(y.values[i], 0) * factors.values[i] + more;
    y.scale[i] = scale * std::fabs(factors.values[i]) + std::fabs(more);
  }
  return y;
}
Numbers in_front_of(const Tensor& x, const Tensor& same, const Tensor& one) {
  Numbers y = conformance::numbers_of(*x);
  const Numbers factors = conformance::numbers_of(*same);
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] = std::fabs(y.values[i]) * factors.values[i] - conformance::numbers_of(*one).values[0];
  return y;
}

GridCase sum_with_chains(DType dtype, const Shape& shape, uint32_t set) {
  const Shape to = reduced_shape(shape, set, true);
  const Tensor x = whole_numbers(dtype, shape, 1), beside = whole_numbers(dtype, shape, 2), before_one = whole_numbers(dtype, Shape{}, 3);
  const Tensor factor = whole_numbers(dtype, to, 4), one = whole_numbers(dtype, Shape{1}, 5);
  std::vector<int64_t> axes;
  for (int i = 0; i < shape.rank(); ++i)
    if ((set >> i & 1) != 0) axes.push_back(i);
  auto launches = std::make_unique<AxesReduction>();
  launches->passes.last.shape.prologue = expression_of(in_front, 2, dtype);
  launches->passes.last.shape.epilogue = expression_of(at_the_back, 4, dtype);
  GridCase sum;
  sum.name = "sum of " + std::string(to_string(dtype)) + shape.text() + " over " + std::to_string(set);
  sum.launches = std::move(launches);
  sum.inputs = {x, integers(axes), beside, before_one, factor, one};
  const Numbers y = reduced(in_front_of(x, beside, before_one), set, true, dtype, [](const Elements& line) {
    Scaled all;
    for (const Number n : line) all.value += n, all.scale += std::fabs(n);
    return all;
  });
  sum.expected = {behind_of(y, factor, one)};
  return sum;
}

std::vector<GridCase> reductions_between_chains() {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const auto& [shape, set] :
         {std::pair(Shape{5, 33}, 2u), {Shape{5, 64}, 2u}, {Shape{33, 8}, 1u}, {Shape{3, 4, 5, 6}, 5u}, {Shape{1, 20000}, 2u}})
      cases.push_back(sum_with_chains(dtype, shape, set));
  return cases;
}

// The mean of squares, whose terms and results are between fused expressions; rows that are held, strided, and too long.
std::vector<GridCase> rows_between_chains() {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const auto& [shape, axis] : {std::pair(Shape{5, 64}, 1), {Shape{3, 9, 7}, 1}, {Shape{2, 40, 6}, 1}, {Shape{2, 20000}, 1}}) {
      const Tensor x = whole_numbers(dtype, shape, 1), beside = whole_numbers(dtype, shape, 2),
                   before_one = whole_numbers(dtype, Shape{}, 3);
      const Tensor factor = whole_numbers(dtype, shape, 4), one = whole_numbers(dtype, Shape{1}, 5);
      auto launches = std::make_unique<AxisLaunches>();
      launches->shape.kind = RowKind::squares;
      launches->axis = axis;
      launches->epsilon = 0.5;
      launches->shape.prologue = expression_of(in_front, 1, dtype);
      launches->shape.epilogue = expression_of(at_the_back, 3, dtype);
      Numbers y = in_front_of(x, beside, before_one);
      const Lines lines(y, 1u << axis);
      Elements roots;
      for (const Elements& line : lines.elements) {
        Number squares = 0;
        for (const Number n : line) squares += n * n;
        roots.push_back(std::sqrt(squares / static_cast<Number>(line.size()) + 0.5L));
      }
      for (size_t i = 0; i < y.values.size(); ++i) y.values[i] /= roots[lines.line_of[i]];
      GridCase rows;
      rows.name = "squares of " + std::string(to_string(dtype)) + shape.text();
      rows.launches = std::move(launches);
      rows.inputs = {x, beside, before_one, factor, one};
      rows.expected = {behind_of(y, factor, one)};
      cases.push_back(std::move(rows));
    }
  return cases;
}

std::vector<GridCase> channels_before_chains() {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds) {
    const Shape shape{2, 3, 5, 7};
    const Tensor x = whole_numbers(dtype, shape, 1), factor = whole_numbers(dtype, shape, 4), one = whole_numbers(dtype, Shape{1}, 5);
    auto launches = std::make_unique<BatchLaunches>();
    launches->epilogue = expression_of(at_the_back, 5, dtype);
    GridCase batch;
    batch.name = "batch of " + std::string(to_string(dtype));
    batch.launches = std::move(launches);
    const Tensor scale = tensor_of(dtype, Shape{3}, {1, 2, -1}), bias = tensor_of(dtype, Shape{3}, {0, 1, 2});
    batch.inputs = {x, scale, bias, tensor_of(dtype, Shape{3}, {1, 0, -1}), tensor_of(dtype, Shape{3}, {1, 4, 0.25L}), factor, one};
    Numbers y = conformance::numbers_of(*x);
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto c = static_cast<size_t>(i / 35 % 3);
      y.values[static_cast<size_t>(i)] =
          (y.values[static_cast<size_t>(i)] - std::array{1, 0, -1}[c]) * std::array{1, 1, -2}[c] + static_cast<Number>(c);
    }
    batch.expected = {behind_of(y, factor, one)};
    cases.push_back(std::move(batch));
  }
  return cases;
}

TEST(FusedSource, AroundReductions) {
  run_on_grid(reductions_between_chains());
}
TEST(FusedSource, AroundRows) {
  run_on_grid(rows_between_chains());
}
TEST(FusedSource, BehindChannels) {
  run_on_grid(channels_before_chains());
}

TEST(FusedSource, NvrtcTakesThem) {
  std::string why;
  const Nvrtc* const compiler = Nvrtc::open(&why);
  if (!compiler) GTEST_SKIP() << why;
  for (const auto& cases : {reductions_between_chains, rows_between_chains, channels_before_chains})
    for (const GridCase& one : cases()) EXPECT_EQ(compiler->compile(text_of(one), true), "") << one.name;
}

// ---------------------------------------------------------------- epilogue ops as the host fuses them

// A node of one f32 input and output, with epilogue ops.
struct Staged {
  heddle_type type = {};
  const heddle_type* inputs[3] = {};
  const heddle_type* outputs[1] = {};
  std::vector<heddle_epilogue_op> epilogue_ops;
  std::vector<const heddle_epilogue_op*> pointers;
  heddle_operator op = {};
  heddle_create_context context = {};

  explicit Staged(std::vector<heddle_epilogue_op> given) : epilogue_ops(std::move(given)) {
    type.dtype = HEDDLE_F32;
    type.rank = 1;
    for (auto& input : inputs) input = &type;
    outputs[0] = &type;
    for (const auto& epilogue_op : epilogue_ops) pointers.push_back(&epilogue_op);
    context.input_count = 3;
    context.output_count = 1;
    context.inputs = inputs;
    context.outputs = outputs;
    context.op = &op;
    context.epilogue_op_count = static_cast<uint32_t>(epilogue_ops.size());
    context.epilogue_ops = pointers.data();
  }
};
heddle_epilogue_op epilogue_op(const char* expression, int32_t input, int32_t kind) {
  return {sizeof(heddle_epilogue_op), input, kind, 0, expression};
}

TEST(FusedSource, EpilogueOpsBecomeOneChain) {
  const Staged node({epilogue_op("max(acc, 0)", -1, HEDDLE_OPERAND_NONE), epilogue_op("mul(acc, operand)", 1, HEDDLE_OPERAND_SAME_SHAPE),
                     epilogue_op("sub(operand, acc)", 2, HEDDLE_OPERAND_SCALAR)});
  const plugin::CreateContext context(&node.context);
  FusedExpression fused;
  const plugin::Status status = epilogue_expression(context, &fused);
  ASSERT_TRUE(status.ok()) << status.text;
  EXPECT_EQ(expression::print(fused.program), "sub(operand2, mul(max(acc, 0), operand1))");
  ASSERT_EQ(fused.operands.size(), 2u);
  EXPECT_EQ(fused.operands[0].input, 1u);
  EXPECT_FALSE(fused.operands[0].scalar);
  EXPECT_TRUE(fused.operands[1].scalar);
  EXPECT_TRUE(takes_epilogue_ops(context));
  EXPECT_EQ(own_inputs(context), 1u);
}

TEST(FusedSource, OtherEpilogueOpsAreRefused) {
  for (const heddle_epilogue_op& one :
       {epilogue_op("mul(acc, operand)", 1, HEDDLE_OPERAND_PER_CHANNEL), epilogue_op("mul(acc, operand)", 1, HEDDLE_OPERAND_LAST_DIMENSION),
        epilogue_op("mul(acc, operand)", -1, HEDDLE_OPERAND_NONE), epilogue_op("bit_and(acc, operand)", 1, HEDDLE_OPERAND_SAME_SHAPE),
        epilogue_op("mul(acc", -1, HEDDLE_OPERAND_NONE)}) {
    const Staged node({one});
    EXPECT_FALSE(takes_epilogue_ops(plugin::CreateContext(&node.context))) << one.expression << " " << one.operand_kind;
  }
}

}  // namespace
}  // namespace heddle::cuda::grid_test

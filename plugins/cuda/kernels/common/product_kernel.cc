#include "kernels/common/product_kernel.h"

#include <algorithm>
#include <numeric>

namespace heddle::cuda {
namespace {

using operators::MatMulProblem;
using operators::MatrixStrides;

constexpr size_t most_parts = 4096;

// Texts as the host writes them (expression.h, print).
bool is_sum(const Stage& stage, int32_t kind) {
  return stage.kind == kind && (stage.text == "add(acc, operand)" || stage.text == "add(operand, acc)");
}

std::string canonical(const std::string& text) {
  expression::Program program;
  program.inputs = {"acc"};
  std::string error;
  return expression::parse(text, {}, program, error) ? expression::print(program) : std::string();
}

ProductActivation activation_of(const Stage& stage, heddle_dtype dtype) {
  static const std::string relu = canonical("max(acc, 0)");
  static const std::string gelu = canonical("0.5 * acc * (1 + tanh(0.7978845608028654 * (acc + 0.044715 * acc * acc * acc)))");
  if (dtype == HEDDLE_F64) return ProductActivation::none;
  return stage.text == relu ? ProductActivation::relu : stage.text == gelu ? ProductActivation::gelu : ProductActivation::none;
}

// Row by row, as tensors are, a matrix is the transposed one column by column.
ProductShape::Matrix matrix_of(const MatrixStrides& strides, size_t batch_axis) {
  ProductShape::Matrix matrix;
  matrix.transposed = strides.column != 1;
  matrix.leading = matrix.transposed ? strides.column : strides.row;
  matrix.step = strides.batch.empty() ? 0 : strides.batch[batch_axis];
  return matrix;
}

// Bytes that every address is a multiple of.
uint32_t alignment_of(const ProductShape& shape, int64_t element_bytes, const std::vector<int64_t>& offsets) {
  int64_t bytes = MatrixProduct::given_alignment;
  for (const int64_t step : {shape.a.step, shape.b.step, shape.d.step}) bytes = std::gcd(bytes, step * element_bytes);
  for (const int64_t offset : offsets) bytes = std::gcd(bytes, offset * element_bytes);
  return static_cast<uint32_t>(bytes);
}

}  // namespace

bool ProductKernel::accepts_epilogue(const CreateContext& context) {
  return StageTail::takes(context, {HEDDLE_OPERAND_NONE, HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR});
}

Status ProductKernel::begin(const CreateContext& context) {
  HEDDLE_PLUGIN_CHECK(on(context));
  fused_ = stages_of(context);
  return library_.ask(context, ProductLibrary::resource);
}

// As many of the first stages as cuBLASLt does itself.
size_t ProductKernel::absorb(const std::vector<Stage>& stages, ProductShape* shape) {
  size_t count = 0;
  for (; count < stages.size(); ++count) {
    const Stage& stage = stages[count];
    if (c_ < 0 && is_sum(stage, HEDDLE_OPERAND_SAME_SHAPE)) {
      c_ = stage.input;
      beta_ = 1;
    } else if (bias_ < 0 && is_sum(stage, HEDDLE_OPERAND_LAST_DIMENSION)) {
      bias_ = stage.input;
    } else {
      break;
    }
  }
  if (count < stages.size()) shape->activation = activation_of(stages[count], shape->dtype);
  return count + (shape->activation != ProductActivation::none ? 1 : 0);
}

// One batch dimension goes by steps, the longest; products along the others are calls of their own.
Status ProductKernel::divide(const MatMulProblem& problem, ProductShape* shape) {
  const auto longest = std::max_element(problem.batch.begin(), problem.batch.end());
  const auto axis = static_cast<size_t>(longest - problem.batch.begin());
  shape->batch = problem.batch.empty() ? 1 : *longest;
  shape->a = matrix_of(problem.b, axis);
  shape->b = matrix_of(problem.a, axis);
  shape->d = matrix_of(problem.y, axis);
  MatMulProblem rest = problem;
  if (!rest.batch.empty()) rest.batch[axis] = 1;
  if (static_cast<size_t>(rest.images()) > most_parts)
    return unsupported("a product of " + std::to_string(problem.images()) + " matrices with no common step between them");
  std::vector<int64_t> offsets;
  for (int64_t image = 0; image < rest.images(); ++image) {
    const Part part = {image_offset(rest, rest.a, image), image_offset(rest, rest.b, image), image_offset(rest, rest.y, image)};
    parts_.push_back(part);
    offsets.insert(offsets.end(), {part.a, part.b, part.y});
  }
  shape->alignment = alignment_of(*shape, static_cast<int64_t>(byte_width(shape->dtype)), offsets);
  return {};
}

Status ProductKernel::plan(PrepareContext& context, MatMulProblem problem, const std::vector<Stage>& stages, double alpha, int32_t c,
                           double beta) {
  const heddle_tensor& y = *context.output(0);
  context.reads_on_host({});
  context.set_tiles(y.element_count == 0 ? 0 : 1);
  parts_.clear();
  alpha_ = alpha;
  beta_ = beta;
  c_ = c;
  bias_ = -1;
  spreads_c_ = false;
  if (y.element_count == 0) return {};
  if (problem.depth == 0) {
    if (c >= 0) return unsupported("a product of no depth beside a matrix");
    return tail_.prepare(device(), stages, y, context.inputs());
  }
  if (c >= 0) HEDDLE_PLUGIN_CHECK(prepare_spread(*context.input(static_cast<uint32_t>(c)), y));
  simplify(&problem);
  ProductShape shape;
  shape.dtype = y.dtype;
  shape.tf32 = device().tf32;
  shape.m = problem.columns;
  shape.n = problem.rows;
  shape.k = problem.depth;
  const size_t absorbed = absorb(stages, &shape);
  shape.has_c = c_ >= 0;
  shape.has_bias = bias_ >= 0;
  HEDDLE_PLUGIN_CHECK(divide(problem, &shape));
  const uint64_t budget =
      context.scratch_budget() > MatrixProduct::workspace_alignment ? context.scratch_budget() - MatrixProduct::workspace_alignment : 0;
  HEDDLE_PLUGIN_CHECK(product_.choose(device(), library_.made()->handle(), shape, std::min(budget, MatrixProduct::most_workspace)));
  if (bias_ >= 0 && context.input(static_cast<uint32_t>(bias_))->data)
    HEDDLE_PLUGIN_CHECK(product_.expect_bias(context.input(static_cast<uint32_t>(bias_))->data));
  if (product_.workspace_bytes() > 0) context.set_scratch(product_.workspace_bytes() + MatrixProduct::workspace_alignment);
  const std::vector<Stage> rest(stages.begin() + static_cast<std::ptrdiff_t>(absorbed), stages.end());
  return tail_.prepare(device(), rest, y, context.inputs());
}

Status ProductKernel::prepare_spread(const heddle_tensor& c, const heddle_tensor& y) {
  spreads_c_ = operators::vector_of(operators::dims_of(c)) != operators::vector_of(operators::dims_of(y));
  if (!spreads_c_) return {};
  expression::Program program;
  program.inputs = {"x0"};
  std::string error;
  if (!expression::parse("x0", {}, program, error)) return invalid(error);
  const heddle_tensor* const inputs[] = {&c};
  return spread_.prepare(device(), program, y, inputs);
}

Status ProductKernel::run(const RunContext& context, int64_t, int64_t) const {
  const auto stream = static_cast<cudaStream_t>(context.stream);
  const heddle_tensor& y = *context.outputs[0];
  const auto width = static_cast<int64_t>(byte_width(y.dtype));
  const auto at = [&](const void* data, int64_t elements) { return static_cast<const char*>(data) + elements * width; };
  if (parts_.empty()) {
    HEDDLE_PLUGIN_CHECK(enqueue_on(device(), stream, [&]() -> Status {
      HEDDLE_CUDA_CALL(cudaSetDevice, device().index);
      HEDDLE_CUDA_CALL(cudaMemsetAsync, y.data, 0, y.byte_size, stream);
      return {};
    }));
  }
  MatrixProduct::Operands operands;
  operands.alpha = alpha_;
  operands.beta = beta_;
  operands.bias = bias_ < 0 ? nullptr : context.inputs[bias_]->data;
  const auto scratch = reinterpret_cast<uintptr_t>(context.scratch);
  operands.workspace = reinterpret_cast<void*>((scratch + MatrixProduct::workspace_alignment - 1) / MatrixProduct::workspace_alignment *
                                               MatrixProduct::workspace_alignment);
  const cublasLtHandle_t handle = library_.made()->handle();
  const TraceRange range(trace_name());
  const void* const c = c_ < 0 ? nullptr : spreads_c_ ? y.data : context.inputs[c_]->data;
  if (spreads_c_ && !parts_.empty()) HEDDLE_PLUGIN_CHECK(spread_.start(*this, context, y.data, &context.inputs[c_]->data));
  for (const Part& part : parts_) {
    operands.a = at(context.inputs[swapped_ ? 0 : 1]->data, part.b);
    operands.b = at(context.inputs[swapped_ ? 1 : 0]->data, part.a);
    operands.c = c ? at(c, part.y) : nullptr;
    operands.d = const_cast<char*>(at(y.data, part.y));
    HEDDLE_PLUGIN_CHECK(product_.enqueue(device(), handle, operands, stream));
  }
  return tail_.start(*this, context);
}

}  // namespace heddle::cuda

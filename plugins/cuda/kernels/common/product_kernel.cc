#include "kernels/common/product_kernel.h"

#include <algorithm>
#include <numeric>

namespace heddle::cuda {
namespace {

using operators::MatMulProblem;
using operators::MatrixStrides;

constexpr int64_t max_parts = 4096;

// Compares with texts as the host writes them (expression.h, print).
bool is_sum(const EpilogueOp& epilogue_op, int32_t kind) {
  return epilogue_op.kind == kind && (epilogue_op.text == "add(acc, operand)" || epilogue_op.text == "add(operand, acc)");
}

std::string canonical(const std::string& text) {
  expression::Program program;
  program.inputs = {"acc"};
  std::string error;
  return expression::parse(text, {}, program, error) ? expression::print(program) : std::string();
}

ProductActivation activation_of(const EpilogueOp& epilogue_op, heddle_dtype dtype) {
  static const std::string relu = canonical("max(acc, 0)");
  static const std::string gelu = canonical("0.5 * acc * (1 + tanh(0.7978845608028654 * (acc + 0.044715 * acc * acc * acc)))");
  if (dtype == HEDDLE_F64) return ProductActivation::none;
  return epilogue_op.text == relu ? ProductActivation::relu : epilogue_op.text == gelu ? ProductActivation::gelu : ProductActivation::none;
}

// Converts strides: a matrix stored row by row, as tensors are, is the transposed one column by column.
ProductShape::Matrix matrix_of(const MatrixStrides& strides, size_t batch_axis) {
  ProductShape::Matrix matrix;
  matrix.transposed = strides.column != 1;
  matrix.leading = matrix.transposed ? strides.column : strides.row;
  matrix.step = strides.batch.empty() ? 0 : strides.batch[batch_axis];
  return matrix;
}

// Returns the number of bytes that every address is a multiple of.
uint32_t alignment_of(const ProductShape& shape, int64_t element_bytes, const std::vector<int64_t>& offsets) {
  int64_t bytes = MatrixProduct::given_alignment;
  for (const int64_t step : {shape.a.step, shape.b.step, shape.d.step}) bytes = std::gcd(bytes, step * element_bytes);
  for (const int64_t offset : offsets) bytes = std::gcd(bytes, offset * element_bytes);
  return static_cast<uint32_t>(bytes);
}

// Returns the number of calls, each of which covers the longest dimension of the batch.
int64_t calls_of(const MatMulProblem& problem) {
  return problem.batch.empty() ? 1 : problem.images() / *std::max_element(problem.batch.begin(), problem.batch.end());
}

// Returns true if all matrices are equally far from the one before.
bool has_common_step(const MatrixStrides& strides, const std::vector<int64_t>& batch) {
  for (size_t i = 1; i < batch.size(); ++i)
    if (strides.batch[i - 1] != strides.batch[i] * batch[i]) return false;
  return true;
}

// Prepares to expand the input to an output that it broadcasts to.
Status prepare_identity(const Device& device, const heddle_tensor& input, const heddle_tensor& output, PointwiseLaunch* launch) {
  expression::Program program;
  program.inputs = {"x0"};
  std::string error;
  if (!expression::parse("x0", {}, program, error)) return invalid(error);
  const heddle_tensor* const inputs[] = {&input};
  return launch->prepare(device, program, output, inputs);
}

// Prepares one launch that copies each matrix as often as the batch reads it; `strides` become those of the copies.
Status prepare_copies(const Device& device, heddle_dtype dtype, const std::vector<int64_t>& batch, int64_t rows, int64_t columns,
                      MatrixStrides* strides, PointwiseLaunch* launch) {
  std::vector<int64_t> from = batch, to = batch;
  bool is_dense = strides->row == columns && strides->column == 1;
  int64_t read = rows * columns, written = read;
  for (size_t i = batch.size(); i-- > 0;) {
    if (strides->batch[i] == 0) from[i] = 1;
    is_dense = is_dense && (from[i] == 1 || strides->batch[i] == read);
    read *= from[i];
    strides->batch[i] = written;
    written *= to[i];
  }
  if (!is_dense) return unsupported("matrices that lie in another order than their batch");
  const auto view = [&](std::vector<int64_t>& dims, int64_t elements) {
    dims.insert(dims.end(), {rows, columns});
    heddle_tensor tensor = {};
    tensor.struct_size = sizeof(tensor);
    tensor.dtype = dtype;
    tensor.rank = static_cast<int32_t>(dims.size());
    tensor.dims = dims.data();
    tensor.element_count = elements;
    tensor.byte_size = static_cast<uint64_t>(elements) * byte_width(dtype);
    return tensor;
  };
  const heddle_tensor input = view(from, read), output = view(to, written);
  return prepare_identity(device, input, output, launch);
}

}  // namespace

bool ProductKernel::accepts_epilogue(const CreateContext& context) {
  return EpilogueKernel::takes(context,
                               {HEDDLE_OPERAND_NONE, HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR});
}

Status ProductKernel::begin(const CreateContext& context) {
  HEDDLE_PLUGIN_CHECK(on(context));
  fused_ = epilogue_ops_of(context);
  return library_.ask(context, ProductLibrary::resource);
}

// Absorbs as many of the first epilogue ops as cuBLASLt does itself; returns their number.
size_t ProductKernel::absorb(const std::vector<EpilogueOp>& epilogue_ops, ProductShape* shape) {
  size_t count = 0;
  for (; count < epilogue_ops.size(); ++count) {
    const EpilogueOp& epilogue_op = epilogue_ops[count];
    if (c_ < 0 && is_sum(epilogue_op, HEDDLE_OPERAND_SAME_SHAPE)) {
      c_ = epilogue_op.input;
      beta_ = 1;
    } else if (bias_ < 0 && is_sum(epilogue_op, HEDDLE_OPERAND_LAST_DIMENSION)) {
      bias_ = epilogue_op.input;
    } else {
      break;
    }
  }
  if (count < epilogue_ops.size()) shape->activation = activation_of(epilogue_ops[count], shape->dtype);
  return count + (shape->activation != ProductActivation::none ? 1 : 0);
}

// Where there would be too many calls, lays out copies of the matrices in the order of the batch, which need a single call.
Status ProductKernel::lay_out(heddle_dtype dtype, uint64_t budget, MatMulProblem* problem) {
  if (calls_of(*problem) <= max_parts) return {};
  const auto images = static_cast<uint64_t>(problem->images());
  struct Matrices {
    MatrixStrides* strides;
    int64_t rows, columns;
  };
  const Matrices operands[] = {{&problem->a, problem->rows, problem->depth}, {&problem->b, problem->depth, problem->columns}};
  for (size_t i = 0; i < copies_.size(); ++i) {
    const auto& [strides, rows, columns] = operands[i];
    if (has_common_step(*strides, problem->batch)) continue;
    constexpr uint64_t unit = MatrixProduct::workspace_alignment;
    const uint64_t matrix = static_cast<uint64_t>(rows * columns) * byte_width(dtype), left = (budget - copied_bytes_) / unit * unit;
    if (matrix > left / images)
      return unsupported("a product of " + std::to_string(images) + " matrices with no common step between them, for which copies of " +
                         std::to_string(matrix) + " bytes each are made in scratch, of which it may have " + std::to_string(budget));
    copies_[i].is_made = true;
    copies_[i].offset = copied_bytes_;
    copied_bytes_ += (matrix * images + unit - 1) / unit * unit;
    HEDDLE_PLUGIN_CHECK(prepare_copies(device(), dtype, problem->batch, rows, columns, strides, &copies_[i].launch));
  }
  simplify(problem);
  return {};
}

// Divides the products into calls: one batch dimension, the longest, is covered by steps; each product along the others is a call.
Status ProductKernel::divide(const MatMulProblem& problem, ProductShape* shape) {
  const auto longest = std::max_element(problem.batch.begin(), problem.batch.end());
  const auto axis = static_cast<size_t>(longest - problem.batch.begin());
  shape->batch = problem.batch.empty() ? 1 : *longest;
  shape->a = matrix_of(problem.b, axis);
  shape->b = matrix_of(problem.a, axis);
  shape->d = matrix_of(problem.y, axis);
  MatMulProblem rest = problem;
  if (!rest.batch.empty()) rest.batch[axis] = 1;
  if (rest.images() > max_parts)
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

Status ProductKernel::plan(PrepareContext& context, MatMulProblem problem, const std::vector<EpilogueOp>& epilogue_ops, double alpha,
                           int32_t c, double beta) {
  const heddle_tensor& y = *context.output(0);
  context.reads_on_host({});
  context.set_tiles(y.element_count == 0 ? 0 : 1);
  parts_.clear();
  alpha_ = alpha;
  beta_ = beta;
  c_ = c;
  bias_ = -1;
  spreads_c_ = false;
  copied_bytes_ = 0;
  for (Copy& copy : copies_) copy.is_made = false;
  if (y.element_count == 0) return {};
  if (problem.depth == 0) {
    if (c >= 0) return unsupported("a product of no depth beside a matrix");
    return epilogue_kernel_.prepare(device(), epilogue_ops, y, context.inputs());
  }
  if (c >= 0) HEDDLE_PLUGIN_CHECK(prepare_spread(*context.input(static_cast<uint32_t>(c)), y));
  const uint64_t budget =
      context.scratch_budget() > MatrixProduct::workspace_alignment ? context.scratch_budget() - MatrixProduct::workspace_alignment : 0;
  simplify(&problem);
  HEDDLE_PLUGIN_CHECK(lay_out(y.dtype, budget, &problem));
  ProductShape shape;
  shape.dtype = y.dtype;
  shape.tf32 = device().tf32;
  shape.m = problem.columns;
  shape.n = problem.rows;
  shape.k = problem.depth;
  const size_t absorbed = absorb(epilogue_ops, &shape);
  shape.has_c = c_ >= 0;
  shape.has_bias = bias_ >= 0;
  HEDDLE_PLUGIN_CHECK(divide(problem, &shape));
  const uint64_t max_workspace = std::min(budget - copied_bytes_, MatrixProduct::max_workspace);
  HEDDLE_PLUGIN_CHECK(product_.choose(device(), library_.made()->handle(), shape, max_workspace));
  if (bias_ >= 0 && context.input(static_cast<uint32_t>(bias_))->data)
    HEDDLE_PLUGIN_CHECK(product_.expect_bias(context.input(static_cast<uint32_t>(bias_))->data));
  const uint64_t scratch = copied_bytes_ + product_.workspace_bytes();
  if (scratch > 0) context.set_scratch(scratch + MatrixProduct::workspace_alignment);
  const std::vector<EpilogueOp> rest(epilogue_ops.begin() + static_cast<std::ptrdiff_t>(absorbed), epilogue_ops.end());
  return epilogue_kernel_.prepare(device(), rest, y, context.inputs());
}

Status ProductKernel::prepare_spread(const heddle_tensor& c, const heddle_tensor& y) {
  spreads_c_ = operators::vector_of(operators::dims_of(c)) != operators::vector_of(operators::dims_of(y));
  return spreads_c_ ? prepare_identity(device(), c, y, &spread_) : Status();
}

Status ProductKernel::run(const RunContext& context, int64_t, int64_t) const {
  const auto stream = static_cast<cudaStream_t>(context.stream);
  const heddle_tensor& y = *context.outputs[0];
  const auto width = static_cast<int64_t>(byte_width(y.dtype));
  const auto at = [&](const void* data, int64_t elements) { return static_cast<const char*>(data) + elements * width; };
  if (parts_.empty()) HEDDLE_PLUGIN_CHECK(fill_zero(context, y.data, y.byte_size));
  MatrixProduct::Operands operands;
  operands.alpha = alpha_;
  operands.beta = beta_;
  operands.bias = bias_ < 0 ? nullptr : context.inputs[bias_]->data;
  constexpr uintptr_t unit = MatrixProduct::workspace_alignment;
  auto* const scratch = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(context.scratch) + unit - 1) / unit * unit);
  operands.workspace = scratch + copied_bytes_;
  const cublasLtHandle_t handle = library_.made()->handle();
  const TraceRange range(trace_name());
  std::array<const void*, 2> matrices = {context.inputs[swapped_ ? 1 : 0]->data, context.inputs[swapped_ ? 0 : 1]->data};
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (!copies_[i].is_made) continue;
    HEDDLE_PLUGIN_CHECK(copies_[i].launch.start(*this, context, scratch + copies_[i].offset, &matrices[i]));
    matrices[i] = scratch + copies_[i].offset;
  }
  const void* const c = c_ < 0 ? nullptr : spreads_c_ ? y.data : context.inputs[c_]->data;
  if (spreads_c_ && !parts_.empty()) HEDDLE_PLUGIN_CHECK(spread_.start(*this, context, y.data, &context.inputs[c_]->data));
  for (const Part& part : parts_) {
    operands.a = at(matrices[1], part.b);
    operands.b = at(matrices[0], part.a);
    operands.c = c ? at(c, part.y) : nullptr;
    operands.d = const_cast<char*>(at(y.data, part.y));
    HEDDLE_PLUGIN_CHECK(product_.enqueue(device(), handle, operands, stream));
  }
  return epilogue_kernel_.start(*this, context);
}

}  // namespace heddle::cuda

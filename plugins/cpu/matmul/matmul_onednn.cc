// oneDNN's matrix product. See matmul_onednn.h.
#include "matmul/matmul_onednn.h"

namespace heddle::cpu {

using namespace onednn;

namespace {

// [rows, columns], preceded by the images when there are several; operands that all images share are one image, which oneDNN broadcasts.
Status describe_operand(int64_t images, int64_t rows, int64_t columns, const MatrixStrides& strides, MemoryDesc* desc) {
  if (images == 1) return onednn::describe({rows, columns}, {strides.row, strides.column}, desc);
  const int64_t apart = strides.batch[0];
  return onednn::describe({apart == 0 ? 1 : images, rows, columns}, {apart == 0 ? rows * columns : apart, strides.row, strides.column},
                          desc);
}

Status describe_vector(bool batched, int64_t rows, int64_t columns, MemoryDesc* desc) {
  return onednn::describe(batched ? std::vector<int64_t>{1, rows, columns} : std::vector<int64_t>{rows, columns}, {}, desc);
}

}  // namespace

Status MatMulPrimitive::describe(const MatMulProblem& problem, bool packs_b) {
  const bool batched = extents_.images > 1;
  HEDDLE_PLUGIN_CHECK(describe_operand(extents_.images, extents_.rows, problem.depth, problem.a, &a_));
  HEDDLE_PLUGIN_CHECK(describe_operand(extents_.images, extents_.rows, extents_.columns, problem.y, &y_));
  HEDDLE_PLUGIN_CHECK(packs_b ? describe_any({problem.depth, extents_.columns}, &b_)
                              : describe_operand(extents_.images, problem.depth, extents_.columns, problem.b, &b_));
  HEDDLE_PLUGIN_CHECK(describe_vector(batched, 1, extents_.columns, &per_column_));
  HEDDLE_PLUGIN_CHECK(describe_vector(batched, extents_.rows, 1, &per_row_));
  return describe_vector(batched, 1, 1, &scalar_);
}

Status MatMulPrimitive::choose(const MatMulProblem& problem, bool packs_b, bool has_bias, const Epilogue& epilogue,
                               size_t first_epilogue_op, size_t limit) {
  has_bias_ = has_bias;
  HEDDLE_PLUGIN_CHECK(describe(problem, packs_b));
  OperandLayouts operands;
  operands.same_shape = &y_;
  operands.per_column = &per_column_;
  operands.per_row = &per_row_;
  operands.scalar = &scalar_;
  const ProductOperation operation = {.a = &a_, .b = &b_, .bias = has_bias ? &per_column_ : nullptr, .y = &y_};
  for (;;) {
    fused_ = FusedEpilogue();
    HEDDLE_PLUGIN_CHECK(fuse_epilogue_ops(epilogue, first_epilogue_op, first_epilogue_op + limit, operands, &fused_));
    const Status status = desc_.create(operation, &fused_.post_ops);
    if (status.ok() && (!desc_.is_reference() || fused_.count == 0)) {
      if (!drops_nan(fused_)) break;
      bool same = false;
      HEDDLE_PLUGIN_CHECK(choose_nan_safe(epilogue, first_epilogue_op, &same));
      if (same) break;
      limit = fused_.nan_safe;
      continue;
    }
    if (fused_.count == 0) return status;
    limit = fused_.count - 1;
  }
  scratch_bytes_ = desc_.scratch_bytes();
  if (drops_nan(fused_)) scratch_bytes_ = std::max(scratch_bytes_, nan_safe_.scratch_bytes());
  operand_kinds_.clear();
  for (size_t epilogue_op : fused_.epilogue_op_indices) operand_kinds_.push_back(epilogue[epilogue_op].operand_kind);
  return {};
}

Status MatMulPrimitive::choose_nan_safe(const Epilogue& epilogue, size_t first_epilogue_op, bool* same) {
  OperandLayouts operands;  // of the epilogue ops that are left; none has an operand of the output's shape
  operands.per_column = &per_column_;
  operands.per_row = &per_row_;
  operands.scalar = &scalar_;
  FusedEpilogue kept;
  HEDDLE_PLUGIN_CHECK(fuse_epilogue_ops(epilogue, first_epilogue_op, first_epilogue_op + fused_.nan_safe, operands, &kept));
  const MemoryDesc b = desc_.query(dnnl_query_weights_md);
  const ProductOperation operation = {.a = &a_, .b = &b, .bias = has_bias_ ? &per_column_ : nullptr, .y = &y_};
  const Status status = nan_safe_.create(operation, &kept.post_ops);
  *same = status.ok() && nan_safe_.implementation() == desc_.implementation();
  return {};
}

Status MatMulPrimitive::create(uint32_t threads) {
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, a_},
                                     {DNNL_ARG_WEIGHTS, desc_.query(dnnl_query_weights_md)},
                                     {DNNL_ARG_DST, y_},
                                     {DNNL_ARG_SCRATCHPAD, desc_.query(dnnl_query_scratchpad_md)}};
  if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, per_column_});
  arguments.insert(arguments.end(), fused_.arguments.begin(), fused_.arguments.end());
  return call_.create(desc_, fused_, std::move(arguments), std::move(nan_safe_), threads);
}

Status MatMulPrimitive::run(const Buffers& buffers, size_t* epilogue_ops) const {
  Call::Pointers pointers = {buffers.a, buffers.b, buffers.y, buffers.scratch};
  size_t count = 4;
  if (has_bias_) pointers[count++] = buffers.bias + buffers.first_column;
  for (size_t i = 0; i < operand_kinds_.size(); ++i) {
    const float* operand = buffers.operands[fused_.epilogue_op_indices[i]];
    if (operand_kinds_[i] == HEDDLE_OPERAND_LAST_DIMENSION) operand += buffers.first_column;
    if (operand_kinds_[i] == operand_per_row) operand += buffers.first_row;
    pointers[count++] = operand;
  }
  return call_.run(pointers, epilogue_ops);
}

}  // namespace heddle::cpu

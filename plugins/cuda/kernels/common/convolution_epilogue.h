// What stands behind a convolution: its bias and the epilogue ops that the host fused. As operations of cuDNN's graph, as far as cuDNN has them,
// and as one pointwise program for the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/expression.h"
#include "library/cudnn_graph.h"

namespace heddle::cuda {

// An expression in "acc", the value so far, and "operand".
struct ConvolutionEpilogueOp {
  expression::Program program;
  int32_t input = -1;  // of the node; -1: no operand
  int32_t kind = HEDDLE_OPERAND_NONE;
};
inline constexpr size_t max_convolution_epilogue_ops = 8;

// The bias of input 2 first, where there is one. Errors: texts that are no such expressions.
plugin::Status convolution_epilogue_ops(const plugin::CreateContext& context, std::vector<ConvolutionEpilogueOp>* epilogue_ops);
// What accepts_epilogue answers.
bool takes_convolution_epilogue_ops(const plugin::CreateContext& context);

// Epilogue ops [first, end) as a program of acc and of the operands that they have, in order; their inputs are added to `inputs`.
expression::Program rest_of(const std::vector<ConvolutionEpilogueOp>& epilogue_ops, size_t first, std::vector<uint32_t>* inputs);

// How many epilogue ops, from the first on, are operations that cuDNN has.
size_t epilogue_ops_of_cudnn(const std::vector<ConvolutionEpilogueOp>& epilogue_ops);
// Adds the first `count` of them to the graph, behind the tensor `from` and up to the tensor `to`; count is at least 1. `operands`: the
// tensors of epilogue ops that have one. Between two operations lies a tensor of `between`'s shape.
plugin::Status add_epilogue_ops(const std::vector<ConvolutionEpilogueOp>& epilogue_ops, size_t count, const std::vector<int64_t>& operands,
                          const cudnn::TensorShape& between, int64_t from, int64_t to, cudnn::Graph* graph);

}  // namespace heddle::cuda

// Handles the bias of a convolution and the epilogue ops that the host fused into it: as operations of cuDNN's graph, as far as cuDNN has
// them, and as one pointwise program for the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/expression.h"
#include "library/cudnn_graph.h"

namespace heddle::cuda {

// An expression in "acc", the value so far, and "operand".
struct ConvolutionEpilogueOp {
  expression::Program program;
  int32_t input = -1;  // number of the node's input; -1: no operand
  int32_t kind = HEDDLE_OPERAND_NONE;
};
inline constexpr size_t max_convolution_epilogue_ops = 8;

// Reads the epilogue ops, preceded by the bias, input 2, if there is one. Errors: texts that are no such expressions.
plugin::Status convolution_epilogue_ops(const plugin::CreateContext& context, std::vector<ConvolutionEpilogueOp>* epilogue_ops);
// Returns the answer of accepts_epilogue.
bool takes_convolution_epilogue_ops(const plugin::CreateContext& context);

// Returns epilogue ops [first, end) as a program of acc and of their operands, in order; the operands' inputs are appended to `inputs`.
expression::Program rest_of(const std::vector<ConvolutionEpilogueOp>& epilogue_ops, size_t first, std::vector<uint32_t>* inputs);

// Returns how many epilogue ops, from the first on, are operations that cuDNN has.
size_t epilogue_ops_of_cudnn(const std::vector<ConvolutionEpilogueOp>& epilogue_ops);
// Adds the first `count` of them to the graph, after the tensor `from` and up to the tensor `to`; count is at least 1. `operands` are the
// tensors of epilogue ops that have one. Between two operations is a tensor of `between`'s shape.
plugin::Status add_epilogue_ops(const std::vector<ConvolutionEpilogueOp>& epilogue_ops, size_t count, const std::vector<int64_t>& operands,
                                const cudnn::TensorShape& between, int64_t from, int64_t to, cudnn::Graph* graph);

}  // namespace heddle::cuda

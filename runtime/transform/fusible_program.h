// Operators as pointwise programs that fusion may join: shared by the two fusing transforms.
#pragma once

#include <vector>

#include "edit/editor.h"
#include "heddle/expression.h"

namespace heddle {

// True if there is anything to fuse: an Editor counts all uses of a net when it begins.
bool has_pointwise(const TypedNet& net);

// True for dtypes of fused programs. Programs compute f16 and bf16 in f32, and round what is stored: fused, once.
bool is_fused(DType dtype);

// Gets the node as a program over x0, x1, ... = its inputs; false when it has no pointwise form.
bool program_of(const Node& node, expression::Program& program);

// True if all inputs are present and have the dtype of the output, in which the fused evaluator computes.
bool one_dtype(const TypedNet& net, const Node& node);

// Makes constants of one element literals of `program`, whose inputs are `inputs`, and marks in `literal` which became one. A NaN does not:
// it has more bits than its name.
void inline_scalars(const Editor& editor, const std::vector<ValueId>& inputs, expression::Program& program, std::vector<char>& literal);

// True if the node must not move after an update, because it reads a variable that is updated later.
bool reads_updated_variable(const Net& net, const Node& node);

}  // namespace heddle

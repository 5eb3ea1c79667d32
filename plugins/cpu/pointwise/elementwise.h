// Declarations of elementwise operators: their common parts, and a kernel for those whose expression depends on attributes or on which
// inputs are present.
#pragma once

#include "pointwise/pointwise.h"

namespace heddle::cpu {

// One input X, output Y of the same dtype, in place, any layout. `expression` is in terms of `input_name` and attributes.
inline Op unary_operator(const char* name, int32_t version, const char* expression, heddle_dtype_set set, const char* input_name = "X",
                         const char* output_name = "Y") {
  Op op(name, "", version);
  op.in(input_name, set)
      .out(output_name, same_as(input_name), set)
      .in_place(output_name, input_name)
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .pointwise(expression);
  return op;
}

// Inputs A and B broadcasting to C of the same dtype.
inline Op binary_operator(const char* name, int32_t version, const char* expression, heddle_dtype_set set) {
  Op op(name, "", version);
  op.in("A", set)
      .in("B", set)
      .out("C", broadcast(), set)
      .in_place("C", "A")
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .pointwise(expression);
  return op;
}

// Inputs A and B of one dtype broadcasting to C, a bool.
inline Op comparison_operator(const char* name, int32_t version, const char* expression, heddle_dtype_set set) {
  Op op(name, "", version);
  op.in("A", set)
      .in("B", set)
      .out_as("C", HEDDLE_BOOL, broadcast())
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .pointwise(expression);
  return op;
}

// The operator's own expression, evaluated in the arithmetic of input 0. For operators whose expression uses string attributes or optional
// inputs, and so may be run before anything lowers them to heddle.Pointwise.
class ExpressionKernel : public PointwiseKernel {
 public:
  Status create(const CreateContext& context) {
    return compile_node(context, context.op().pointwise, context.input(0)->dtype, &program_, &input_map_);
  }
};

}  // namespace heddle::cpu

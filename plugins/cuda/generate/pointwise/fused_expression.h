// Elementwise operators fused before or after an operator, as one expression that is computed with the operator's own elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generate/launch_plan.h"
#include "heddle/expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

struct FusedExpression {
  // A tensor that the expression reads besides the operator's own element: of the same shape and layout, or of one element.
  struct Operand {
    uint32_t input = 0;  // number of the node's input
    heddle_dtype dtype = HEDDLE_DTYPE_NONE;
    bool scalar = false;
  };
  // A program of the element, its input 0, and of the operands, in order. Without code it does nothing.
  expression::Program program;
  std::vector<Operand> operands;

  bool empty() const { return program.code.empty(); }
};

inline constexpr size_t max_fused_operands = 8;

// Writes the source of a fused expression that is called `name` there.
class FusedExpressionText {
 public:
  FusedExpressionText(const FusedExpression& fused, const char* name) : fused_(fused), name_(name) {}
  // Returns the bytes of the widest operand that is read for each element; 0 if there is none.
  size_t widest() const;
  void parameters(ParameterWriter& writer) const;
  // Writes the function of one element. Errors: those of element_function(), too many operands.
  plugin::Status function(heddle_dtype arithmetic, std::string* text) const;
  // Returns statements that read the operands of W elements from `at` on.
  std::string reads(const std::string& at) const;
  // Returns the value of element `e` after the expression: `value` itself if there is none.
  std::string call(const std::string& value, heddle_dtype arithmetic) const;

 private:
  const FusedExpression& fused_;
  const char* const name_;
};

// Returns the member "load": reads W elements of p.x from `at` on, as type C, and applies the prologue.
std::string load_member(heddle_dtype dtype, const FusedExpressionText& prologue);
// Returns the member "store": applies the epilogue to W numbers of type C and writes them to p.y from `at` on.
std::string store_member(heddle_dtype dtype, const FusedExpressionText& epilogue);

}  // namespace heddle::cuda

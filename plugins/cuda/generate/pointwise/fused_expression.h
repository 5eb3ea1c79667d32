// Elementwise operators in front of an operator, or behind it, as one expression that is computed with the operator's own elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generate/launch_plan.h"
#include "heddle/expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

struct FusedExpression {
  // A tensor beside the operator's own element: of that one's shape and layout, or of one element.
  struct Operand {
    uint32_t input = 0;  // of the node
    heddle_dtype dtype = HEDDLE_DTYPE_NONE;
    bool scalar = false;
  };
  // Of the element, its input 0, and of the operands, in order. Without code nothing is done.
  expression::Program program;
  std::vector<Operand> operands;

  bool empty() const { return program.code.empty(); }
};

inline constexpr size_t max_fused_operands = 8;

// What a kernel's source says of a chain that is called `name` there.
class FusedExpressionText {
 public:
  FusedExpressionText(const FusedExpression& fused, const char* name) : fused_(fused), name_(name) {}
  // Bytes of the widest operand that goes with the elements; 0: none does.
  size_t widest() const;
  void parameters(ParameterWriter& writer) const;
  // The function of one element. Errors: those of element_function(), too many operands.
  plugin::Status function(heddle_dtype arithmetic, std::string* text) const;
  // Statements that read what goes with W elements from `at` on.
  std::string reads(const std::string& at) const;
  // The value of element `e` behind the chain: `value` itself where there is none.
  std::string call(const std::string& value, heddle_dtype arithmetic) const;

 private:
  const FusedExpression& fused_;
  const char* const name_;
};

// "load": W elements of p.x from `at` on, of type C, behind the fused.
std::string load_member(heddle_dtype dtype, const FusedExpressionText& prologue);
// "store": W numbers of type C, and what the chain makes of them, at p.y and `at`.
std::string store_member(heddle_dtype dtype, const FusedExpressionText& epilogue);

}  // namespace heddle::cuda

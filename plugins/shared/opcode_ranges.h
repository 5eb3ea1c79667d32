// The effect of operations of expressions on the range of integers.
#pragma once

#include "heddle/expression.h"

namespace heddle::operators {

// True if the result can leave the range of its operands: if these are narrower than the computing type, the result has to be wrapped.
inline bool may_overflow(expression::Opcode op) {
  using expression::Opcode;
  switch (op) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::div:
    case Opcode::pow:
    case Opcode::shift_left:
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::bit_not:
      return true;
    default:
      return false;
  }
}

// True if the result is 0 or 1 whatever the operands are.
inline bool gives_truth(expression::Opcode op) {
  using expression::Opcode;
  return (op >= Opcode::lt && op <= Opcode::logical_xor) || op == Opcode::logical_not;
}

}  // namespace heddle::operators

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

}  // namespace heddle::operators

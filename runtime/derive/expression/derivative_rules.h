// The derivative of each operation of pointwise programs, by opcode.
#pragma once

#include "derive/expression/expression_builder.h"
#include "derive/expression/guarded_adjoint.h"
#include "heddle/expression_opcodes.h"

namespace heddle {

// Which operand of a min or max has the derivative where both are equal, and where one is a NaN.
enum class Tie {
  halves,   // each one half of it: max(x, z)
  a,        // the first is clamped by the second: neither where they are equal, nor where the first is a NaN
  b,        // clamps, the other way round
  neither,  // rectifies, max(x, 0): neither where they are equal; a NaN has it
};

// A rule's view of the instruction that it derives, and where it puts the adjoints.
class InstructionAdjoint {
 public:
  virtual ~InstructionAdjoint() = default;

  int a() const { return operands[0]; }
  int b() const { return operands[1]; }
  int c() const { return operands[2]; }
  // The value of the instruction. A rule that reads it must use this call, as the program's result may be an input of the derivative.
  virtual int y() = 0;
  // The value of the instruction if it is given and need not be computed for that; else `other`.
  virtual int y_or(int other) = 0;
  // Whether the adjoint of operand 0, 1 or 2 is needed.
  virtual bool wants(int operand) const = 0;
  // Sets the adjoint of operand `operand` to dy, -dy or k * dy of a finite k: what was zero stays zero.
  virtual void pass(int operand, int adjoint) = 0;
  // Sets an adjoint that is any number, and may be NaN where that of the instruction is zero.
  virtual void give(int operand, int adjoint) = 0;
  // Like give(), but only where `condition` is not zero (or is, if !holds).
  virtual void give_if(int condition, bool holds, int operand, int adjoint) = 0;
  // Sets the adjoint of an earlier value, instead of those of the operands.
  virtual void give_to(int value, int adjoint) = 0;
  // Which operands of a min or max have the derivative, as in Tie.
  virtual Tie tie() const = 0;

  ExpressionBuilder& build;
  int operands[3];
  int dy;

 protected:
  InstructionAdjoint(ExpressionBuilder& builder, const expression::Instruction& i, int adjoint)
      : build(builder), operands{i.a, i.b, i.c}, dy(adjoint) {}
};

struct DerivativeRule {
  expression::Opcode op;
  enum Kind {
    leaf,       // has no operands
    rule,       // `backward` gives the adjoints of the operands
    zero,       // the derivative is zero wherever there is one, and taken as zero elsewhere
    undefined,  // only for integers: no program of floats has it
  } kind;
  void (*backward)(InstructionAdjoint&);
};

// Null: the table has no line for it, which a test excludes.
const DerivativeRule* derivative_rule(expression::Opcode op);

}  // namespace heddle

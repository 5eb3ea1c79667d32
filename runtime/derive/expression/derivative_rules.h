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

// How a rule sees the instruction that it is the rule of, and what it gives.
class InstructionAdjoint {
 public:
  virtual ~InstructionAdjoint() = default;

  int a() const { return operands[0]; }
  int b() const { return operands[1]; }
  int c() const { return operands[2]; }
  // Its own value. A rule that reads it says so by this call, as the program's result may be given to the derivative.
  virtual int y() = 0;
  // The same where it need not be computed for that, as it is given; else `other`.
  virtual int y_or(int other) = 0;
  // Whether operand 0, 1 or 2 has an adjoint that anyone asked for.
  virtual bool wants(int operand) const = 0;
  // Operand `operand` has the adjoint dy, -dy or k * dy of a finite k: what was zero stays zero.
  virtual void pass(int operand, int adjoint) = 0;
  // The adjoint is any number, and may be NaN where that of the instruction is zero.
  virtual void give(int operand, int adjoint) = 0;
  // Only where `condition` is not zero (or is, if !holds).
  virtual void give_if(int condition, bool holds, int operand, int adjoint) = 0;
  // The adjoint of a value further back, in the place of those of the operands.
  virtual void give_to(int value, int adjoint) = 0;
  // Of a min or max.
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
    zero,       // wherever there is a derivative it is zero, and zero stands for it where there is none
    undefined,  // of integers alone: no program of floats has it
  } kind;
  void (*backward)(InstructionAdjoint&);
};

// Null: the table has no line for it, which a test forbids.
const DerivativeRule* derivative_rule(expression::Opcode op);

}  // namespace heddle

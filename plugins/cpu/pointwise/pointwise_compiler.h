// Program::Compiler: turns an expression into a Program (pointwise_compile.cc lowers and allocates, pointwise_simplify.cc finds cheaper
// forms). Lives during Program::compile.
#pragma once

#include <string>
#include <vector>

#include "heddle/expression.h"
#include "pointwise/pointwise_program.h"

namespace heddle::cpu {

using expression::Instruction;
using expression::Opcode;
using plugin::invalid;
using plugin::Status;

class Program::Compiler {
 public:
  Compiler(const ProgramText& text, Program& program) : text_(text), program_(program) {}
  Status run();

 private:
  // A value while compiling: exactly one of a constant, an input or the result of a step.
  struct Value {
    enum Kind { constant, input, step } kind;
    size_t index;  // of constants_, inputs, or values_ itself
    InstructionFunction function = nullptr;
    Opcode op = Opcode::constant;  // of a step; constant: the step is an extension
    int operand_count = 0;
    int operands[3] = {-1, -1, -1};
    double cost = 0;
    // Makes it another step, an extension of three operands.
    void replace(InstructionFunction by, int a, int b, int c) {
      function = by;
      op = Opcode::constant;
      operand_count = 3;
      operands[0] = a, operands[1] = b, operands[2] = c;
    }
  };
  struct Bits {
    alignas(8) char bytes[8];
  };

  Status fail(const std::string& why) const { return invalid("pointwise expression \"" + text_.text + "\": " + why); }
  bool bytes_suffice() const;
  Status choose_arithmetic();
  Status lower(const Instruction& instruction, int* value);
  Status lower_constant(double literal, int* value);
  Status lower_operation(Opcode op, const int* operands, int count, int* value);
  bool simplify(Opcode op, const int* operands, int* value);
  bool simplify_power(int base, double exponent, int* value);
  bool is_constant(int value, float number) const;
  bool is_step(int value, Opcode op) const;
  int beside(int value, Opcode op, float number) const;
  int match_gelu_sum(int value, bool* divides) const;
  bool match_gelu(const int* operands, int* value);
  int match_range(const Value& choice, int* low, int* high) const;
  void join_steps();
  int add(Value value);
  int add_constant(Bits bits);
  int add_step(InstructionFunction function, const int* operands, int count, double cost);
  bool constant_value(int value, double* number) const;
  void allocate(int result);
  uint16_t slot_of(int value, const std::vector<int>& registers, const std::vector<int>& constant_slots) const;

  const ProgramText& text_;
  Program& program_;
  heddle_dtype arithmetic_ = HEDDLE_DTYPE_NONE;
  const InstructionSet* set_ = nullptr;
  expression::Program source_;
  std::vector<int> map_;  // instruction -> value
  std::vector<Value> values_;
  std::vector<Bits> constants_;
};

}  // namespace heddle::cpu

// Makes pointwise programs (heddle/expression.h) that are simplified as they grow: equal instructions are merged, constants are folded, and
// operations without effect are left out.
//
// For floats, and for values that are computed for the first time: x + 0 is x though -0 + 0 is not -0, and products of constants are
// rounded once, as doubles. x * 0 stays: it is NaN for an infinite x. Instructions of an existing program are copied unchanged, so that
// they give the same bits as there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/expression.h"

namespace heddle {

class ExpressionBuilder {
 public:
  // All inputs of the programs made here, by position.
  explicit ExpressionBuilder(std::vector<std::string> inputs);

  int input(size_t index);
  int constant(double number);
  // The operation of values that were made here, or something simpler that is equal.
  int make(expression::Opcode op, int a, int b = -1, int c = -1);
  // Copies an instruction of an existing program, unchanged except for what the parser settles too: signs and choices of constants.
  int copy(expression::Opcode op, int a, int b = -1, int c = -1);

  int add(int a, int b) { return make(expression::Opcode::add, a, b); }
  int sub(int a, int b) { return make(expression::Opcode::sub, a, b); }
  int mul(int a, int b) { return make(expression::Opcode::mul, a, b); }
  int div(int a, int b) { return make(expression::Opcode::div, a, b); }
  int neg(int a) { return make(expression::Opcode::neg, a); }
  int select(int condition, int a, int b) { return make(expression::Opcode::select, condition, a, b); }

  const expression::Instruction& at(int value) const { return program_.code[static_cast<size_t>(value)]; }
  bool is(int value, expression::Opcode op) const { return at(value).op == op; }
  // The value of a constant; none: `value` is no constant.
  std::optional<double> number(int value) const;

  // Returns the program whose result is `value`, without instructions that it does not need.
  expression::Program program_of(int value) const;

 private:
  struct Key {
    expression::Opcode op;
    int a, b, c;
    uint64_t literal_bits;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  struct Scaled {
    int value;
    double factor;
  };

  int push(expression::Instruction instruction);
  // A product with a constant.
  std::optional<Scaled> scaled(int value) const;
  std::optional<int> folded(expression::Opcode op, int a, int b, int c);
  int make_sum(int a, int b);
  int make_difference(int a, int b);
  int make_product(int a, int b);
  int make_quotient(int a, int b);
  int make_negative(int a);
  int make_power(int a, int b);
  int make_choice(int condition, int a, int b);

  expression::Program program_;
  std::unordered_map<Key, int, KeyHash> known_;
};

}  // namespace heddle

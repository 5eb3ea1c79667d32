// The operations of pointwise expressions (expression.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {
namespace expression {

enum class Opcode : uint8_t {
  input,     // Instruction::a is the index of the input
  constant,  // Instruction::literal is the value
  add,
  sub,
  mul,
  div,
  min,
  max,
  pow,
  mod,
  fmod,  // the result of mod has the sign of the divisor, that of fmod the sign of the dividend
  lt,
  le,
  gt,
  ge,
  eq,
  ne,  // the result of a comparison is 0 or 1
  logical_and,
  logical_or,
  logical_xor,  // logical operations take each operand as zero or not zero, and give 0 or 1
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  tanh,
  erf,
  sigmoid,
  floor,
  ceil,
  round,
  sign,
  logical_not,
  bit_not,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  log1p,
  expm1,
  isnan,
  isinf,
  select,  // a != 0 ? b : c
};

struct OpcodeInfo {
  std::string_view name;
  int arity;
};
// Returns name and arity of an operation.
inline const OpcodeInfo& info(Opcode op) {
  static constexpr OpcodeInfo table[] = {
      {"input", 0},       {"constant", 0}, {"add", 2},     {"sub", 2},   {"mul", 2},     {"div", 2},    {"min", 2},     {"max", 2},
      {"pow", 2},         {"mod", 2},      {"fmod", 2},    {"lt", 2},    {"le", 2},      {"gt", 2},     {"ge", 2},      {"eq", 2},
      {"ne", 2},          {"and", 2},      {"or", 2},      {"xor", 2},   {"bit_and", 2}, {"bit_or", 2}, {"bit_xor", 2}, {"shift_left", 2},
      {"shift_right", 2}, {"neg", 1},      {"abs", 1},     {"exp", 1},   {"log", 1},     {"sqrt", 1},   {"rsqrt", 1},   {"reciprocal", 1},
      {"tanh", 1},        {"erf", 1},      {"sigmoid", 1}, {"floor", 1}, {"ceil", 1},    {"round", 1},  {"sign", 1},    {"not", 1},
      {"bit_not", 1},     {"sin", 1},      {"cos", 1},     {"tan", 1},   {"asin", 1},    {"acos", 1},   {"atan", 1},    {"sinh", 1},
      {"cosh", 1},        {"asinh", 1},    {"acosh", 1},   {"atanh", 1}, {"log1p", 1},   {"expm1", 1},  {"isnan", 1},   {"isinf", 1},
      {"select", 3},
  };
  return table[static_cast<int>(op)];
}
constexpr int opcode_count = static_cast<int>(Opcode::select) + 1;

}  // namespace expression
}  // namespace heddle

// Cheaper forms of operations, found while an expression is lowered. Each gives the same bits as the operations that it replaces: results
// do not depend on what is fused.
#include <algorithm>
#include <cmath>

#include "pointwise/pointwise_compiler.h"

namespace heddle::cpu {

// pow itself gives the results of these operations: of all types for powers of 1 and 2, of f32 also for -1, -1/2, 1/2 and 3.
bool Program::Compiler::simplify_power(int base, double exponent, int* value) {
  const auto product = [&](int a, int b) {
    const int operands[] = {a, b};
    return lower_operation(Opcode::mul, operands, 2, value).ok();
  };
  if (exponent == 1) *value = base;
  if (exponent == 1) return true;
  if (exponent == 2) return product(base, base);
  const InstructionFunction root = set_->extensions[half_power];
  if (root && exponent == 3) return product(base, base) && product(*value, base);
  if (!root || (exponent != 0.5 && exponent != -0.5 && exponent != -1)) return false;
  *value = exponent == -1 ? base : add_step(root, &base, 1, 0.3);
  if (exponent == 0.5) return true;
  const int below = *value;
  return lower_operation(Opcode::reciprocal, &below, 1, value).ok();
}

bool Program::Compiler::simplify(Opcode op, const int* operands, int* value) {
  double number = 0;
  if (op == Opcode::select && constant_value(operands[0], &number)) {
    *value = number != 0 ? operands[1] : operands[2];
    return true;
  }
  if (op == Opcode::mul) return match_gelu(operands, value);
  if (op != Opcode::pow || !constant_value(operands[1], &number)) return false;
  return simplify_power(operands[0], number, value);
}

bool Program::Compiler::is_constant(int value, float number) const {
  double found = 0;
  return constant_value(value, &found) && static_cast<float>(found) == number;
}
bool Program::Compiler::is_step(int value, Opcode op) const {
  const Value& v = values_[static_cast<size_t>(value)];
  return v.kind == Value::step && v.op == op;
}

// Returns the other operand of a step of two with the constant `number`; -1: it is no such step.
int Program::Compiler::beside(int value, Opcode op, float number) const {
  if (!is_step(value, op)) return -1;
  const int* operands = values_[static_cast<size_t>(value)].operands;
  if (is_constant(operands[1], number)) return operands[0];
  return op != Opcode::div && is_constant(operands[0], number) ? operands[1] : -1;
}

// Returns x of 1 + erf(x / sqrt(2)); -1: it is something else. `divides`: a quotient, not a product.
int Program::Compiler::match_gelu_sum(int value, bool* divides) const {
  const int error_function = beside(value, Opcode::add, 1.0f);
  if (error_function < 0 || !is_step(error_function, Opcode::erf)) return -1;
  const int argument = values_[static_cast<size_t>(error_function)].operands[0];
  const int product = beside(argument, Opcode::mul, 0.707106781186547524f), quotient = beside(argument, Opcode::div, 1.41421356237309505f);
  *divides = quotient >= 0;
  return std::max(product, quotient);
}

// Replaces a product of 0.5, x and 1 + erf(x / sqrt(2)) by one step: the activation of transformers.
bool Program::Compiler::match_gelu(const int* operands, int* value) {
  if (!set_->extensions[gelu_value]) return false;
  for (int i = 0; i < 2; ++i) {
    const int a = operands[i], b = operands[1 - i];
    int order = -1, x = -1;
    bool divides = false;
    if (const int half = beside(a, Opcode::mul, 0.5f); half >= 0 && half == match_gelu_sum(b, &divides)) {
      order = 0;  // half of x, times the sum
      x = half;
    } else if (is_constant(a, 0.5f) && is_step(b, Opcode::mul)) {
      const int* factors = values_[static_cast<size_t>(b)].operands;
      for (int k = 0; k < 2 && order < 0; ++k) {
        if (match_gelu_sum(factors[k], &divides) != factors[1 - k]) continue;
        order = 1;
        x = factors[1 - k];
      }
    } else if (const int sum = beside(b, Opcode::mul, 0.5f); sum >= 0 && match_gelu_sum(sum, &divides) == a) {
      order = 2;  // x, times half of the sum
      x = a;
    }
    if (order < 0) continue;
    *value = add_step(set_->extensions[gelu_value + 2 * order + (divides ? 1 : 0)], &x, 1, 0.5);
    return true;
  }
  return false;
}

// Returns t of select(le(t, low), low, select(ge(t, high), high, t)) for constants low <= high, which is min(max(t, low), high) to the bit;
// -1: it is something else.
int Program::Compiler::match_range(const Value& choice, int* low, int* high) const {
  const auto comparison = [&](const Value& v, Opcode op, int* bound) {
    double compared = 0, chosen = 0;
    if (v.kind != Value::step || v.op != Opcode::select || !is_step(v.operands[0], op)) return -1;
    const int* operands = values_[static_cast<size_t>(v.operands[0])].operands;
    if (!constant_value(operands[1], &compared) || !constant_value(v.operands[1], &chosen) || compared != chosen) return -1;
    *bound = v.operands[1];
    return operands[0];
  };
  double least = 0, most = 0;
  const int t = comparison(choice, Opcode::le, low);
  if (t < 0) return -1;
  const Value& inner = values_[static_cast<size_t>(choice.operands[2])];
  if (comparison(inner, Opcode::ge, high) != t || inner.operands[2] != t) return -1;
  return constant_value(*low, &least) && constant_value(*high, &most) && least <= most ? t : -1;
}

// Joins a product and the sum that alone uses it, and the two bounds of a range: one pass over a block in place of two.
void Program::Compiler::join_steps() {
  std::vector<int> uses(values_.size(), 0);
  for (const Value& v : values_)
    for (const int operand : v.operands)
      if (operand >= 0) ++uses[static_cast<size_t>(operand)];
  for (Value& v : values_) {
    int low = -1, high = -1;
    const int t = set_->extensions[clamp_above] ? match_range(v, &low, &high) : -1;
    if (t >= 0) v.replace(set_->extensions[clamp_above], t, low, high);
  }
  struct Pair {
    Opcode inner, outer;
    Extension joined;
  };
  for (const Pair pair : {Pair{Opcode::mul, Opcode::add, multiply_add}, Pair{Opcode::max, Opcode::min, clamp_above},
                          Pair{Opcode::min, Opcode::max, clamp_below}}) {
    if (!set_->extensions[pair.joined]) continue;
    for (Value& v : values_) {
      if (v.kind != Value::step || v.op != pair.outer) continue;
      // Only of the first operand: in the other order another one of two NaNs, or of two zeros, is the result.
      if (!is_step(v.operands[0], pair.inner) || uses[static_cast<size_t>(v.operands[0])] != 1) continue;
      const Value& inner = values_[static_cast<size_t>(v.operands[0])];
      v.replace(set_->extensions[pair.joined], inner.operands[0], inner.operands[1], v.operands[1]);
    }
  }
}

}  // namespace heddle::cpu

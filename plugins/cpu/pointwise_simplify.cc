// Cheaper forms of operations, found while an expression is lowered.
#include <algorithm>
#include <cmath>

#include "pointwise_compiler.h"

namespace heddle::cpu {

// Powers of 1 and 2 and choices that are made give the same result; gelu differs by an ulp or two.
bool Program::Compiler::simplify(Opcode op, const int* operands, int* value) {
  double number = 0;
  if (op == Opcode::select && constant_value(operands[0], &number)) {
    *value = number != 0 ? operands[1] : operands[2];
    return true;
  }
  if (op == Opcode::mul) return match_gelu(operands, value);
  if (op != Opcode::pow || !constant_value(operands[1], &number)) return false;
  if (number == 1) {
    *value = operands[0];
    return true;
  }
  if (number == 2) {
    const int square[] = {operands[0], operands[0]};
    return lower_operation(Opcode::mul, square, 2, value).ok();
  }
  return false;
}

bool Program::Compiler::is_constant(int value, double number) const {
  double found = 0;
  return constant_value(value, &found) && std::fabs(found - number) <= 1e-6 * number;
}
bool Program::Compiler::is_step(int value, Opcode op) const {
  const Value& v = values_[static_cast<size_t>(value)];
  return v.kind == Value::step && v.op == op;
}

// A product of 0.5, x and 1 + erf(x / sqrt(2)) in any order is one step: the activation of transformers.
bool Program::Compiler::match_gelu(const int* operands, int* value) {
  if (!set_->extensions[gelu_value]) return false;
  std::vector<int> factors;
  for (int i = 0; i < 2; ++i) {
    const Value& v = values_[static_cast<size_t>(operands[i])];
    if (is_step(operands[i], Opcode::mul))
      factors.insert(factors.end(), v.operands, v.operands + 2);
    else
      factors.push_back(operands[i]);
  }
  if (factors.size() != 3) return false;
  const auto take = [&](auto&& fits) {
    const auto found = std::find_if(factors.begin(), factors.end(), fits);
    if (found == factors.end()) return -1;
    const int taken = *found;
    factors.erase(found);
    return taken;
  };
  if (take([&](int f) { return is_constant(f, 0.5); }) < 0) return false;
  const int sum = take([&](int f) { return is_step(f, Opcode::add); });
  if (sum < 0) return false;
  const int* terms = values_[static_cast<size_t>(sum)].operands;
  const int erf = is_constant(terms[0], 1) ? terms[1] : (is_constant(terms[1], 1) ? terms[0] : -1);
  if (erf < 0 || !is_step(erf, Opcode::erf)) return false;
  const int argument = values_[static_cast<size_t>(erf)].operands[0], x = factors[0];
  const int* scaled = values_[static_cast<size_t>(argument)].operands;
  const bool fits = (is_step(argument, Opcode::mul) && ((scaled[0] == x && is_constant(scaled[1], std::sqrt(0.5))) ||
                                                        (scaled[1] == x && is_constant(scaled[0], std::sqrt(0.5))))) ||
                    (is_step(argument, Opcode::div) && scaled[0] == x && is_constant(scaled[1], std::sqrt(2.0)));
  if (!fits) return false;
  *value = add_step(set_->extensions[gelu_value], &x, 1, 0.5);
  return true;
}

}  // namespace heddle::cpu

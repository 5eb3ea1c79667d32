// Derivatives of programs by central differences, at points where they can be trusted: the reference for the symbolic ones.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "heddle/expression_evaluate.h"

namespace heddle::testing_derive {

// Returns the values of all instructions.
inline std::vector<double> all_values(const expression::Program& program, const std::vector<double>& inputs) {
  using expression::Opcode;
  std::vector<double> values;
  for (const expression::Instruction& i : program.code) {
    double result = 0;
    const auto of = [&](int32_t k) { return values[static_cast<size_t>(k)]; };
    if (i.op == Opcode::input)
      result = inputs[static_cast<size_t>(i.a)];
    else if (i.op == Opcode::constant)
      result = i.literal;
    else
      expression::detail::with_operation<double>(i.op, [&](auto f) {
        if constexpr (std::is_invocable_v<decltype(f), double>)
          result = f(of(i.a));
        else if constexpr (std::is_invocable_v<decltype(f), double, double>)
          result = f(of(i.a), of(i.b));
        else
          result = f(of(i.a), of(i.b), of(i.c));
      });
    values.push_back(result);
  }
  return values;
}

// Returns which instructions the result depends on, given their values: not the branches of selects that are not taken.
inline std::vector<bool> used(const expression::Program& program, const std::vector<double>& values) {
  using expression::Opcode;
  std::vector<bool> is_used(program.code.size(), false);
  is_used.back() = true;
  for (size_t k = program.code.size(); k-- > 0;) {
    const expression::Instruction& i = program.code[k];
    if (!is_used[k] || i.op == Opcode::input || i.op == Opcode::constant) continue;
    const bool is_select = i.op == Opcode::select, taken = is_select && values[static_cast<size_t>(i.a)] != 0;
    for (const int32_t operand : {i.a, is_select && !taken ? -1 : i.b, taken ? -1 : i.c})
      if (operand >= 0) is_used[static_cast<size_t>(operand)] = true;
  }
  return is_used;
}

// Returns the piece that a piecewise operation is on: equal numbers mean the same piece. 0 for operations of one piece.
inline double piece(const expression::Instruction& i, const std::vector<double>& values, double result) {
  using expression::Opcode;
  if (i.op == Opcode::input || i.op == Opcode::constant) return 0;  // their fields are not operands
  const double a = i.a < 0 ? 0 : values[static_cast<size_t>(i.a)], b = i.b < 0 ? 0 : values[static_cast<size_t>(i.b)];
  switch (i.op) {
    case Opcode::min:
    case Opcode::max:
      return (a > b) - (a < b);
    case Opcode::abs:
      return (a > 0) - (a < 0);
    case Opcode::mod:
    case Opcode::fmod:
      return std::round((a - result) / b);
    case Opcode::select:
      return a != 0;
    case Opcode::lt:
    case Opcode::le:
    case Opcode::gt:
    case Opcode::ge:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::logical_and:
    case Opcode::logical_or:
    case Opcode::logical_xor:
    case Opcode::logical_not:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
    case Opcode::sign:
    case Opcode::isnan:
    case Opcode::isinf:
      return result;
    default:
      return 0;
  }
}

// Returns true exactly where the operation has an infinite derivative, which times the 0 of another one is NaN, or a kink that is not
// crossed.
inline bool is_singular(const expression::Instruction& i, const std::vector<double>& values) {
  using expression::Opcode;
  const auto of = [&](int32_t k) { return values[static_cast<size_t>(k)]; };
  switch (i.op) {
    case Opcode::sqrt:
    case Opcode::pow:
    case Opcode::abs:
      return of(i.a) == 0;
    case Opcode::asin:
    case Opcode::acos:
    case Opcode::acosh:
      return std::fabs(of(i.a)) == 1;
    case Opcode::min:
    case Opcode::max:
      return of(i.a) == of(i.b);
    default:
      return false;
  }
}

// Returns the derivative of the program by input `of`. None where differences are unreliable: beside a kink or a jump, and where values are
// not finite, too large, or lose too many digits for two step widths to agree. Branches that are not taken do not matter.
inline std::optional<double> difference_quotient(const expression::Program& program, const std::vector<double>& at, size_t of) {
  constexpr double most = 1e4, width = 1e-3;
  const std::vector<double> values = all_values(program, at);
  const std::vector<bool> is_used = used(program, values);
  for (size_t k = 0; k < values.size(); ++k)
    if (is_used[k] && (!(std::fabs(values[k]) <= most) || is_singular(program.code[k], values))) return std::nullopt;
  bool smooth = true;
  const auto difference = [&](double step) {
    double sides[2];
    for (const int side : {0, 1}) {
      std::vector<double> moved = at;
      moved[of] += side == 0 ? -step : step;
      const std::vector<double> there = all_values(program, moved);
      for (size_t k = 0; k < values.size(); ++k)
        smooth = smooth && (!is_used[k] || piece(program.code[k], there, there[k]) == piece(program.code[k], values, values[k]));
      sides[side] = there.back();
    }
    return (sides[1] - sides[0]) / (2 * step);
  };
  const double whole = difference(width), half = difference(width / 2), quarter = difference(width / 4);
  const double coarse = (4 * half - whole) / 3, fine = (4 * quarter - half) / 3;
  const double scale = std::fmax(1, std::fabs(fine));
  if (!smooth || !(std::fabs(coarse - fine) <= 1e-7 * scale)) return std::nullopt;
  return fine;
}

}  // namespace heddle::testing_derive

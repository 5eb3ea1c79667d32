// The table of derivatives. Formulas and conventions are those of PyTorch (tools/autograd/derivatives.yaml and FunctionsManual.cpp there),
// whose names are in the comments where a convention had to be chosen.
#include "derive/expression/derivative_rules.h"

#include <cmath>
#include <optional>

namespace heddle {
namespace {

using expression::Opcode;
using Local = InstructionAdjoint;

constexpr double two_by_root_pi = 1.1283791670955126;

int square(Local& l, int value) {
  return l.build.mul(value, value);
}
int one(Local& l) {
  return l.build.constant(1);
}

void multiply(Local& l, int operand, int factor) {
  const int adjoint = l.build.mul(l.dy, factor);
  const std::optional<double> known = l.build.number(factor);
  if (known && std::isfinite(*known))
    l.pass(operand, adjoint);
  else
    l.give(operand, adjoint);
}

// Returns the x of max(x, 0) + log1p(exp(-abs(x))). Its two kinks at 0 cancel, which rules for each of them can't know.
std::optional<int> softplus_operand(Local& l) {
  const auto inside = [&](std::optional<int> value, Opcode op) -> std::optional<int> {
    if (!value || !l.build.is(*value, op)) return std::nullopt;
    return l.build.at(*value).a;
  };
  for (const int first : {0, 1}) {
    const expression::Instruction& greater = l.build.at(l.operands[first]);
    const std::optional<int> x =
        inside(inside(inside(inside(l.operands[1 - first], Opcode::log1p), Opcode::exp), Opcode::neg), Opcode::abs);
    if (!x || greater.op != Opcode::max) continue;
    if ((greater.a == *x && l.build.number(greater.b) == 0.0) || (greater.b == *x && l.build.number(greater.a) == 0.0)) return x;
  }
  return std::nullopt;
}

void add(Local& l) {
  if (const std::optional<int> x = softplus_operand(l)) return l.give_to(*x, l.build.mul(l.dy, l.build.make(Opcode::sigmoid, *x)));
  if (l.wants(0)) l.pass(0, l.dy);
  if (l.wants(1)) l.pass(1, l.dy);
}

void mul(Local& l) {
  if (l.wants(0)) multiply(l, 0, l.b());
  if (l.wants(1)) multiply(l, 1, l.a());
}

void div(Local& l) {
  const int adjoint = l.build.div(l.dy, l.b());
  if (l.wants(0)) l.give(0, adjoint);
  if (l.wants(1)) l.give(1, l.build.neg(l.build.mul(adjoint, l.y())));
}

// Named for max; min gives them the other way round. Comparisons are written so that a NaN takes the gradient where PyTorch gives it one:
// maximum and threshold_backward mask the operand that is not chosen, clamp_backward the range outside.
void extremum(Local& l, Opcode less, Opcode less_or_equal, Opcode greater) {
  const int zero = l.build.constant(0);
  switch (l.tie()) {
    case Tie::halves: {
      const int half = l.build.select(l.build.make(Opcode::eq, l.a(), l.b()), l.build.mul(l.dy, l.build.constant(0.5)), l.dy);
      if (l.wants(0)) l.give_if(l.build.make(less, l.a(), l.b()), false, 0, half);
      if (l.wants(1)) l.give_if(l.build.make(greater, l.a(), l.b()), false, 1, half);
      return;
    }
    case Tie::a:
    case Tie::b: {
      const int x = l.tie() == Tie::a ? 0 : 1, bound = 1 - x;
      if (l.wants(x)) l.give_if(l.build.make(greater, l.operands[x], l.operands[bound]), true, x, l.dy);
      if (l.wants(bound)) l.give_if(l.build.make(less, l.operands[x], l.operands[bound]), true, bound, l.dy);
      return;
    }
    case Tie::neither:
      for (const int x : {0, 1})
        if (l.wants(x)) l.give_if(l.build.make(less_or_equal, l.y_or(l.operands[x]), zero), false, x, l.dy);
  }
}
void max(Local& l) {
  extremum(l, Opcode::lt, Opcode::le, Opcode::gt);
}
void min(Local& l) {
  extremum(l, Opcode::gt, Opcode::ge, Opcode::lt);
}

void pow_of_base(Local& l) {
  const std::optional<double> exponent = l.build.number(l.b());
  if (exponent == 0.0) return;
  const int lower = l.build.make(Opcode::pow, l.a(), l.build.sub(l.b(), one(l)));
  if (exponent)
    multiply(l, 0, l.build.mul(lower, l.b()));
  else
    l.give_if(l.build.make(Opcode::eq, l.b(), l.build.constant(0)), false, 0, l.build.mul(l.dy, l.build.mul(l.b(), lower)));
}
void pow_of_exponent(Local& l) {
  const int adjoint = l.build.mul(l.dy, l.build.mul(l.y(), l.build.make(Opcode::log, l.a())));
  if (l.build.number(l.a()).value_or(0) > 0) return l.give(1, adjoint);
  const int zero = l.build.constant(0);
  const int flat = l.build.make(Opcode::logical_and, l.build.make(Opcode::eq, l.a(), zero), l.build.make(Opcode::ge, l.b(), zero));
  l.give_if(flat, false, 1, adjoint);
}

// The quotient is a whole number, which rounding may have spoiled.
void remainder(Local& l) {
  if (l.wants(0)) l.pass(0, l.dy);
  if (!l.wants(1)) return;
  const int quotient = l.build.make(Opcode::round, l.build.div(l.build.sub(l.a(), l.y()), l.b()));
  l.give(1, l.build.neg(l.build.mul(l.dy, quotient)));
}

// f' of the only operand.
template <class F>
void chain(Local& l, F f) {
  l.give(0, l.build.mul(l.dy, f()));
}
// The adjoint divided by `divisor`.
void divide(Local& l, int divisor) {
  l.give(0, l.build.div(l.dy, divisor));
}
int rsqrt(Local& l, int value) {
  return l.build.make(Opcode::rsqrt, value);
}

using R = DerivativeRule;

constexpr DerivativeRule rules[] = {
    {Opcode::input, R::leaf, nullptr},
    {Opcode::constant, R::leaf, nullptr},
    {Opcode::add, R::rule, add},  // log(1 + exp(x)), as a sum whose kinks cancel: sigmoid(x), 1/2 at 0
    {Opcode::sub, R::rule,
     [](Local& l) {
       if (l.wants(0)) l.pass(0, l.dy);
       if (l.wants(1)) l.pass(1, l.build.neg(l.dy));
     }},
    {Opcode::mul, R::rule, mul},
    {Opcode::div, R::rule, div},  // at 0: inf or NaN, like the division
    // Equal operands: half each (maximum, minimum). A constant bound, and the bounds of min(max(x, low), high), pass the gradient on to x,
    // and none to themselves (clamp); max(x, 0) by itself passes none (relu).
    {Opcode::min, R::rule, min},
    {Opcode::max, R::rule, max},
    // By the base: 0 where the exponent is 0, even if the base is 0. By the exponent: 0 where the base is 0 and the exponent is not
    // negative, NaN where the base is negative (pow_backward_self, pow_backward_exponent).
    {Opcode::pow, R::rule,
     [](Local& l) {
       if (l.wants(0)) pow_of_base(l);
       if (l.wants(1)) pow_of_exponent(l);
     }},
    // By the divisor: minus the whole quotient, as if it did not jump (remainder, fmod).
    {Opcode::mod, R::rule, remainder},
    {Opcode::fmod, R::rule, remainder},
    {Opcode::lt, R::zero, nullptr},
    {Opcode::le, R::zero, nullptr},
    {Opcode::gt, R::zero, nullptr},
    {Opcode::ge, R::zero, nullptr},
    {Opcode::eq, R::zero, nullptr},
    {Opcode::ne, R::zero, nullptr},
    {Opcode::logical_and, R::zero, nullptr},
    {Opcode::logical_or, R::zero, nullptr},
    {Opcode::logical_xor, R::zero, nullptr},
    {Opcode::bit_and, R::undefined, nullptr},
    {Opcode::bit_or, R::undefined, nullptr},
    {Opcode::bit_xor, R::undefined, nullptr},
    {Opcode::shift_left, R::undefined, nullptr},
    {Opcode::shift_right, R::undefined, nullptr},
    {Opcode::neg, R::rule, [](Local& l) { l.pass(0, l.build.neg(l.dy)); }},
    {Opcode::abs, R::rule, [](Local& l) { chain(l, [&] { return l.build.make(Opcode::sign, l.a()); }); }},  // 0 at 0
    {Opcode::exp, R::rule, [](Local& l) { chain(l, [&] { return l.y(); }); }},
    {Opcode::log, R::rule, [](Local& l) { divide(l, l.a()); }},
    {Opcode::sqrt, R::rule, [](Local& l) { divide(l, l.build.mul(l.y(), l.build.constant(2))); }},  // inf at 0
    {Opcode::rsqrt, R::rule,
     [](Local& l) { chain(l, [&] { return l.build.mul(l.build.mul(square(l, l.y()), l.y()), l.build.constant(-0.5)); }); }},
    {Opcode::reciprocal, R::rule, [](Local& l) { chain(l, [&] { return l.build.neg(square(l, l.y())); }); }},
    {Opcode::tanh, R::rule, [](Local& l) { chain(l, [&] { return l.build.sub(one(l), square(l, l.y())); }); }},
    {Opcode::erf, R::rule,
     [](Local& l) {
       chain(l, [&] { return l.build.mul(l.build.make(Opcode::exp, l.build.neg(square(l, l.a()))), l.build.constant(two_by_root_pi)); });
     }},
    {Opcode::sigmoid, R::rule, [](Local& l) { chain(l, [&] { return l.build.mul(l.y(), l.build.sub(one(l), l.y())); }); }},
    {Opcode::floor, R::zero, nullptr},
    {Opcode::ceil, R::zero, nullptr},
    {Opcode::round, R::zero, nullptr},
    {Opcode::sign, R::zero, nullptr},
    {Opcode::logical_not, R::zero, nullptr},
    {Opcode::bit_not, R::undefined, nullptr},
    {Opcode::sin, R::rule, [](Local& l) { chain(l, [&] { return l.build.make(Opcode::cos, l.a()); }); }},
    {Opcode::cos, R::rule, [](Local& l) { chain(l, [&] { return l.build.neg(l.build.make(Opcode::sin, l.a())); }); }},
    {Opcode::tan, R::rule, [](Local& l) { chain(l, [&] { return l.build.add(square(l, l.y()), one(l)); }); }},
    {Opcode::asin, R::rule, [](Local& l) { chain(l, [&] { return rsqrt(l, l.build.sub(one(l), square(l, l.a()))); }); }},
    {Opcode::acos, R::rule, [](Local& l) { chain(l, [&] { return l.build.neg(rsqrt(l, l.build.sub(one(l), square(l, l.a())))); }); }},
    {Opcode::atan, R::rule, [](Local& l) { divide(l, l.build.add(square(l, l.a()), one(l))); }},
    {Opcode::sinh, R::rule, [](Local& l) { chain(l, [&] { return l.build.make(Opcode::cosh, l.a()); }); }},
    {Opcode::cosh, R::rule, [](Local& l) { chain(l, [&] { return l.build.make(Opcode::sinh, l.a()); }); }},
    {Opcode::asinh, R::rule, [](Local& l) { chain(l, [&] { return rsqrt(l, l.build.add(square(l, l.a()), one(l))); }); }},
    {Opcode::acosh, R::rule, [](Local& l) { chain(l, [&] { return rsqrt(l, l.build.sub(square(l, l.a()), one(l))); }); }},
    {Opcode::atanh, R::rule, [](Local& l) { divide(l, l.build.sub(one(l), square(l, l.a()))); }},
    {Opcode::log1p, R::rule, [](Local& l) { divide(l, l.build.add(l.a(), one(l))); }},
    {Opcode::expm1, R::rule, [](Local& l) { chain(l, [&] { return l.build.add(l.y(), one(l)); }); }},
    {Opcode::isnan, R::zero, nullptr},
    {Opcode::isinf, R::zero, nullptr},
    // To the branch that is taken; none to the condition.
    {Opcode::select, R::rule,
     [](Local& l) {
       if (l.wants(1)) l.give_if(l.a(), true, 1, l.dy);
       if (l.wants(2)) l.give_if(l.a(), false, 2, l.dy);
     }},
};

}  // namespace

const DerivativeRule* derivative_rule(Opcode op) {
  for (const DerivativeRule& rule : rules)
    if (rule.op == op) return &rule;
  return nullptr;
}

}  // namespace heddle

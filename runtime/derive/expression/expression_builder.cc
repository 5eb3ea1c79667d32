#include "derive/expression/expression_builder.h"

#include <bit>
#include <cmath>
#include <utility>

#include "heddle/expression_evaluate.h"

namespace heddle {

using expression::Instruction;
using expression::Opcode;
using expression::Program;

ExpressionBuilder::ExpressionBuilder(std::vector<std::string> inputs) {
  program_.inputs = std::move(inputs);
}

size_t ExpressionBuilder::KeyHash::operator()(const Key& key) const {
  uint64_t hash = key.literal_bits;
  for (const int part : {static_cast<int>(key.op), key.a, key.b, key.c})
    hash = (hash ^ static_cast<uint64_t>(static_cast<uint32_t>(part))) * 0x9e3779b97f4a7c15u;
  return static_cast<size_t>(hash ^ (hash >> 32));
}

int ExpressionBuilder::push(Instruction i) {
  Key key{i.op, i.a, i.b, i.c, std::bit_cast<uint64_t>(i.literal)};
  if ((i.op == Opcode::add || i.op == Opcode::mul) && key.a > key.b) std::swap(key.a, key.b);
  const auto [place, is_new] = known_.try_emplace(key, static_cast<int>(program_.code.size()));
  if (is_new) program_.code.push_back(i);
  return place->second;
}

int ExpressionBuilder::input(size_t index) {
  return push({Opcode::input, static_cast<int32_t>(index), -1, -1, 0});
}
int ExpressionBuilder::constant(double number) {
  return push({Opcode::constant, -1, -1, -1, number});
}
int ExpressionBuilder::copy(Opcode op, int a, int b, int c) {
  if (op == Opcode::neg && is(a, Opcode::constant)) return constant(-at(a).literal);
  if (op == Opcode::select && is(a, Opcode::constant)) return at(a).literal != 0 ? b : c;
  return push({op, a, b, c, 0});
}

std::optional<double> ExpressionBuilder::number(int value) const {
  if (!is(value, Opcode::constant)) return std::nullopt;
  return at(value).literal;
}

std::optional<ExpressionBuilder::Scaled> ExpressionBuilder::scaled(int value) const {
  const Instruction& i = at(value);
  if (i.op != Opcode::mul) return std::nullopt;
  if (const std::optional<double> factor = number(i.b)) return Scaled{i.a, *factor};
  if (const std::optional<double> factor = number(i.a)) return Scaled{i.b, *factor};
  return std::nullopt;
}

std::optional<int> ExpressionBuilder::folded(Opcode op, int a, int b, int c) {
  Program one;
  for (const int operand : {a, b, c}) {
    if (operand < 0) continue;
    const std::optional<double> known = number(operand);
    if (!known) return std::nullopt;
    one.code.push_back({Opcode::constant, -1, -1, -1, *known});
  }
  one.code.push_back({op, 0, b < 0 ? -1 : 1, c < 0 ? -1 : 2, 0});
  const std::optional<double> result = expression::evaluate<double>(one, nullptr);
  if (!result) return std::nullopt;
  return constant(*result);
}

int ExpressionBuilder::make(Opcode op, int a, int b, int c) {
  if (const std::optional<int> known = folded(op, a, b, c)) return *known;
  switch (op) {
    case Opcode::add:
      return make_sum(a, b);
    case Opcode::sub:
      return make_difference(a, b);
    case Opcode::mul:
      return make_product(a, b);
    case Opcode::div:
      return make_quotient(a, b);
    case Opcode::neg:
      return make_negative(a);
    case Opcode::pow:
      return make_power(a, b);
    case Opcode::select:
      return make_choice(a, b, c);
    default:
      return push({op, a, b, c, 0});
  }
}

int ExpressionBuilder::make_sum(int a, int b) {
  if (number(a) == 0.0) return b;
  if (number(b) == 0.0) return a;
  if (is(b, Opcode::neg)) return make(Opcode::sub, a, at(b).a);
  if (is(a, Opcode::neg)) return make(Opcode::sub, b, at(a).a);
  return push({Opcode::add, a, b, -1, 0});
}

int ExpressionBuilder::make_difference(int a, int b) {
  if (number(b) == 0.0) return a;
  if (number(a) == 0.0) return make(Opcode::neg, b);
  if (is(b, Opcode::neg)) return make(Opcode::add, a, at(b).a);
  return push({Opcode::sub, a, b, -1, 0});
}

int ExpressionBuilder::make_product(int a, int b) {
  if (is(a, Opcode::constant)) std::swap(a, b);
  if (const std::optional<double> factor = number(b)) {
    if (*factor == 1) return a;
    if (*factor == -1) return make(Opcode::neg, a);
    if (is(a, Opcode::neg)) return make(Opcode::mul, at(a).a, constant(-*factor));
    if (const std::optional<Scaled> inner = scaled(a)) {
      const double both = inner->factor * *factor;
      if (std::isnormal(both) && std::isnormal(inner->factor) && std::isnormal(*factor))
        return make(Opcode::mul, inner->value, constant(both));
    }
    return push({Opcode::mul, a, b, -1, 0});
  }
  if (is(a, Opcode::neg) && is(b, Opcode::neg)) return make(Opcode::mul, at(a).a, at(b).a);
  // The sign is moved outward, where a sum may take it in.
  if (is(a, Opcode::neg)) return make(Opcode::neg, make(Opcode::mul, at(a).a, b));
  if (is(b, Opcode::neg)) return make(Opcode::neg, make(Opcode::mul, a, at(b).a));
  return push({Opcode::mul, a, b, -1, 0});
}

int ExpressionBuilder::make_quotient(int a, int b) {
  if (number(b) == 1.0) return a;
  if (number(b) == -1.0) return make(Opcode::neg, a);
  if (is(a, Opcode::neg)) {
    if (const std::optional<double> divisor = number(b)) return make(Opcode::div, at(a).a, constant(-*divisor));
    return make(Opcode::neg, make(Opcode::div, at(a).a, b));
  }
  return push({Opcode::div, a, b, -1, 0});
}

int ExpressionBuilder::make_negative(int a) {
  const Instruction of = at(a);
  if (of.op == Opcode::neg) return of.a;
  if (of.op == Opcode::sub) return make(Opcode::sub, of.b, of.a);
  if (const std::optional<Scaled> product = scaled(a)) return make(Opcode::mul, product->value, constant(-product->factor));
  return push({Opcode::neg, a, -1, -1, 0});
}

int ExpressionBuilder::make_power(int a, int b) {
  if (number(b) == 0.0) return constant(1);
  if (number(b) == 1.0) return a;
  return push({Opcode::pow, a, b, -1, 0});
}

int ExpressionBuilder::make_choice(int condition, int a, int b) {
  if (const std::optional<double> known = number(condition)) return *known != 0 ? a : b;
  if (is(condition, Opcode::logical_not)) return make_choice(at(condition).a, b, a);
  // A choice within the same choice is made already.
  if (is(a, Opcode::select) && at(a).a == condition) return make_choice(condition, at(a).b, b);
  if (is(b, Opcode::select) && at(b).a == condition) return make_choice(condition, a, at(b).c);
  if (a == b) return a;
  return push({Opcode::select, condition, a, b, 0});
}

Program ExpressionBuilder::program_of(int value) const {
  Program program = program_;
  program.code.resize(static_cast<size_t>(value) + 1);  // operands precede the instructions that read them
  expression::prune(program);
  return program;
}

}  // namespace heddle

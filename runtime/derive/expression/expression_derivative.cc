#include "derive/expression/expression_derivative.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "derive/expression/derivative_rules.h"
#include "derive/expression/expression_builder.h"
#include "derive/expression/guarded_adjoint.h"
#include "heddle/expression_evaluate.h"

namespace heddle {
namespace {

using expression::Instruction;
using expression::Opcode;
using expression::Program;

std::vector<std::string> derivative_inputs(const Program& program) {
  std::vector<std::string> inputs = program.inputs;
  inputs.emplace_back("dy");
  inputs.emplace_back("y");
  return inputs;
}

// Holds the program, followed by the instructions that its derivatives need, in one builder.
class ReverseSweep {
 public:
  ReverseSweep(const Program& program, std::span<const size_t> wanted, ResultOfForward result)
      : build_(derivative_inputs(program)), adjoints_(build_), dy_place_(program.inputs.size()) {
    for (const size_t input : wanted) {
      const int value = build_.input(input);
      reserve(value);
      active_[static_cast<size_t>(value)] = true;
    }
    std::vector<int> values;
    for (const Instruction& i : program.code) values.push_back(copy(i, values));
    result_ = values.back();
    given_result_ = result == ResultOfForward::kept ? build_.input(dy_place_ + 1) : result_;
    reserve(std::max(result_, given_result_));
    find_ties();
  }

  void run() {
    if (!active(result_)) return;
    terms_[static_cast<size_t>(result_)].push_back({build_.input(dy_place_), unconditional, unconditional});
    for (int value = result_; value >= 0; --value) {
      if (!active(value) || terms_[static_cast<size_t>(value)].empty()) continue;
      const Adjoint adjoint = adjoints_.sum(std::move(terms_[static_cast<size_t>(value)]));
      terms_[static_cast<size_t>(value)] = {adjoint};
      const Instruction instruction = build_.at(value);
      const DerivativeRule* const rule = derivative_rule(instruction.op);
      if (rule->kind != DerivativeRule::rule) continue;
      One one(*this, value, instruction, adjoint);
      rule->backward(one);
    }
  }

  Program derivative(size_t input) {
    const std::vector<Adjoint>& terms = terms_[static_cast<size_t>(build_.input(input))];
    return build_.program_of(terms.empty() ? build_.constant(0) : adjoints_.value_of(terms.front()));
  }

 private:
  class One final : public InstructionAdjoint {
   public:
    One(ReverseSweep& sweep, int value, const Instruction& i, const Adjoint& adjoint)
        : InstructionAdjoint(sweep.build_, i, adjoint.value), sweep_(sweep), value_(value), adjoint_(adjoint) {}

    int y() override { return value_ == sweep_.result_ ? sweep_.given_result_ : value_; }
    int y_or(int other) override {
      return value_ == sweep_.result_ && sweep_.given_result_ != sweep_.result_ ? sweep_.given_result_ : other;
    }
    bool wants(int operand) const override { return sweep_.active(operands[operand]); }
    void pass(int operand, int adjoint) override { add(operand, {adjoint, adjoint_.guard, adjoint_.pending}); }
    void give(int operand, int adjoint) override { give_to(operands[operand], adjoint); }
    void give_if(int condition, bool holds, int operand, int adjoint) override {
      const std::optional<Guard> guard = sweep_.adjoints_.within(adjoint_.guard, condition, holds);
      if (!guard) return;
      add(operand, {adjoint, *guard, *guard == adjoint_.guard ? adjoint_.guard : *guard});
    }
    void give_to(int value, int adjoint) override {
      sweep_.terms_[static_cast<size_t>(value)].push_back({adjoint, adjoint_.guard, adjoint_.guard});
    }
    Tie tie() const override { return sweep_.ties_[static_cast<size_t>(value_)]; }

   private:
    void add(int operand, const Adjoint& adjoint) { sweep_.terms_[static_cast<size_t>(operands[operand])].push_back(adjoint); }

    ReverseSweep& sweep_;
    int value_;
    Adjoint adjoint_;
  };

  bool active(int value) const { return active_[static_cast<size_t>(value)]; }
  void reserve(int value) {
    const size_t count = std::max(active_.size(), static_cast<size_t>(value) + 1);
    active_.resize(count, false);
    terms_.resize(count);
  }

  int copy(const Instruction& i, const std::vector<int>& values) {
    const auto of = [&](int32_t operand) { return operand < 0 ? -1 : values[static_cast<size_t>(operand)]; };
    int value = -1;
    if (i.op == Opcode::input)
      value = build_.input(static_cast<size_t>(i.a));
    else if (i.op == Opcode::constant)
      value = build_.constant(i.literal);
    else
      value = build_.copy(i.op, of(i.a), of(i.b), of(i.c));
    reserve(value);
    const Instruction made = build_.at(value);
    if (derivative_rule(made.op)->kind != DerivativeRule::rule) return value;
    // The condition of a select has no derivative.
    const bool is_select = made.op == Opcode::select;
    for (const int operand : {is_select ? -1 : made.a, made.b, made.c})
      if (operand >= 0 && active(operand)) active_[static_cast<size_t>(value)] = true;
    return value;
  }

  Tie tie_with_constant(int value) const {
    const Instruction& i = build_.at(value);
    const std::optional<double> a = build_.number(i.a), b = build_.number(i.b);
    if (!a && !b) return Tie::halves;
    if (i.op == Opcode::max && (a == 0.0 || b == 0.0)) return Tie::neither;
    return a ? Tie::b : Tie::a;
  }

  void find_ties() {
    const auto is_extremum = [&](int value) { return build_.is(value, Opcode::min) || build_.is(value, Opcode::max); };
    std::vector<int> readers(active_.size(), 0);
    for (int value = 0; value <= result_; ++value) {
      const Instruction& i = build_.at(value);
      for (int k = 0; k < expression::info(i.op).arity; ++k) ++readers[static_cast<size_t>(k == 0 ? i.a : k == 1 ? i.b : i.c)];
    }
    ties_.assign(active_.size(), Tie::halves);
    for (int value = 0; value <= result_; ++value)
      if (is_extremum(value)) ties_[static_cast<size_t>(value)] = tie_with_constant(value);
    for (int outer = 0; outer <= result_; ++outer) {
      if (!is_extremum(outer)) continue;
      const Instruction& i = build_.at(outer);
      const Opcode opposite = i.op == Opcode::min ? Opcode::max : Opcode::min;
      if (build_.is(i.a, opposite) == build_.is(i.b, opposite)) continue;
      const bool is_first = build_.is(i.a, opposite);
      const int inner = is_first ? i.a : i.b;
      if (readers[static_cast<size_t>(inner)] > 1) continue;
      ties_[static_cast<size_t>(outer)] = is_first ? Tie::a : Tie::b;
      ties_[static_cast<size_t>(inner)] = build_.number(build_.at(inner).a) ? Tie::b : Tie::a;
    }
  }

  ExpressionBuilder build_;
  GuardedAdjoints adjoints_;
  const size_t dy_place_;
  int result_ = -1;
  int given_result_ = -1;                    // the value that rules read as the result
  std::vector<bool> active_;                 // by value of the program: has a derivative by a wanted input
  std::vector<std::vector<Adjoint>> terms_;  // the terms that its readers gave; their sum once it was visited
  std::vector<Tie> ties_;
};

Status check(const Program& program, std::span<const size_t> inputs) {
  const std::string refusal = expression::refusal<double>(program);
  if (!refusal.empty()) return {Code::unsupported, fmt::format("the expression has no derivative: {}", refusal)};
  for (const size_t input : inputs)
    if (input >= program.inputs.size())
      return {Code::invalid_argument,
              fmt::format("the expression has {} inputs, so that it has no derivative by input {}", program.inputs.size(), input)};
  for (const std::string& name : program.inputs)
    if (name == "dy" || name == "y")
      return {Code::invalid_argument,
              fmt::format("the expression has an input {}, which its derivative calls something else", quoted(name))};
  return {};
}

std::vector<Program> derivatives(const Program& program, std::span<const size_t> inputs, ResultOfForward result) {
  ReverseSweep sweep(program, inputs, result);
  sweep.run();
  std::vector<Program> all;
  for (const size_t input : inputs) all.push_back(sweep.derivative(input));
  return all;
}

// Whether a derivative reads none of the first `count` inputs: then the operator's inputs need not be kept for it.
bool reads_none(const Program& derivative, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (reads_input(derivative, i)) return false;
  return true;
}

// Whether a factor of dy may be infinite or a NaN: one that is no constant.
bool multiplies_by_values(const Program& derivative, size_t dy) {
  std::vector<bool> of_dy;  // by instruction
  const auto has_dy = [&](int value) { return value >= 0 && of_dy[static_cast<size_t>(value)]; };
  const auto is_constant = [&](int value) { return derivative.code[static_cast<size_t>(value)].op == Opcode::constant; };
  for (const Instruction& i : derivative.code) {
    const bool is_input = i.op == Opcode::input;
    of_dy.push_back(is_input ? static_cast<size_t>(i.a) == dy : has_dy(i.a) || has_dy(i.b) || has_dy(i.c));
    if (is_input || !of_dy.back()) continue;
    const bool passes = i.op == Opcode::neg || i.op == Opcode::add || i.op == Opcode::sub || (i.op == Opcode::select && !has_dy(i.a));
    const bool scales = (i.op == Opcode::mul && (is_constant(i.a) || is_constant(i.b))) || (i.op == Opcode::div && is_constant(i.b));
    if (!passes && !scales) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<Program>> expression_derivatives(const Program& program, std::span<const size_t> inputs, ResultOfForward result) {
  HEDDLE_CHECK(check(program, inputs));
  Program needed = program;
  expression::prune(needed);
  std::vector<Program> all = derivatives(needed, inputs, ResultOfForward::gone);
  if (result == ResultOfForward::gone) return all;
  std::vector<Program> of_result = derivatives(needed, inputs, ResultOfForward::kept);
  for (size_t k = 0; k < all.size(); ++k) {
    const auto with = expression::operations(of_result[k]), without = expression::operations(all[k]);
    if (with < without || (with == without && reads_none(of_result[k], program.inputs.size()))) all[k] = std::move(of_result[k]);
  }
  return all;
}

Result<Program> expression_derivative(const Program& program, size_t input, ResultOfForward result) {
  HEDDLE_TRY(std::vector<Program> one, expression_derivatives(program, {&input, 1}, result));
  return std::move(one.front());
}

bool is_zero(const Program& derivative) {
  const Instruction& result = derivative.code.back();
  return result.op == Opcode::constant && result.literal == 0;
}

bool is_chosen(const Program& program, const Program& derivative) {
  const auto is_select = [](const Instruction& i) { return i.op == Opcode::select; };
  const auto is_zero_at = [&](int value) {
    const Instruction& i = derivative.code[static_cast<size_t>(value)];
    return i.op == Opcode::constant && i.literal == 0;
  };
  const Instruction& result = derivative.code.back();
  return std::any_of(program.code.begin(), program.code.end(), is_select) && is_select(result) &&
         (is_zero_at(result.b) || is_zero_at(result.c));
}

Program where_chosen(const Program& derivative, size_t dy) {
  if (!multiplies_by_values(derivative, dy)) return derivative;
  Program program = derivative;
  const int whole = static_cast<int>(program.code.size()) - 1;
  const int zero = program.push({Opcode::constant, -1, -1, -1, 0});
  const int arrived = program.push({Opcode::input, static_cast<int32_t>(dy), -1, -1, 0});
  const int none = program.push({Opcode::eq, arrived, zero, -1, 0});
  const int is_nan = program.push({Opcode::isnan, whole, -1, -1, 0});
  program.push({Opcode::select, program.push({Opcode::logical_and, none, is_nan, -1, 0}), zero, whole, 0});
  return program;
}

bool reads_input(const Program& program, size_t input) {
  return std::any_of(program.code.begin(), program.code.end(),
                     [&](const Instruction& i) { return i.op == Opcode::input && static_cast<size_t>(i.a) == input; });
}

}  // namespace heddle

// Seeded random programs over floats, with all operations that floats have.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "heddle/expression_evaluate.h"

namespace heddle::testing_derive {

// Returns a number in [0, 1).
inline double uniform(uint64_t& state) {
  return static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}
inline size_t below(uint64_t& state, size_t count) {
  return static_cast<size_t>(next_random(state) % count);
}

inline bool is_of_floats(expression::Opcode op) {
  return expression::detail::with_operation<double>(op, [](auto) {});
}

class RandomPrograms {
 public:
  explicit RandomPrograms(uint64_t& state) : state_(state) {
    for (int op = 2; op < expression::opcode_count; ++op)
      if (is_of_floats(static_cast<expression::Opcode>(op))) all_.push_back(static_cast<expression::Opcode>(op));
  }

  // Returns a program with that many instructions. Operands are earlier ones, recent ones more often than others; not all of them are
  // needed.
  expression::Program any(size_t inputs, size_t instructions) {
    expression::Program program = with_inputs(inputs);
    while (program.code.size() < instructions)
      push(program, [&] {
        const size_t count = program.code.size();
        return below(state_, 2) == 0 ? count - 1 - below(state_, std::min<size_t>(count, 4)) : below(state_, count);
      });
    return program;
  }

  // Returns a program with at most that many instructions, all of which the result needs.
  expression::Program whole(size_t inputs, size_t instructions) {
    expression::Program program = with_inputs(inputs);
    std::vector<size_t> unread;
    for (size_t i = 0; i < inputs; ++i) unread.push_back(i);
    const auto take_unread = [&] {
      const size_t place = below(state_, unread.size()), taken = unread[place];
      unread.erase(unread.begin() + static_cast<std::ptrdiff_t>(place));
      return taken;
    };
    while (program.code.size() + unread.size() < instructions) {
      push(program, [&] { return unread.empty() || below(state_, 3) == 0 ? below(state_, program.code.size()) : take_unread(); });
      unread.push_back(program.code.size() - 1);
    }
    while (unread.size() > 1) {
      const auto a = static_cast<int32_t>(take_unread()), b = static_cast<int32_t>(take_unread());
      program.code.push_back({below(state_, 2) == 0 ? expression::Opcode::add : expression::Opcode::mul, a, b, -1, 0});
      unread.push_back(program.code.size() - 1);
    }
    return program;
  }

 private:
  static expression::Program with_inputs(size_t inputs) {
    expression::Program program;
    for (size_t i = 0; i < inputs; ++i) program.input("x" + std::to_string(i));
    return program;
  }

  template <class Operand>
  void push(expression::Program& program, Operand operand) {
    using expression::Opcode;
    constexpr double constants[] = {0, 1, 2, 0.5, -1, 3, 0.25, -0.75};
    // The operations that most expressions consist of.
    constexpr Opcode usual[] = {Opcode::add, Opcode::sub, Opcode::mul, Opcode::div,  Opcode::max,     Opcode::min,
                                Opcode::neg, Opcode::exp, Opcode::abs, Opcode::tanh, Opcode::sigmoid, Opcode::select};
    if (below(state_, 8) == 0) {
      program.code.push_back({Opcode::constant, -1, -1, -1, constants[below(state_, std::size(constants))]});
      return;
    }
    const Opcode op = below(state_, 2) == 0 ? usual[below(state_, std::size(usual))] : all_[below(state_, all_.size())];
    expression::Instruction i{op, -1, -1, -1, 0};
    int32_t* const operands[] = {&i.a, &i.b, &i.c};
    for (int k = 0; k < expression::info(op).arity; ++k) *operands[k] = static_cast<int32_t>(operand());
    program.code.push_back(i);
  }

  uint64_t& state_;
  std::vector<expression::Opcode> all_;
};

}  // namespace heddle::testing_derive

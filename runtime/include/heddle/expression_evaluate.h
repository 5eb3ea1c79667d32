// How a kernel in a plugin evaluates pointwise expressions (expression.h), for example those of the epilogue (the pointwise operators that
// the host fuses into the kernel):
//
//   Program program;                                                           // accepts_epilogue, create
//   program.inputs = {"acc", "operand"};
//   if (!parse(context.epilogue_op(0).expression, {}, program, error)) return invalid(error);
//   epilogue_op_ = Evaluator<float>::of(program, error);                       // std::optional, a member of the kernel
//   if (!epilogue_op_) return invalid(error);
//   context.set_scratch(0, epilogue_op_->scratch_bytes());                     // prepare
//   epilogue_op_->run(columns, {{row, 1}, {bias, 1}}, row, thread_scratch<float>(context));  // run
//
// T is one of the types that the runtime computes in: float, double, int32_t, int64_t, uint64_t. Each operation is rounded to T. The bits
// are the same as those of the runtime's own kernels, except for functions of libm (exp, log, pow, sin, ...), which may differ in the last
// places:
// - min and max give NaN if either operand is NaN, and the second operand if both are equal; comparisons and logical operations give 0 or
//   1, also for NaN;
// - round rounds to nearest, halves to even; mod has the sign of the divisor, fmod that of the dividend; pow(x, 1) is x, pow(x, 2) is
//   x * x;
// - integers wrap and never trap: x / 0 and x mod 0 are 0, the smallest number divided by -1 is the smallest number, a negative power of a
//   number other than 1 and -1 is 0, and shifts by a negative number, or by the width or more, give 0. Integers have no exp, log, sqrt and
//   the like, and no constants with a fraction; floats have no bit operations.
// Do not compile with -ffast-math, which breaks NaN and infinities. Header-only, C++17.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "heddle/expression.h"
#include "heddle/expression_operations.h"

namespace heddle {
namespace expression {

// Returns why the program can not be evaluated in T ("bit_and is not defined for floats"); empty if it can.
template <class T>
std::string refusal(const Program& program) {
  const char* const kind = std::is_floating_point<T>::value ? "floats" : "integers";
  if (program.code.empty()) return "a program without instructions has no result";
  for (size_t k = 0; k < program.code.size(); ++k) {
    const Instruction& i = program.code[k];
    if (i.op == Opcode::constant) {
      if (!std::is_floating_point<T>::value && !(i.literal == std::trunc(i.literal)))
        return "constant " + (std::isnan(i.literal) ? "nan" : detail::print_number(i.literal)) + " is not an integer, but the inputs are";
      continue;
    }
    const size_t most = i.op == Opcode::input ? program.inputs.size() : k;
    const int32_t operands[] = {i.a, i.b, i.c};
    for (int n = 0; n < std::max(1, info(i.op).arity); ++n)
      if (operands[n] < 0 || static_cast<size_t>(operands[n]) >= most)
        return "instruction " + std::to_string(k) + " reads what does not stand before it";
    if (i.op != Opcode::input && !detail::with_operation<T>(i.op, [](auto) {}))
      return std::string(info(i.op).name) + " is not defined for " + kind;
  }
  return {};
}

// Evaluates the program on one element of each input, in the order of program.inputs. Returns no value if refusal() gives a reason.
// Allocates memory: use it for single elements, and an Evaluator for many.
template <class T>
std::optional<T> evaluate(const Program& program, const T* inputs) {
  if (!refusal<T>(program).empty()) return std::nullopt;
  std::vector<T> values;
  values.reserve(program.code.size());
  for (const Instruction& i : program.code) {
    const auto of = [&](int32_t k) { return values[static_cast<size_t>(k)]; };
    T result = 0;
    if (i.op == Opcode::input)
      result = inputs[i.a];
    else if (i.op == Opcode::constant)
      result = detail::converted<T>(i.literal);
    else
      detail::with_operation<T>(i.op, [&](auto f) {
        if constexpr (std::is_invocable<decltype(f), T>::value)
          result = f(of(i.a));
        else if constexpr (std::is_invocable<decltype(f), T, T>::value)
          result = f(of(i.a), of(i.b));
        else
          result = f(of(i.a), of(i.b), of(i.c));
      });
    values.push_back(result);
  }
  return values.back();
}

// A program that is prepared for the evaluation of many elements. Make the Evaluator where memory may be allocated (create, prepare); run()
// allocates nothing and may be called by several threads at once.
template <class T>
class Evaluator {
 public:
  // The elements of an input: consecutive (step 1), the same element each time (step 0), or `step` elements apart. `data` may be null for
  // an input that the program does not read.
  struct Input {
    const T* data;
    ptrdiff_t step;
  };

  // Makes an evaluator. If the program can not be evaluated in T, returns no value and sets `error` to the text of refusal().
  static std::optional<Evaluator> of(const Program& program, std::string& error) {
    error = refusal<T>(program);
    if (!error.empty()) return std::nullopt;
    return Evaluator(program);
  }

  size_t input_count() const { return input_count_; }
  // Returns the bytes of scratch that each thread needs in run().
  uint64_t scratch_bytes() const { return (register_count_ + input_count_) * block * sizeof(T); }

  // Computes output[k] = program(inputs[0].data[k * inputs[0].step], ...) for k below n; `inputs` has the order of program.inputs. `output`
  // may be the data of an input with step 1, and must not overlap an input in any other way. Each element is computed independently of the
  // others.
  void run(int64_t n, const Input* inputs, T* output, T* scratch) const {
    T* const gathered = scratch + register_count_ * block;
    for (int64_t at = 0; at < n; at += block) {
      const int64_t count = std::min<int64_t>(n - at, block);
      for (const size_t i : read_) gather(inputs[i], at, count, gathered + i * static_cast<size_t>(block));
      const auto source = [&](const Operand& of) -> const T* {
        const size_t first = of.index * static_cast<size_t>(block);
        if (of.kind == Operand::constant) return constants_.data() + first;
        if (of.kind == Operand::result) return scratch + first;
        return inputs[of.index].step == 1 ? inputs[of.index].data + at : gathered + first;
      };
      for (const Step& step : steps_)
        compute(step.op, source(step.operands[0]), source(step.operands[1]), source(step.operands[2]), scratch + step.target * block,
                count);
      std::memmove(output + at, source(result_), static_cast<size_t>(count) * sizeof(T));
    }
  }
  void run(int64_t n, std::initializer_list<Input> inputs, T* output, T* scratch) const { run(n, inputs.begin(), output, scratch); }

 private:
  static constexpr int64_t block = 256;  // elements of a register: several registers fit in the first level cache

  struct Operand {
    enum Kind : uint8_t { input, constant, result } kind = result;
    size_t index = 0;  // index of the input, the constant or the register
  };
  struct Step {
    Opcode op;
    Operand operands[3];
    size_t target;
  };

  explicit Evaluator(const Program& program) : input_count_(program.inputs.size()) {
    Program needed = program;
    prune(needed);
    place(needed);
  }

  // Determines the operand for each value: an input, a constant, or the register of a result. A register is free again after the last step
  // that reads the result.
  void place(const Program& program) {
    const size_t n = program.code.size();
    std::vector<size_t> last_use(n, 0);
    for (size_t k = 0; k < n; ++k) for_operands(program.code[k], [&](size_t operand) { last_use[operand] = k; });
    last_use[n - 1] = n;
    std::vector<Operand> values(n);
    std::vector<size_t> free;
    for (size_t k = 0; k < n; ++k) {
      const Instruction& i = program.code[k];
      Operand& value = values[k];
      if (i.op == Opcode::input) {
        value = {Operand::input, static_cast<size_t>(i.a)};
        if (std::find(read_.begin(), read_.end(), value.index) == read_.end()) read_.push_back(value.index);
        continue;
      }
      if (i.op == Opcode::constant) {
        value = {Operand::constant, constants_.size() / block};
        constants_.insert(constants_.end(), block, detail::converted<T>(i.literal));
        continue;
      }
      if (free.empty()) free.push_back(register_count_++);
      value.index = free.back();
      free.pop_back();
      Step step = {i.op, {}, value.index};
      size_t count = 0;
      for_operands(i, [&](size_t operand) {
        step.operands[count++] = values[operand];
        if (values[operand].kind != Operand::result || last_use[operand] != k) return;
        free.push_back(values[operand].index);
        last_use[operand] = n;  // the step may read the register twice, but frees it once
      });
      for (size_t rest = count; rest < 3; ++rest) step.operands[rest] = step.operands[0];
      steps_.push_back(step);
    }
    result_ = values[n - 1];
  }

  template <class F>
  static void for_operands(const Instruction& i, F f) {
    const int32_t operands[] = {i.a, i.b, i.c};
    for (int k = 0; k < info(i.op).arity; ++k) f(static_cast<size_t>(operands[k]));
  }

  // Copies `count` elements of the input, from element `at` on. Does nothing if the elements are consecutive (step 1), or if the step is 0
  // and an earlier call, with `at` 0, has already copied the one element.
  static void gather(const Input& input, int64_t at, int64_t count, T* to) {
    if (input.step == 1 || (input.step == 0 && at > 0)) return;
    const T* from = input.data + at * input.step;
    for (int64_t k = 0; k < count; ++k) to[k] = from[k * input.step];
  }

  // `target` must not be an operand; place() gives each result a register that no operand of the step has.
  static void compute(Opcode op, const T* a, const T* b, const T* c, T* __restrict target, int64_t count) {
    detail::with_operation<T>(op, [&](auto f) {
      if constexpr (std::is_invocable<decltype(f), T>::value)
        for (int64_t k = 0; k < count; ++k) target[k] = f(a[k]);
      else if constexpr (std::is_invocable<decltype(f), T, T>::value)
        for (int64_t k = 0; k < count; ++k) target[k] = f(a[k], b[k]);
      else
        for (int64_t k = 0; k < count; ++k) target[k] = f(a[k], b[k], c[k]);
    });
  }

  size_t input_count_;
  size_t register_count_ = 0;
  std::vector<size_t> read_;  // indices of the inputs that the program reads
  std::vector<T> constants_;  // a block for each constant
  std::vector<Step> steps_;
  Operand result_;
};

}  // namespace expression
}  // namespace heddle

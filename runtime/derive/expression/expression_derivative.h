// The symbolic derivative of a pointwise expression (heddle/expression.h): the program of dy * dp/dx_i.
//
// The inputs of a derivative are those of the program, then "dy" and "y", by position; reads_input() tells which of them it needs. y is the
// program's result. A derivative reads it where that is shorter: for exp, sigmoid, tanh, sqrt, a quotient and the like, whose derivative is
// a function of the result, it saves computing the result again, and often all that leads to it. It also reads y where it then reads
// nothing else and is no longer, as for relu, so that the input need not be kept beside the result, which others read, too. y may be
// rounded to the dtype in which it is stored, where a derivative that recomputes it would not: as in PyTorch.
//
// Reverse mode: one sweep from the result back gives the adjoint of each input, and what several paths need is computed once. For floats; a
// program with operations that only integers have is refused. An input that reaches the result only through floor, ceil, round, sign,
// comparisons and logical operations has the derivative 0, which is dropped before anything is multiplied by it.
//
// A derivative computes again what it needs of the program, plus a few instructions for each operation and a select for each condition that
// guards an adjoint. Of 1,000 random programs of 64 instructions none has a derivative of more than 258; those that are not 0 have 89 on
// average.
//
// Where there is no derivative the conventions are PyTorch's:
// - abs'(0) = 0; floor, ceil, round, sign, comparisons, logical operations and the condition of a select have the derivative 0 everywhere;
// - max and min of equal operands give half to each. With a constant, or as the pair min(max(x, low), high) or max(min(x, high), low),
//   they clamp: at its bounds neither x nor the bound has any (PyTorch since 2.15, where bounds are numbers; of tensors each has half).
//   max(x, 0) on its own is relu: 0 at 0, too, but a NaN keeps the gradient. Of a pair without constants the first operand of the inner
//   one, which nothing else may read, is x, as in Clip;
// - max(x, 0) + log1p(exp(-abs(x))), which is smooth, has the derivative sigmoid(x), at 0 too, where its parts have none;
// - pow(x, n) by x is 0 where n = 0, by n it is 0 where x = 0 and n >= 0 and NaN where x < 0; sqrt'(0) = inf;
// - mod and fmod by the divisor are minus the whole quotient, as if that did not jump;
// - select(c, f, g) gives dy to the branch that is taken. The other one has the derivative 0 even where its own is inf or NaN (PyTorch's
//   where() has NaN there).
// A NaN among the operands is in the derivative too, but where a branch that is not taken hides it, or a clamp (0, as in PyTorch).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "heddle/expression.h"
#include "heddle/status.h"

namespace heddle {

// Whether y may be read: it may not when its memory is reused before the derivative is computed.
enum class ResultOfForward { kept, gone };

// Returns one program for each of `inputs` (positions in program.inputs), in their order. Errors: invalid_argument for a position out of
// range, and for inputs called "dy" or "y"; unsupported for a program that can't be evaluated in floats.
Result<std::vector<expression::Program>> expression_derivatives(const expression::Program& program, std::span<const size_t> inputs,
                                                                ResultOfForward result = ResultOfForward::kept);
Result<expression::Program> expression_derivative(const expression::Program& program, size_t input,
                                                  ResultOfForward result = ResultOfForward::kept);

// Whether a derivative is the constant 0: the input has none.
bool is_zero(const expression::Program& derivative);
// Whether a derivative is 0 wherever a select of the program took another branch.
bool is_chosen(const expression::Program& program, const expression::Program& derivative);
// Returns the derivative, but 0 where dy is 0 and it would be a NaN: for a dy that is zero where a later select has not taken the value.
// `dy`: its position. Elsewhere nothing changes, so that its own derivative by dy is right where dy happens to be 0.
expression::Program where_chosen(const expression::Program& derivative, size_t dy);
bool reads_input(const expression::Program& program, size_t input);

}  // namespace heddle

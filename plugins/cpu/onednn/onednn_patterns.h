// Recognising an expression as an operation of oneDNN.
//
// Only operations that give the expression's own bits: arithmetic, choices by sign, bounds. oneDNN's sigmoid, tanh, gelu and swish use
// other approximations than pointwise programs, and differ also for infinities and the sign of zero, so results would change where they are
// fused; some of its kernels give -0 for the absolute value of 0. Bounds (relu, clip, min, max) agree except for one thing: they turn a NaN
// into the bound. They are marked, and onednn_guard.h runs them so that no NaN is lost.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <string>
#include <vector>

#include "heddle/expression.h"

namespace heddle::cpu::onednn {

// An eltwise (of acc) or binary (of acc and operand) post-op.
struct MatchedPostOp {
  enum class Kind { none, eltwise, binary } kind = Kind::none;
  dnnl_alg_kind_t algorithm = dnnl_alg_kind_undef;
  float alpha = 0, beta = 0;
  bool drops_nan = false;  // a NaN in acc or in the operand
};

// True, with [alpha, beta], if the match bounds acc by numbers.
bool is_clamp(const MatchedPostOp& match, float* lower, float* upper);

// All texts that have a post-op, for tests: they are in terms of acc and operand; a and b are numbers, a below b.
std::vector<std::string> post_op_texts();

// Returns Kind::none if oneDNN has no post-op for the program. Pure; parses its table, so for compile time only.
MatchedPostOp match_post_op(const expression::Program& program);

}  // namespace heddle::cpu::onednn

// Recognising an expression as an operation of oneDNN.
//
// Only operations that give the expression's own bits: arithmetic, choices by sign, bounds. oneDNN's sigmoid, tanh, gelu and swish
// approximate in another way than pointwise programs do, down to what becomes of infinities and of the sign of zero, so a net would compute
// something else where they are fused; some of its kernels take -0 for the absolute value of 0. Bounds (relu, clip, min, max) agree except
// for one thing: they turn a NaN into the bound. They are marked, and onednn_guard.h runs them so that no NaN is lost.
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
  bool drops_nan = false;  // of acc, and of the operand
};

// [alpha, beta] when the match bounds acc by numbers; false otherwise.
bool is_clamp(const MatchedPostOp& match, float* lower, float* upper);

// All texts that have a post-op, for tests: in terms of acc and operand, a and b stand for numbers, a below b.
std::vector<std::string> post_op_texts();

// Kind::none when oneDNN has nothing for it. Pure; parses its table, so for compile time only.
MatchedPostOp match_post_op(const expression::Program& program);

}  // namespace heddle::cpu::onednn

// Recognising an expression as an operation of oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "heddle/expression.h"

namespace heddle::cpu::onednn {

// An eltwise (of acc) or binary (of acc and operand) post-op.
struct MatchedPostOp {
  enum class Kind { none, eltwise, binary } kind = Kind::none;
  dnnl_alg_kind_t algorithm = dnnl_alg_kind_undef;
  float alpha = 0, beta = 0;
};

// Kind::none when oneDNN has nothing for it. Pure; parses its table, so for compile time only.
MatchedPostOp match_post_op(const expression::Program& program);

}  // namespace heddle::cpu::onednn

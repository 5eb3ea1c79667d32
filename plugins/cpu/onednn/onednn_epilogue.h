// The epilogue of a convolution or matrix product, applied to its output while that is in the cache: epilogue ops fused by the runtime, run
// as oneDNN post-ops where oneDNN has them and by the block interpreter (pointwise_program.h) otherwise.
//
// An epilogue op is one expression in "acc" (the value so far) and "operand", canonical text of expression.h. Any expression is accepted;
// those of onednn_patterns.cc become post-ops, which give the same bits: additions, products, quotients with an operand or a number; relu,
// leaky relu and clip; squares. (A residual that is added to the sum itself rounds in the kernel's order.) The rest is interpreted, but
// bounds after a residual have a loop of their own.
//
// Objects are built in create / prepare by one thread and read-only in run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onednn/onednn_call.h"
#include "onednn/onednn_patterns.h"
#include "pointwise/pointwise_program.h"

namespace heddle::cpu::onednn {

// In addition to HEDDLE_OPERAND_*: one value per row of a matrix (Gemm's C of shape [M, 1]).
constexpr int32_t operand_per_row = 100;

struct EpilogueOp {
  int32_t operand_input = -1;  // among the node's inputs; -1: none
  int32_t operand_kind = HEDDLE_OPERAND_NONE;
  std::shared_ptr<const Program> program;  // over "acc" and "operand"; shared by copies
  MatchedPostOp post_op;
  // True if the expression bounds acc: min(max(acc, lower), upper).
  bool clamps = false;
  float lower = 0, upper = 0;
};
using Epilogue = std::vector<EpilogueOp>;

// Parses and compiles one epilogue op; invalid when the text is wrong or names more than acc and operand.
Status make_epilogue_op(const std::string& text, int32_t operand_input, int32_t operand_kind, EpilogueOp* epilogue_op);
// The epilogue ops that the runtime fused into this node.
Status read_epilogue(const CreateContext& context, Epilogue* epilogue);
// True when every epilogue op compiles and every operand is of a kind in `kinds`.
bool accepts(const CreateContext& context, std::initializer_list<int32_t> kinds);

// Layouts of a tile's operands; a null descriptor keeps epilogue ops with such operands out of the primitive.
struct OperandLayouts {
  const MemoryDesc* same_shape = nullptr;
  const MemoryDesc* per_column = nullptr;  // PER_CHANNEL, LAST_DIMENSION
  const MemoryDesc* per_row = nullptr;
  const MemoryDesc* scalar = nullptr;
  bool add_by_sum = false;  // add(acc, operand) of the same shape by the sum post-op: the output holds the operand beforehand
};

// Epilogue ops [first, last), as far as they are post-ops of one primitive.
struct FusedEpilogue {
  PostOps post_ops;
  size_t first = 0;                         // the first epilogue op covered
  size_t count = 0;                         // epilogue ops covered from `first` on
  size_t nan_safe = 0;                      // of them, those before the first that would drop a NaN (onednn_guard.h)
  bool same_shape = false;                  // one of them has an operand of the output's shape
  int32_t sum_epilogue_op = -1;             // epilogue op whose operand the output must hold before the primitive runs
  std::vector<Argument> arguments;          // further arguments of the primitive ...
  std::vector<size_t> epilogue_op_indices;  // ... and the epilogue op whose operand each one is
};
// Covers as many of epilogue ops [first, last) as have a post-op. One that would drop a NaN and one that reads an operand of the output's
// shape are never covered together: when the primitive has to run again, the output may have overwritten that operand. Nor are two of one
// algorithm with different numbers: oneDNN 2.6's convolutions use those of the first for both.
Status fuse_epilogue_ops(const Epilogue& epilogue, size_t first, size_t last, const OperandLayouts& layouts, FusedEpilogue* fused);

// True for add(acc, operand) with an operand of `kind`: may be the bias of the primitive.
bool is_bias(const EpilogueOp& epilogue_op, int32_t kind);

// The region of a tile for the interpreter: rows x columns of the output, columns contiguous.
struct TileRegion {
  float* data;
  int64_t row_stride;
  int64_t rows, columns;
  int64_t first_row, first_column;  // of the whole output, for per-row and per-column operands
};
// Applies epilogue ops [first, end) to a tile; `operands[i]` is the operand of epilogue op i, for SAME_SHAPE already at the tile's first
// element with the tile's row stride. `scratch`: epilogue_scratch_bytes(epilogue).
void apply_epilogue_ops(const Epilogue& epilogue, size_t first, const float* const* operands, const TileRegion& region, void* scratch);
uint64_t epilogue_scratch_bytes(const Epilogue& epilogue);

}  // namespace heddle::cpu::onednn

// Program: a pointwise expression (expression.h) compiled to vectorised loops over blocks that stay in the first level cache.
//
// Used by heddle.Pointwise and by compute kernels that apply a fused epilogue to a tile they have just written. Compile in create (it
// allocates); run anywhere, with scratch of the executing thread, any number of times and by several threads at once.
//
//   Program program;                                                     // members of the kernel's state
//   status = Program::compile({.text = "max(acc + operand, 0)", .inputs = {"acc", "operand"},
//                                   .input_dtypes = {HEDDLE_F32, HEDDLE_F32}, .output_dtype = HEDDLE_F32}, &program);
//   context.set_scratch(0, program.scratch_bytes());                     // prepare
//   const Source sources[] = {{tile, ld, 1}, {bias, 0, 1}};              // run: a [rows, columns] tile, bias along columns
//   program.run_rows(sources, tile, ld, rows, columns, thread_scratch);  // in place is safe
//
// In place: block by block, every operand of a block is read before the block's result is written, and each vector of the last
// instruction is read before it is written. So the output may be the memory of any input that has the output's element width and, for
// every element, the output's address. It must not overlap an input in another way.
//
// Arithmetic: f32, f64, i32, i64, u64 natively; f16 and bf16 in f32 (rounded to nearest even when stored, not in between); u8 and bool by
// bytes where all values are such; else like i8, i16 and u16 in i32, and u32 in i64, wrapped to their range after every operation. Integer
// division truncates; x / 0 is 0 and never traps. NaN: min and max give NaN if either side is. Results of an element do not depend on how a
// range was divided.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/expression.h"
#include "heddle/op.h"
#include "pointwise/pointwise_instructions.h"
#include "shared/pointwise_region.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

struct ProgramText {
  std::string text;
  std::vector<std::string> inputs;         // names in the text, in the order of the sources; others are an error
  std::vector<heddle_dtype> input_dtypes;  // beside inputs
  heddle_dtype output_dtype = HEDDLE_DTYPE_NONE;
  expression::Constants constants = {};  // numbers for further names (attributes)
  // The dtype whose arithmetic is used; NONE: the one of all inputs that are not bool (bool counts as 0 or 1).
  heddle_dtype arithmetic = HEDDLE_DTYPE_NONE;
};

// The place of one input for a region of rows x columns; strides in elements. Column stride 1 (contiguous) and 0 (one value per row) are
// fast when rows are long; any others are gathered.
struct Source {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
};

class Program {
 public:
  // Errors: invalid (syntax, unknown name, an operation the arithmetic has no form for, mixed dtypes), naming the expression.
  static plugin::Status compile(const ProgramText& text, Program* program);

  // Bytes of scratch for each executing thread, 64-byte aligned, for every run function.
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // A first guess of the time per element of one thread, without memory accesses.
  double cost_ns() const { return cost_ns_; }
  size_t input_count() const { return inputs_.size(); }
  heddle_dtype output_dtype() const { return output_dtype_; }
  size_t slot_count() const { return constant_count_ + register_count_ + inputs_.size() + 1u; }

  // output[r][c] = program(sources[i][r][c]) for `rows` rows `output_row_stride` elements apart, columns contiguous.
  void run_rows(const Source* sources, void* output, int64_t output_row_stride, int64_t rows, int64_t columns, void* scratch) const;
  // Elements [begin, end) of a region in storage order; inputs[i] and output point at element 0.
  void run_region(const Region& region, const void* const* inputs, void* output, int64_t begin, int64_t end, void* scratch) const;

 private:
  class Compiler;  // pointwise_compile.cc
  class Runner;    // pointwise_run.cc

  // Slots hold an operand each: first the constants, then registers, inputs, and the output.
  struct Step {
    InstructionFunction function;
    uint16_t operand_count;
    uint16_t operands[3];
    uint16_t result;
  };
  struct Input {
    heddle_dtype dtype;
    bool used;
    bool direct;  // stored as computed: whole vectors may be read in place
  };

  heddle_dtype output_dtype_ = HEDDLE_DTYPE_NONE;
  heddle_dtype compute_dtype_ = HEDDLE_DTYPE_NONE;
  int64_t compute_width_ = 0;
  bool direct_output_ = false;
  std::vector<Input> inputs_;
  std::vector<Step> steps_;
  std::vector<uint64_t> constants_;  // instruction_alignment bytes each: the value in every lane
  uint16_t constant_count_ = 0;
  uint16_t register_count_ = 0;
  uint64_t scratch_bytes_ = 0;
  double cost_ns_ = 0;
};

}  // namespace heddle::cpu

// VariadicKernel: the base of operators that fold any number of inputs with one function, from the left: Sum, Mean, Max, Min.
//
// A few inputs are one pointwise program. Many are folded a chunk at a time, block by block, with an accumulator in scratch: the program
// and the scratch stay as large as a chunk however many inputs there are, and the result has the same bits.
#pragma once

#include <string>

#include "pointwise/pointwise.h"

namespace heddle::cpu {

class VariadicKernel : public PointwiseKernel {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  // `function` is "+" or one of two arguments; `ending` is put behind the folded value: " / 3".
  Status create(const CreateContext& context, const std::string& function, const std::string& ending = "");

 private:
  Status create_chunks(heddle_dtype dtype, const std::string& function, const std::string& ending);
  // Folds inputs [from, from + count) into what `accumulated` has, elements [begin, end); `memory` holds the program's scratch and a Frame.
  Status fold_chunk(const RunContext& context, const Program& program, const heddle_tensor* accumulated, uint32_t from, uint32_t count,
                    void* output, int64_t begin, int64_t end, char* memory) const;
  uint64_t program_bytes() const;

  uint32_t input_count_ = 0;
  // Of more inputs than a chunk has: the first of them, the accumulator and further ones, the accumulator and what is left.
  Program first_, middle_, last_;
  heddle_dtype accumulator_ = HEDDLE_DTYPE_NONE;
  int64_t tile_elements_ = 1;
};

}  // namespace heddle::cpu

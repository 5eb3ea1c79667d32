// Implements TopK as launches (text/sort.cuh): short rows are sorted in shared memory, from long ones the first elements are selected chunk
// by chunk, and where very many elements are wanted rows are sorted by merges.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "heddle/op.h"

namespace heddle::cuda {

class TopKLaunches : public Launches {
 public:
  int64_t axis = -1;  // set before choose()
  bool largest = true;

  // K is input 1, on the host, and equals the extent that outputs were planned for.
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 private:
  enum class Way : uint8_t { sort, select, merge };
  struct Numbers {
    int64_t rows = 1, count = 1, wanted = 1, inner = 1, parts = 1, part = 0, stride = 0, run = 0;
    uint64_t from = 0, to = 0;  // offsets of entries in scratch
  };
  plugin::Status look(const Operands& operands, Numbers* numbers) const;
  void divide(Numbers* numbers) const;
  void parameters(const Numbers& numbers, ParameterWriter& writer) const;
  void write(KernelSource* source) const;
  void plan_merges(Numbers* numbers, LaunchPlan* plan) const;
  int64_t entry_bytes() const { return short_ ? 8 : 16; }

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE;
  Way way_ = Way::sort;
  bool varies_ = false, wide_ = false, short_ = false, split_ = false, values_ = false, indices_ = false;
  int entries_ = 512, segment_ = 2;
};

}  // namespace heddle::cuda

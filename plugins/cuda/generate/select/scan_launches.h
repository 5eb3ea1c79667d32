// Implements CumSum as launches: a thread for each line, or a block for each row, or for parts of them where they are few and long
// (text/scan.cuh).
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "heddle/op.h"

namespace heddle::cuda {

class ScanLaunches : public Launches {
 public:
  bool exclusive = false, reverse = false;  // set before choose()

  // The axis is input 1, on the host.
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 private:
  struct Numbers {
    int64_t lines = 1, count = 1, inner = 1, parts = 1, part = 0;
    uint64_t sums = 0;
  };
  plugin::Status look(const Operands& operands, Numbers* numbers) const;
  void divide(Numbers* numbers) const;
  void parameters(const Numbers& numbers, ParameterWriter& writer) const;
  void write(KernelSource* source) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE;
  bool varies_ = false, rows_ = false, split_ = false, wide_ = false, whole_ = false;
  int items_ = 1;
};

}  // namespace heddle::cuda

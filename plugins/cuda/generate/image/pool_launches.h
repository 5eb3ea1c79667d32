// Implements MaxPool, AveragePool and LpPool as one launch (text/pool.cuh).
#pragma once

#include <cstdint>

#include "generate/kernel_text.h"
#include "heddle/op.h"
#include "shared/image/window.h"

namespace heddle::cuda {

enum class PoolKind : uint8_t { max, average, lp };

class PoolLaunches : public Launches {
 public:
  PoolKind kind = PoolKind::max;  // set before choose()
  operators::WindowAttributes attributes;
  bool counts_padding = false;  // for average
  bool column_major = false;    // for indices
  int64_t power = 2;            // for lp

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 private:
  void parameters(const operators::Window& window, int64_t count, int64_t channels, ParameterWriter& writer) const;
  void functions(KernelText* text) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE;
  bool indices_ = false, last_ = false, wide_ = false;
};

}  // namespace heddle::cuda

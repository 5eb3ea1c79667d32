// Implements RoiAlign as one launch (text/roi_align.cuh).
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "shared/image/roi_options.h"

namespace heddle::cuda {

class RoiAlignLaunches : public Launches {
 public:
  operators::RoiOptions options;  // set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 private:
  void parameters(const Operands& operands, ParameterWriter& writer) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE;
};

}  // namespace heddle::cuda

// Implements GridSample as one launch (text/grid_sample.cuh).
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "shared/image/grid_options.h"

namespace heddle::cuda {

class GridSampleLaunches : public Launches {
 public:
  operators::GridOptions options;  // set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 private:
  struct Numbers {
    int64_t units = 0, channels = 0, at_once = 1, groups = 0, read = 0, written = 0;
    int64_t input[operators::max_grid_axes] = {};
  };
  void parameters(const Numbers& numbers, ParameterWriter& writer) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE, grid_dtype_ = HEDDLE_DTYPE_NONE;
  int axes_ = 0;
};

}  // namespace heddle::cuda

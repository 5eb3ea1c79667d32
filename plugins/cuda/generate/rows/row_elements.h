// Writes the elements of rows whose statistics are already known, left in scratch by reductions. One launch.
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/rows/row_source.h"
#include "heddle/op.h"

namespace heddle::cuda {

class RowElements {
 public:
  RowShape shape;  // all but its geometry; set before choose()

  // Chooses the kernel for a tensor like x whose rows span the dimensions in `set` or, if that varies, for smaller ones. `spatial`:
  // neighbours that belong to one channel, where parameters go by channel. Appends the entry `name`.
  plugin::Status choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source,
                        int64_t spatial = 1);
  // Plans the launch. `parameters`: how they are read for the elements; `known`: the offset of the statistics in scratch.
  void plan(const heddle_tensor& x, uint32_t set, RowNumbers parameters, uint64_t known, LaunchPlan* plan) const;

 private:
  uint32_t kernel_ = 0;
};

// Returns how many elements are read and written at once in rows of that many.
int row_width(const RowShape& shape, int64_t row);

}  // namespace heddle::cuda

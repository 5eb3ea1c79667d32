// The elements of rows about which everything is known already: reductions left it in scratch. One launch.
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/rows/row_source.h"
#include "heddle/op.h"

namespace heddle::cuda {

class RowElements {
 public:
  RowShape shape;  // all but its geometry, before choose()

  // Of a tensor like x, in which the dimensions in `set` are those of rows, or, where that varies, of smaller ones. `spatial`: neighbours
  // that belong to one channel, where parameters go by channel. Appends the entry `name`.
  plugin::Status choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source,
                        int64_t spatial = 1);
  // `parameters`: how those go with the elements; `known`: the offset of scratch.
  void plan(const heddle_tensor& x, uint32_t set, RowNumbers parameters, uint64_t known, LaunchPlan* plan) const;

 private:
  uint32_t kernel_ = 0;
};

// Elements that are read and written at once where they lie in rows of so many.
int row_width(const RowShape& shape, int64_t row);

}  // namespace heddle::cuda

// Implements Concat and Split: parts of a whole along an axis, many of them in one launch (text/move.cuh).
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"

namespace heddle::cuda {

class PartsLaunches : public Launches {
 public:
  bool into_whole = true;  // set before choose(): true for Concat
  int64_t axis = 0;

  // For Split the sizes, if any, are input 1, on the host.
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 private:
  static constexpr uint32_t max_together = 16;  // parts of one launch
  // The parts of one launch, which follow each other and those of the launches before.
  struct Batch {
    uint32_t count = 0;
    uint32_t ports[max_together];
    int64_t block[max_together] = {}, row[max_together] = {}, divider[max_together] = {}, units[max_together] = {},
            offset[max_together] = {};
    int64_t blocks = 0, whole_row = 0;
  };
  uint32_t port_count(const Operands& operands) const { return into_whole ? operands.input_count : operands.output_count; }
  const heddle_tensor* part(const Operands& operands, uint32_t i) const { return into_whole ? operands.input(i) : operands.output(i); }
  plugin::Status check_sizes(const Operands& operands) const;
  // Computes the extents before the axis, and the bytes of one step along it.
  void look(const heddle_tensor& tensor, int64_t* outer, int64_t* inner, int64_t* extent) const;
  void parameters(const Batch& batch, ParameterWriter& writer) const;
  // Returns how much of the axis an absent output would have had.
  int64_t extent_of_absent(const Operands& operands, uint32_t i, int64_t offset) const;

  bool varies_ = false, wide_ = false;
  int64_t unit_ = 1;
  int at_ = 0;
};

}  // namespace heddle::cuda

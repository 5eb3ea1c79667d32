// Implements Reshape, Flatten, Squeeze, Unsqueeze and Identity where the compiler could not give output and input the same bytes: where
// extents are known only during the run, or for a variable's older content.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"

namespace heddle::cuda {

class ViewLaunches final : public Launches {
 public:
  // The meaning of input 1, on the host, for the extents.
  enum class Operand : uint8_t { none, shape, squeezed, unsqueezed };
  Operand operand = Operand::none;  // set before choose()
  bool keeps_zero = false;

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) override;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const override;
  bool varies() const override { return varies_; }

 private:
  plugin::Status check(const Operands& operands) const;

  bool varies_ = false;
};

}  // namespace heddle::cuda

// Implements the operators that write variables: SgdUpdate, Assign, AccumulateAdd and StepIncrement (text/update.cuh).
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/move/move_source.h"

namespace heddle::cuda {

enum class Update : uint8_t { sgd, assign, accumulate, increment };

class UpdateLaunches final : public Launches {
 public:
  explicit UpdateLaunches(Update of) : of_(of) {}
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) override;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const override;

 private:
  // Follows the variable, the value and the rate, where there are such.
  uint32_t apply_port() const { return of_ == Update::sgd ? 3 : of_ == Update::increment ? 1 : 2; }
  void parameters(const Operands& operands, ParameterWriter& writer) const;
  const Update of_;
};

}  // namespace heddle::cuda

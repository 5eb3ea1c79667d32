// What an observer reads of a step: values as row-major bytes on the host.
#pragma once

#include <vector>

#include "heddle/observe.h"
#include "run/execution.h"

namespace heddle {

// For one execution. Used by the thread that runs it, between steps.
class StepReader {
 public:
  explicit StepReader(const Execution& execution) : execution_(execution) {}
  // What the observer answers. Code::internal: it threw.
  Status show(const StepObserver& observer, size_t step);
  // Those of StepView; `k` may be anything.
  TensorView type(const std::vector<Operand>& operands, size_t k) const;
  Result<TensorView> read(const std::vector<Operand>& operands, size_t k);
  const PlanStep& step(size_t i) const { return execution_.plan().steps[i]; }

 private:
  int64_t extent_of(ValueId value, const heddle_tensor& view) const;
  const Execution& execution_;
  std::vector<std::byte> staging_, ordered_;  // of a device, of another layout
};

}  // namespace heddle

// StepReader: the values of a step for an observer, as row-major bytes on the host.
#pragma once

#include <vector>

#include "heddle/observe.h"
#include "run/execution.h"

namespace heddle {

// For one execution. Threads: used by the thread that runs it, between steps.
class StepReader {
 public:
  explicit StepReader(const Execution& execution) : execution_(execution) {}
  // Calls the observer and returns its status. Code::internal: it threw.
  Status show(const StepObserver& observer, size_t step);
  // Implement the functions of StepView; `k` may be out of range.
  TensorView type(const std::vector<Operand>& operands, size_t k) const;
  Result<TensorView> read(const std::vector<Operand>& operands, size_t k);
  const PlanStep& step(size_t i) const { return execution_.plan().steps[i]; }

 private:
  int64_t extent_of(ValueId value, const heddle_tensor& view) const;
  const Execution& execution_;
  std::vector<std::byte> staging_, ordered_;  // copies of values on a device, and of those in another layout
};

}  // namespace heddle

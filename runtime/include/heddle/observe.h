// Looking at runs: how long each step took, and what it computed.
//
//   heddle::Profile profile;
//   heddle::RunOptions options;
//   options.profile = &profile;
//   context->run(options);                          // profile.steps[i] belongs to context->plan()->steps[i]
//
// C++17. A profile belongs to one run at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "heddle/export.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

struct StepTime {
  int64_t begin_ns = 0, end_ns = 0;  // from the begin of the run's first step; the same when a failure left the step unfinished
  uint64_t workers = 0;              // bit w: worker w took part, 0 is the calling thread; those from 63 on share bit 63; 0: it did not run
  bool ran() const { return workers != 0; }
};

// Filled by a run that RunOptions::profile points at; by a failed one as far as it came. Only its first run allocates.
struct Profile {
  std::vector<StepTime> steps;  // of the plan, in its order
};

// One step that has just run, and its values. Valid during the call of the observer.
class HEDDLE_API StepView {
 public:
  size_t step() const { return step_; }
  // True shape and dtype of input or output `k` of the step; none where it is absent or there is no such operand.
  TensorView input_type(size_t k) const;
  TensorView output_type(size_t k) const;
  // Its row-major bytes on the host, valid until the next call of either; data null where it is absent. An input that the step updated in
  // place shows what became of it. Errors: unsupported (a layout that is no order of dims), device_failed.
  Result<TensorView> read_input(size_t k);
  Result<TensorView> read_output(size_t k);

 private:
  friend class StepReader;
  StepView(class StepReader& reader, size_t step) : reader_(reader), step_(step) {}
  class StepReader& reader_;
  size_t step_;
};

// Called behind each step of a run that is observed. Its steps then run one after the other on the calling thread; a failing status ends
// the run, which returns it, and is not called again; once updates of variables have begun they are all made first. One that throws ends
// the run with Code::internal; an empty one is none.
using StepObserver = std::function<Status(StepView&)>;

}  // namespace heddle

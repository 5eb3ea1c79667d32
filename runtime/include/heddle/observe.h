// Observing runs: how long each step took, and what it computed.
//
//   heddle::Profile profile;
//   heddle::RunOptions options;
//   options.profile = &profile;
//   context->run(options);                          // profile.steps[i] belongs to context->plan()->steps[i]
//
// Requires C++17. A profile may be used by one run at a time.
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
  int64_t begin_ns = 0, end_ns = 0;  // since the run's first step began; end_ns == begin_ns if a failure left the step unfinished

  // Bit w is set if worker w took part. Worker 0 is the calling thread; workers from 63 on share bit 63. If no bit is set, the step did not
  // run.
  uint64_t workers = 0;
  bool ran() const { return workers != 0; }
};

// Some tiles of a step of several, which one thread did in one call.
struct TileTime {
  size_t step = 0;                    // in the plan's steps
  uint32_t worker = 0;                // as in StepTime::workers, but with numbers from 63 on
  int64_t first_tile = 0, tiles = 0;  // tiles first_tile to first_tile + tiles - 1
  int64_t begin_ns = 0, end_ns = 0;   // as in StepTime
};

// Filled in by a run with RunOptions::profile; a run that fails fills in the steps that it reached. Only the first run with a profile
// allocates.
struct Profile {
  std::vector<StepTime> steps;  // parallel to the plan's steps
  // By their beginning; of runs on one thread none, as it does all tiles of a step at once. Of each step at most 16 ranges a thread have
  // room; `tiles_left_out` counts those that had none.
  std::vector<TileTime> tiles;
  int64_t tiles_left_out = 0;
};

// One step that has just run, and its values. Valid during the call of the observer only.
class HEDDLE_API StepView {
 public:
  size_t step() const { return step_; }
  // Return the true shape and dtype of input or output `k` of the step, without data; the dtype is none if the operand is absent.
  TensorView input_type(size_t k) const;
  TensorView output_type(size_t k) const;
  // Return the value of input or output `k` as row-major bytes on the host, valid until the next call of either function; data is null if
  // the operand is absent. If the step updated an input in place, read_input returns the updated value. Errors: unsupported (the layout of
  // the value is more than a permutation of its dims), device_failed.
  Result<TensorView> read_input(size_t k);
  Result<TensorView> read_output(size_t k);

 private:
  friend class StepReader;
  StepView(class StepReader& reader, size_t step) : reader_(reader), step_(step) {}
  class StepReader& reader_;
  size_t step_;
};

// Called after each step of a run with RunOptions::observer; the steps of such a run are done one after the other, on the calling thread.
// If the observer returns a failure, the run ends with that failure and does not call the observer again; but if updates of variables have
// begun, all updates are made before the run ends. If the observer throws, the run ends with Code::internal. An empty function is ignored.
using StepObserver = std::function<Status(StepView&)>;

}  // namespace heddle

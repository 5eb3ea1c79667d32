// FailureLog: what went wrong in one run of a plan, step by step: what kernels said of themselves, which steps failed, and the one error
// that is made of it.
//
// Belongs to one Execution. Steps leave notes from any thread while the run goes on; the error is asked for when nothing is in flight any
// more. Only a failing run takes the lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"

namespace heddle {

// What is told needs no memory that it cannot do without: failures are reported where nothing may be thrown. Without memory for it a
// text is left out, and of more than a few failures the last ones are counted as one.
class FailureLog {
 public:
  // `plan` outlives it.
  explicit FailureLog(const Plan& plan);

  // [any thread] The text of a failure that step `step` is about to answer with. It counts once the step is reported.
  void note(uint32_t step, heddle_status status, std::string_view text) noexcept;
  // [any thread] The same with an error that has a code and places of its own: of a subnet, or of a step that could not be prepared. Stands
  // until a later note has a text.
  void note_cause(uint32_t step, Status cause) noexcept;
  // [any thread] What the step's kernel asked for, and was refused: told beside the kernel's own text, if the step fails. The last counts.
  void note_refusal(uint32_t step, Status refusal) noexcept;
  // [any thread] The step is about to fail because its device did, in its own work or in what was enqueued before: forget_fences() takes
  // this for the failure of a fence.
  void note_behind_device(uint32_t step) noexcept;
  // [any thread] The step failed. `text`: what is known of it; with null data, what was noted stands. The first report of a step counts.
  void report(uint32_t step, heddle_status status, std::string_view text = {}) noexcept;
  // Before a run.
  void clear() {
    if (!failures_.empty()) failures_.clear();
  }

  // What is known of a step whose kernel answered with `status`.
  Status of_kernel(uint32_t step, heddle_status status) const;
  // The last refusal; ok: there was none.
  Status refusal_of(uint32_t step) const;
  // Whether a step from `first` on was reported.
  bool reported_from(uint32_t first) const;
  // Drops what fences of that device reported, and steps that waited for it: they only say that something before them failed.
  void forget_fences(uint8_t device);
  // The error of a run that did not complete: the failed step that comes first in the plan, with the others attached. Where none was
  // reported: deadline_exceeded or cancelled, by `stop`, the stop_* of its RunControl. `told_outside`: the run around this one is ending,
  // so steps may answer that they were cancelled. Otherwise, where nothing ended this run, a step that answers so is itself the error.
  Status error(uint32_t stop, bool told_outside = false) const;

 private:
  struct Failure {
    uint32_t step = 0;
    heddle_status status = HEDDLE_OK;
    bool reported = false;
    bool behind_device = false;
    bool refused = false;  // by a device that was lost already, perhaps by the work of another step
    std::string text;
    Status cause;
    Status refusal;

    // What is known of it, of a kernel that answered so.
    Status why(heddle_status answer) const;
  };
  // Under the lock. The entry of the step; a new one has `status`.
  Failure& entry(uint32_t step, heddle_status status) noexcept;
  Failure& noted(uint32_t step, heddle_status status, std::string_view text) noexcept;
  Status described(const Failure& failure, uint32_t stop, bool untold = false) const;

  const Plan& plan_;
  mutable std::mutex mutex_;
  std::vector<Failure> failures_;
};

}  // namespace heddle

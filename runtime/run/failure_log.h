// FailureLog: the failures of one run of a plan, by step: what kernels reported, which steps failed, and the one error made of them.
//
// Belongs to one Execution. Threads: any thread may add notes while the run is under way; the error is requested when nothing is in flight
// any more. Only a failing run takes the lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads/mutex.h"
#include "compile/plan.h"
#include "heddle/status.h"

namespace heddle {

// Nothing is thrown, since failures are reported where nothing may be. If memory is missing, a text is left out, and of more than 16
// failures the last ones count as one.
class FailureLog {
 public:
  // `plan` must outlive it.
  explicit FailureLog(const Plan& plan);

  // [any thread] Notes the text of a failure that step `step` is about to return. It counts once the step is reported.
  void note(uint32_t step, heddle_status status, std::string_view text) noexcept;
  // [any thread] The same with an error that has a code and places of its own: of a subnet, or of a step that could not be prepared. A
  // later note with a text replaces it.
  void note_cause(uint32_t step, Status cause) noexcept;
  // [any thread] Notes a refused request of the step's kernel: reported beside the kernel's own text if the step fails. The last counts.
  void note_refusal(uint32_t step, Status refusal) noexcept;
  // [any thread] The step is about to fail because its device did, in the step's work or in work enqueued before it: forget_fences() treats
  // this like the failure of a fence.
  void note_behind_device(uint32_t step) noexcept;
  // [any thread] Reports that the step failed. `text`: its description; with null data, the noted text is kept. The first report of a step
  // counts.
  void report(uint32_t step, heddle_status status, std::string_view text = {}) noexcept;
  // [any thread] Reports that a resource or communicator has broken, as the failure of a step that may be under way, with a
  // communicator where there is one. error() drops it if another step with a communicator turns out to have failed.
  void report_suspect(uint32_t step, std::string_view text) noexcept;
  // [any thread] The step that was suspected is another: this one. Does nothing if none was.
  void move_suspicion(uint32_t step) noexcept;
  // Forgets all failures. Call it before each run: no other thread has the log then, and no lock is taken.
  void clear() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
    if (!failures_.empty()) failures_.clear();
  }

  // Returns what is known of a step whose kernel returned `status`.
  Status of_kernel(uint32_t step, heddle_status status) const;
  // Returns the step's last refusal; ok: there was none.
  Status refusal_of(uint32_t step) const;
  // Whether a step from `first` on was reported.
  bool reported_from(uint32_t first) const;
  // Drops the reports of that device's fences and of steps noted by note_behind_device(): they only mean that an earlier step failed.
  void forget_fences(uint8_t device);
  // Returns the error of a run that did not complete: the failed step that comes first in the plan, with the others attached. If none was
  // reported: deadline_exceeded or cancelled, by `stop`, the stop_* of its RunControl. `told_outside`: the outer run is ending, so steps
  // may return that they were cancelled. Otherwise, if nothing ended this run, a step that returns so is itself the error.
  Status error(uint32_t stop, bool told_outside = false) const;

 private:
  struct Failure {
    uint32_t step = 0;
    heddle_status status = HEDDLE_OK;
    bool reported = false;
    bool behind_device = false;
    bool suspected = false;  // it may have been another step
    bool refused = false;    // by a device that was lost already, perhaps through the work of another step
    std::string text;
    Status cause;
    Status refusal;

    // Returns what is known of it, for a kernel that returned `answer`.
    Status why(heddle_status answer) const;
  };
  // Returns the entry of the step; a new one has `status`.
  Failure& entry(uint32_t step, heddle_status status) noexcept HEDDLE_REQUIRES(mutex_);
  // Returns the step that a failed launch is the failure of: of a group, the part that has said why.
  uint32_t culprit(uint32_t step) const HEDDLE_REQUIRES(mutex_);
  Failure& noted(uint32_t step, heddle_status status, std::string_view text) noexcept HEDDLE_REQUIRES(mutex_);
  Status described(const Failure& failure, uint32_t stop, bool untold = false) const;

  const Plan& plan_;
  mutable Mutex mutex_;
  std::vector<Failure> failures_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

// PendingSteps: the steps of asynchronous kernels while they are under way: started by run(), completed from any thread, told to end early.
//
// Belongs to one Execution; nothing of it allocates or locks in a run. A plugin's abort() and complete() for one step may come at once: the
// step is done when both are out of the way, so that neither finds its context gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/lasting_tokens.h"
#include "compile/plan.h"
#include "device/unanswered.h"
#include "heddle/abi.h"
#include "run/failure_log.h"
#include "run/step_resources.h"

namespace heddle {

// "name" (Type), for sentences that have no diagnostic.
std::string name_of(const PlanStep& step);

class PendingSteps {
 public:
  // `done(user, step, status)` is called for each step that completes, once, by any thread.
  // `resources` outlives it: those of a step that is told to end are told too.
  PendingSteps(const Plan& plan, const StepResources& resources, void (*done)(void* user, uint32_t step, heddle_status status), void* user);
  PendingSteps(const PendingSteps&) = delete;
  PendingSteps& operator=(const PendingSteps&) = delete;
  ~PendingSteps();
  bool any() const { return !steps_.empty(); }
  // With which context `kernel` is started, for its abort(); it gets a new token for each run. Before run() of such a step, and while it is
  // under way nothing changes.
  void set(uint32_t step, const heddle_kernel* kernel, heddle_run_context* context);
  // Of whom tokens ask: the calls of those steps. Before the first run. Throws std::bad_alloc.
  void give_tokens(heddle_call& (*call)(void* user, uint32_t step), void* user);

  // Before a run.
  void begin();
  // Around a kernel's run(): after it with what it answered, which the scheduler is told. A step that completed before run() returned is
  // done from then on; one that completed and then failed to start has failed.
  void starting(uint32_t step);
  heddle_status started(uint32_t step, heddle_status answer);
  // [any thread] By who has claimed the step's token (TokenSlot::claim), and left its reason with the step.
  void publish(uint32_t step, heddle_status status);
  // [any thread] Tells steps before `end` that are under way, or start later in this run, to complete soon. Each is told once.
  void abort(uint32_t end);

  // [any thread] Reports that as the failure of the first step that is under way.
  void blame(FailureLog& failures, const std::string& text) const;

  // After a run that was given up: what is still under way; null: nothing. `next`: what others have to say of the same run.
  void note_unanswered(std::shared_ptr<const Unanswered> next);
  const std::shared_ptr<Unanswered>& unanswered() const { return unanswered_; }

 private:
  struct Pending {
    TokenSlot* slot = nullptr;  // whose state is that of the step
    heddle_status status = HEDDLE_OK;
    const heddle_kernel* kernel = nullptr;
    heddle_run_context* context = nullptr;
  };
  Pending& of(uint32_t step) const { return pending_[slots_[step]]; }
  void tell(uint32_t step);
  void finish(uint32_t step, heddle_status status);

  const Plan& plan_;
  const StepResources& resources_;
  void (*const done_)(void* user, uint32_t step, heddle_status status);
  void* const user_;
  std::vector<uint32_t> steps_;                                                                      // in plan order
  std::vector<uint32_t> slots_;                                                                      // by step
  mutable std::vector<Pending> pending_;                                                             // by slot
  std::atomic<uint32_t> told_end_{0};                                                                // steps before it are told to end
  const std::shared_ptr<std::atomic<uint32_t>> count_ = std::make_shared<std::atomic<uint32_t>>(0);  // of those under way
  std::shared_ptr<Unanswered> unanswered_;
};

}  // namespace heddle

// PendingSteps: the steps of asynchronous kernels while they are under way: started by run(), completed from any thread, and signalled to
// end early.
//
// Belongs to one Execution. Threads: set(), starting() and started() are called by the thread that runs the step; publish(), abort() and
// blame() by any thread; everything else between runs. During a run nothing here allocates or locks. A plugin's abort() and complete() for
// one step may run concurrently: the step is done only when neither uses its context any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/lasting_tokens.h"
#include "compile/plan.h"
#include "heddle/abi.h"
#include "run/failure_log.h"
#include "run/left_work.h"

namespace heddle {

// Returns `operator "name" (Type)`, for messages that are no diagnostics.
std::string name_of(const PlanStep& step);

class PendingSteps {
 public:
  // `done(user, step, status)` is called once for each step that completes, by any thread.
  PendingSteps(const Plan& plan, void (*done)(void* user, uint32_t step, heddle_status status), void* user);
  PendingSteps(const PendingSteps&) = delete;
  PendingSteps& operator=(const PendingSteps&) = delete;
  ~PendingSteps();
  bool any() const { return !steps_.empty(); }
  // Sets the kernel of the step and the context that it is started with, which abort() needs; the context gets a new token for each run.
  // REQUIRES: the step is not under way. Call it before the step's run().
  void set(uint32_t step, const heddle_kernel* kernel, heddle_run_context* context);
  // Gives each asynchronous step a token slot, whose tokens refer to `call(user, step)`. Call it before the first run. Throws
  // std::bad_alloc.
  void give_tokens(heddle_call& (*call)(void* user, uint32_t step), void* user);

  // Resets the steps. Call it before each run.
  void begin();
  // Bracket a kernel's run(): `answer` is what run() returned, and started() returns the status for the scheduler. A step that completed
  // before run() returned is done from then on; one that completed and then failed to start has failed.
  void starting(uint32_t step);
  heddle_status started(uint32_t step, heddle_status answer);
  // [any thread] Completes the step with `status`. REQUIRES: the caller has claimed the step's token (TokenSlot::claim) and, if the step
  // failed, left the reason with it.
  void publish(uint32_t step, heddle_status status);
  // [any thread] Signals the steps before `end` that are under way, or start later in this run, to complete soon. Each is signalled once.
  void abort(uint32_t end);

  // [any thread] Reports `text` as the failure of a step that is under way, the first with a communicator or else the first; false: none
  // is.
  bool blame(FailureLog& failures, const std::string& text) const;

  // Registers, after a run that was given up, what is still under way, in place of what it registered before. Throws std::bad_alloc unless
  // all steps have completed; what was registered before then stays.
  void note_unanswered(const LeftWork& left);
  // Whether steps were under way when note_unanswered() was called last.
  bool left_work() const { return unanswered_ != nullptr; }

 private:
  struct Pending {
    TokenSlot* slot = nullptr;  // holds the state of the step
    heddle_status status = HEDDLE_OK;
    const heddle_kernel* kernel = nullptr;
    heddle_run_context* context = nullptr;
  };
  Pending& of(uint32_t step) const { return pending_[slots_[step]]; }
  void tell(uint32_t step);
  void finish(uint32_t step, heddle_status status);

  const Plan& plan_;
  void (*const done_)(void* user, uint32_t step, heddle_status status);
  void* const user_;
  std::vector<uint32_t> steps_;                                                                      // in plan order
  std::vector<uint32_t> slots_;                                                                      // by step
  mutable std::vector<Pending> pending_;                                                             // by slot
  std::atomic<uint32_t> told_end_{0};                                                                // steps before it are signalled to end
  const std::shared_ptr<std::atomic<uint32_t>> count_ = std::make_shared<std::atomic<uint32_t>>(0);  // steps under way
  std::shared_ptr<Unanswered> unanswered_;
};

}  // namespace heddle

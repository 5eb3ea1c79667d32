// Execution: one context of a plan, which runs it again and again over what is bound to it.
//
// Exclusive: one run at a time (a second is refused with Code::busy). Several executions of one plan run concurrently over shared constants
// and variables. Everything is allocated by create; run() allocates nothing, takes no lock (unless the net has variables) and makes no
// system call of its own on the serial path. What it is made of has a header each: memory, views, bindings, variables, the steps, their
// subnets, devices, and the log of failures.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compile/plan.h"
#include "context/bindings.h"
#include "context/context_memory.h"
#include "context/run_variables.h"
#include "context/value_views.h"
#include "heddle/executor.h"
#include "heddle/status.h"
#include "memory/workspace.h"
#include "run/device/device_run.h"
#include "run/failure_log.h"
#include "run/pending_steps.h"
#include "run/run_scope.h"
#include "run/run_settings.h"
#include "run/step_contexts.h"
#include "run/step_resources.h"
#include "run/subnets/subnets.h"
#include "run/update_indices.h"
#include "schedule/scheduler.h"
#include "state/variables.h"

namespace heddle {

struct ExecutionOptions {
  Executor* executor = nullptr;  // null: the calling thread alone
  int max_threads = 1;
  SchedulerOptions scheduler;
  // Where it works; has reserved for the plan. Null: in memory of its own.
  Workspace* workspace = nullptr;
  void* transient = nullptr;  // for the host's part: caller's buffer of at least plan.context_bytes(), 64-byte aligned
  int64_t transient_bytes = 0;
  // Of a subnet: the run in whose step `outer_step` it is run. Null: it is none. Outlives the execution.
  RunScope* outer = nullptr;
  uint32_t outer_step = 0;
  Scheduler* outer_scheduler = nullptr;      // of that run
  StepResources* outer_resources = nullptr;  // of that context
  // Of a subnet of a step on a device: the devices of the run around it, where the device's part of its memory lies, and which of the
  // step's subnets it is. Null: its operator runs on the host.
  const DeviceRun* outer_devices = nullptr;
  std::byte* device_part = nullptr;
  uint32_t subnet = 0;
};

class Execution {
 public:
  // `variables` may be null when the plan has none. Errors: out_of_memory, invalid_argument (transient buffer too small or unaligned),
  // device_failed.
  static Result<std::unique_ptr<Execution>> create(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables,
                                                   const ExecutionOptions& options);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Plan& plan() const { return *plan_; }
  // Moves it to `workspace`, which has reserved for the plan, unless it is there; allocates nothing, but for resources of streams that are
  // not there yet. Bindings stay, results that lay in the memory it had are left behind. Not while running. Errors: as StepResources::bind.
  Status follow(Workspace& workspace) {
    if (memory_.generation() == workspace.generation()) return {};
    memory_.move_to(workspace);
    return moved();
  }
  // The same for one that works in a transient buffer: to another one.
  Status follow(std::byte* transient) {
    memory_.move_to(transient);
    return moved();
  }
  // Of a subnet of a step on a device: to where the memory of the context around it is now, and to its streams.
  Status follow(Workspace& workspace, std::byte* transient, std::byte* device_part);
  // Row-major bytes of the plan's input `i`; must stay valid until rebound. Not while running.
  void bind_input(size_t i, const void* data) { bindings_.bind_input(i, data); }
  // Where output `i` is to be left; null: in the arena, valid until the next run. Without a copy where its buffer is the arena's.
  void bind_output(size_t i, void* data) { bindings_.bind_output(i, data); }
  // No input and no output is bound any more.
  void unbind() { bindings_.unbind(); }
  // After a run: dtype, true shape and bytes of output `i`.
  TensorView output(size_t i) const { return bindings_.output(i); }
  // Any value by its id, for dumps and checks; its bytes may have been overwritten by later steps.
  const heddle_tensor& view(ValueId value) const { return views_.of(value); }

  // One run, on the calling thread and those of the executor. Waits for its turn with the session's variables, if the net has any. Errors:
  // busy (a run is under way, a device has not answered); missing_input, shape_mismatch, invalid_argument (what is bound); hazard (a
  // variable is half-updated); kernel_failed, device_failed; cancelled, deadline_exceeded; what `settings.seen` answers.
  Status run(const RunSettings& settings);
  // As run, on a thread that is given back while only asynchronous steps are left; kept by runs that hold a turn, with variables or in
  // shared memory, but not by those of subnets in them. True: over, with the status. False: it has left the calling thread, which touches
  // nothing of it any more, and goes on in resume(), called once for each call of `leave.go_on`.
  bool start(const RunSettings& settings, const RunLeave& leave, Status* status);
  bool resume(Status* status);
  // As run, of a plan that only enqueues: does that and returns; when it is done, and whether it failed, is its stream's to say.
  Status enqueue(const RunSettings& settings);
  // A step of the net around this subnet has failed on its stream, not one of its own: its number, and what is known.
  const std::optional<DeviceRun::Failure>& failure_outside() const { return failure_outside_; }
  // Whether start() may leave its thread.
  bool may_leave() const { return plan_->has_asynchronous_steps; }
  // [any thread] Ends the run that is under way as soon as the steps in flight are done. Code::cancelled is what run returns.
  void cancel() { stop(false); }
  // [any thread] Of a subnet, once start() is called and until its run is over: ends the run if that around it is told to end; with `all`
  // in any case, the tails of both too.
  void end_with_outer(bool all) {
    if (all || scope_.outer_should_stop()) stop(all);
  }
  // A device of the last run did not answer in time, and may still read and write what the execution holds: it must stay, with its
  // workspace and variables, and cannot run. [one thread at a time] Busy, naming device and step; ok once the device has answered.
  Status answered();
  // Whether nothing of it is unanswered, by what devices say now; allocates nothing that it needs. [one thread at a time]
  bool look_for_answers() noexcept;
  // Of one that is kept until it is answered: its workspace, and the next one of the chain. Whoever keeps it says what they are.
  struct Kept {
    std::shared_ptr<Workspace> workspace;
    std::unique_ptr<Execution> next;
  };
  Kept& kept() { return kept_; }
  // What others are told that work with the same memory or variables; null: nothing is unanswered.
  std::shared_ptr<const Unanswered> unanswered() const;
  // Bytes of values that no plan could hold (dynamic extents).
  int64_t unplanned_bytes() const { return steps_.unplanned_bytes(0); }
  // Bytes that it holds now on the host or on a device of the plan: memory of its own, unplanned values, subnets' own.
  int64_t allocated_bytes(uint8_t device = 0) const;
  // Where a value's bytes are on the host: where `view` says, or in `staging` when they lie on a device. Not while running, but in `seen`.
  Result<void*> on_host(ValueId value, std::vector<std::byte>& staging) const;
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  Execution(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables, ContextMemory memory,
            std::unique_ptr<StepResources> resources, std::unique_ptr<DeviceRun> devices, const ExecutionOptions& options);
  // Of a run that was opened, or is being opened: when it goes, the next one may begin, whatever has ended this one.
  class Ending {
   public:
    explicit Ending(Execution& execution) : execution_(&execution) {}
    ~Ending() {
      if (!execution_) return;
      execution_->turn_.leave();
      execution_->running_.store(false, std::memory_order_release);
    }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    // The run goes on: close() ends it.
    void release() { execution_ = nullptr; }

   private:
    Execution* execution_;
  };
  Status moved();
  Status admit();
  Status open(const RunSettings& settings);
  Status close(bool complete, Status stopped);
  void begin(const RunSettings& settings, uint64_t deadline);
  Status run_observed(const std::function<Status(uint32_t)>& seen);
  Status send();
  Status end(bool complete, Status stopped);
  void settle(bool complete) noexcept;
  Status why(Status stopped);
  bool told_from_outside();
  Status copy_outputs();
  bool updates_begun() const;
  bool gave_up() const;
  void note_device_failures();
  void stop(bool all);
  void tell(bool all);
  static void step_failed(void* self, uint32_t step, heddle_status status);
  static void step_done(void* self, uint32_t step, heddle_status status);
  static void end_soon(void* self, bool all);
  static void look(void* self);
  heddle_status wait_for(uint32_t step);
  static bool outer_stops(void* self);
  static bool told_to_end(void* scope);
  static void tail_begins(void* self);

  // Each part is made of those above it; devices_ alone stands behind steps_, which uses it, because it has to go first.
  const std::shared_ptr<const Plan> plan_;
  RunVariables variables_;
  RunScope scope_;
  FailureLog failures_;
  ContextMemory memory_;
  ValueViews views_;
  Bindings bindings_;
  Scheduler scheduler_;
  Subnets subnets_;
  const std::unique_ptr<StepResources> resources_;
  PendingSteps pending_;
  StepContexts steps_;
  const UpdateIndices update_indices_;
  const std::unique_ptr<DeviceRun> devices_;  // null: everything runs on the host. The first to go: what it calls back are the steps
  const uint32_t outer_step_, subnet_;
  const DeviceRun* const outer_devices_;
  std::optional<DeviceRun::Failure> failure_outside_;
  std::optional<uint32_t> aborted_at_;  // a step of the last run that was in flight on a device
  std::atomic<bool> running_{false};
  Kept kept_;
  FairSharedMutex::Hold turn_;  // with the variables, of the run that is under way
  uint32_t observed_ = 0;       // steps done of a run that is observed
  bool observing_ = false;
  bool gave_up_ = false;       // a step of it that did not complete
  bool tail_refused_ = false;  // its updates were told apart as wrong before the first of them
  struct {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    heddle_status status = HEDDLE_OK;
  } awaited_;  // an asynchronous step of a run that is observed
};

}  // namespace heddle

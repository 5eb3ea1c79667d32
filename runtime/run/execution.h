// Execution: one context of a plan, which runs it repeatedly over what is bound to it.
//
// Threads: one run at a time (a second is refused with Code::busy); unless marked [any thread], functions must not be called concurrently.
// Several executions of one plan run concurrently over shared constants and variables. create() allocates everything; run() allocates
// nothing, takes no lock (unless the net has variables or communicators) and makes no system call of its own on the serial path. Its parts
// have a header each: memory, views, bindings, variables, the steps, their subnets, devices, and the log of failures.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "compile/plan.h"
#include "context/bindings.h"
#include "context/context_memory.h"
#include "context/run_variables.h"
#include "context/value_views.h"
#include "device/outstanding_work.h"
#include "heddle/executor.h"
#include "heddle/status.h"
#include "memory/workspace.h"
#include "run/device/device_run.h"
#include "run/failure_log.h"
#include "run/left_work.h"
#include "run/pending_steps.h"
#include "run/run_scope.h"
#include "run/run_settings.h"
#include "run/run_state.h"
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
  // The workspace that it works in, which has reserved for the plan. Null: in memory of its own.
  Workspace* workspace = nullptr;
  void* transient = nullptr;  // for the host's part: a buffer of the caller of at least plan.context_bytes(), 64-byte aligned
  int64_t transient_bytes = 0;
  // The runtime's list, in which it registers the work that its runs leave outstanding. Null: a list of its own, or, for a subnet, that of
  // the outer context.
  std::shared_ptr<OutstandingWork> outstanding;
  std::shared_ptr<Communicators> communicators;  // of the session; null: it has none
  // For a subnet: the run whose step `outer_step` runs it. Null: this is no subnet. Must outlive the execution.
  RunScope* outer = nullptr;
  uint32_t outer_step = 0;
  Scheduler* outer_scheduler = nullptr;      // of that run
  StepResources* outer_resources = nullptr;  // of that context
  const LeftWork* outer_left = nullptr;      // likewise
  // For a subnet of a step on a device: the devices of the outer run, the device's part of the subnet's memory, and which of the step's
  // subnets it is. Null: its operator runs on the host.
  const DeviceRun* outer_devices = nullptr;
  std::byte* device_part = nullptr;
  uint32_t subnet = 0;
};

class Execution final : public OutstandingWork::Kept {
 public:
  // `variables` may be null when the plan has none. Errors: out_of_memory, invalid_argument (transient buffer too small or unaligned),
  // device_failed.
  static Result<std::unique_ptr<Execution>> create(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables,
                                                   const ExecutionOptions& options);
  ~Execution() override;
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Plan& plan() const { return *plan_; }
  // Moves the execution to `workspace`, which has reserved for the plan, unless it works there already. Allocates nothing, except stream
  // resources that do not exist yet. Bindings stay; results in the previous memory are lost. Not while running. Errors: as
  // StepResources::bind.
  Status follow(Workspace& workspace) {
    if (memory_.generation() == workspace.generation()) return {};
    memory_.move_to(workspace);
    return moved();
  }
  // Moves an execution that works in a transient buffer to another buffer.
  Status follow(std::byte* transient) {
    memory_.move_to(transient);
    return moved();
  }
  // Moves the execution of a subnet of a step on a device to the current memory and streams of the outer context.
  Status follow(Workspace& workspace, std::byte* transient, std::byte* device_part);
  // Binds the row-major bytes of the plan's input `i`, which must stay valid until rebound. Not while running.
  void bind_input(size_t i, const void* data) { bindings_.bind_input(i, data); }
  // Sets where output `i` is written; null: in the arena, valid until the next run. No copy is made if its buffer is the arena's.
  void bind_output(size_t i, void* data) { bindings_.bind_output(i, data); }
  // Unbinds all inputs and outputs.
  void unbind() { bindings_.unbind(); }
  // Returns dtype, true shape and bytes of output `i`, after a run.
  TensorView output(size_t i) const { return bindings_.output(i); }
  // Returns any value by its id, for dumps and checks; later steps may have overwritten its bytes.
  const heddle_tensor& view(ValueId value) const { return views_.of(value); }

  // Runs the plan once, on the calling thread and those of the executor. Waits for its turns with communicators and the session's
  // variables, if the net has any. Errors: busy (a run is under way, or a device has outstanding work); missing_input, shape_mismatch,
  // invalid_argument (what is bound, or other ranks run other collectives); missing_resource (the session has no such communicator);
  // hazard (a variable is half-updated); kernel_failed, device_failed; cancelled, deadline_exceeded; what `settings.observer`
  // returns.
  Status run(const RunSettings& settings);
  // Like run(), but gives the calling thread back while only asynchronous steps are left. A run that holds a turn, with variables or in
  // shared memory, keeps its thread; runs of subnets inside it do not. Returns true if the run is over, with its status. Returns false if
  // it has left the calling thread, which must not touch it any more: it continues in resume(), to be called once for each call of
  // `leave.go_on`.
  bool start(const RunSettings& settings, const RunLeave& leave, Status* status);
  bool resume(Status* status);
  // Like run(), for a plan that only enqueues: enqueues the work and returns. Its stream reports when it is done and whether it failed.
  Status enqueue(const RunSettings& settings);
  // Set if not a step of this subnet but one of the outer net has failed on its stream: the number of that step, and what is known of it.
  const std::optional<StreamAnswers::Failure>& failure_outside() const { return failure_outside_; }
  // Whether start() may leave its thread.
  bool may_leave() const { return plan_->has_asynchronous_steps; }
  // [any thread] Ends the run that is under way as soon as the steps in flight are done; run() then returns Code::cancelled.
  void cancel() { stop(false); }
  // [any thread] For a subnet, once start() is called and until its run is over: ends the run if the outer run was requested to stop; with
  // `all` in any case, and the update phases of both too.
  void end_with_outer(bool all) {
    if (all || scope_.outer_should_stop()) stop(all);
  }
  // [one thread at a time] Returns Busy, naming device and step, if work of the last run is outstanding: the device may still read and
  // write what the execution holds, which must stay alive with its workspace and variables and cannot run. Ok once the work has completed.
  Status answered();
  // [one thread at a time] Queries the devices again; true if no work is outstanding.
  bool look_for_answers() noexcept override;
  // Returns what is outstanding of it and of subnets in it, from the list; null: nothing is.
  std::shared_ptr<const Unanswered> unanswered() const override { return left_.item(); }
  // Whether the last run has left work that answered() was not asked for since, or that it has found outstanding.
  bool left_work() const { return state_.state() == RunState::State::unanswered; }
  // Returns the bytes of unplanned values (dynamic extents) on the host.
  int64_t unplanned_bytes() const { return steps_.unplanned_bytes(0); }
  // Returns the bytes that it holds now on the host or on a device of the plan: memory of its own, unplanned values, memory of subnets.
  int64_t allocated_bytes(uint8_t device = 0) const;
  // Returns the bytes of a value on the host: those of view(), or a copy in `staging` if they lie on a device. Between runs or in the
  // observer.
  Result<void*> on_host(ValueId value, std::vector<std::byte>& staging) const;
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  Execution(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables, ContextMemory memory,
            std::unique_ptr<StepResources> resources, std::unique_ptr<DeviceRun> devices, const ExecutionOptions& options);
  // Ends a run that was opened, or is being opened: its destructor leaves the turns and admits the next run, however this one ended.
  class Ending {
   public:
    explicit Ending(Execution& execution) : execution_(&execution) {}
    ~Ending() {
      if (!execution_) return;
      const bool looking = execution_->state_.state() == RunState::State::looking;
      const bool work_left = looking || execution_->has_left_work();
      if (execution_->resources_->uses_communicators()) {
        execution_->resources_->leave();
        if (!work_left) execution_->resources_->release_communicators();
      }
      execution_->turn_.leave();
      execution_->state_.on_alone(work_left ? RunRules::Event::give_up : RunRules::Event::end);
    }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    // The run continues: close() ends it.
    void release() { execution_ = nullptr; }

   private:
    Execution* execution_;
  };
  Status moved();
  Status admit();
  Status open(const RunSettings& settings);
  Status enter_communicators(const Interruption& until);
  bool agree() noexcept;
  void abort_communicators(const Status* failure = nullptr) noexcept;
  Status enter_variables();
  void have_variables_alone() noexcept;
  void check_finite_outputs() noexcept;
  Status close(bool complete);
  void begin(const RunSettings& settings, uint64_t deadline);
  Status send();
  Status end(bool complete, Status stopped);
  void settle(bool complete) noexcept;
  // Whether a part of it says that work of the run which ends now is outstanding. Without memory to register that, it is waited for first.
  bool has_left_work() const { return pending_.left_work() || (devices_ && devices_->answers().left_work()) || subnets_.left_work(); }
  void note_streams() noexcept;
  Status drained();
  Status why(Status stopped);
  bool outer_stop_requested();
  bool told_from_outside();
  Status copy_outputs();
  void check_update_indices() noexcept;
  bool updating() const;
  bool updates_begun() const;
  bool was_held() const;
  bool check_faults(uint32_t end) noexcept;
  void note_fault(const heddle_fault& fault) noexcept;
  bool gave_up() const;
  void note_device_failures();
  void stop(bool all);
  void tell(bool all, const Status* why = nullptr);
  bool blame(const std::string& text);
  void note_abort(uint32_t step);
  static void step_failed(void* self, uint32_t step, heddle_status status);
  static void step_done(void* self, uint32_t step, heddle_status status);
  static void end_soon(void* self, bool all);
  static void look(void* self);
  static bool outer_stops(void* self);
  static bool stop_requested(void* self);
  static bool tail_begins(void* self);
  static bool may_be_updating(void* self);
  static bool observe(void* self, uint32_t step);
  bool show(uint32_t step);

  // Each part uses those above it. Two exceptions: subnets_ also uses resources_, and devices_ comes last of the parts although others use
  // it, because it has to be destroyed before them.
  const std::shared_ptr<const Plan> plan_;
  RunVariables variables_;
  RunScope scope_;
  std::atomic<uint64_t> stops_begun_{0}, stops_ended_{0};  // calls of stop()
  uint64_t stops_before_ = 0;                              // stops_ended_ when the run began
  FailureLog failures_;
  ContextMemory memory_;
  const LeftWork left_;
  ValueViews views_;
  Bindings bindings_;
  Scheduler scheduler_;
  Subnets subnets_;
  const std::unique_ptr<StepResources> resources_;
  PendingSteps pending_;
  StepContexts steps_;
  const UpdateIndices update_indices_;
  const std::unique_ptr<DeviceRun> devices_;  // null: everything runs on the host. Destroyed first: it calls back the steps
  const uint32_t outer_step_, subnet_;
  const DeviceRun* const outer_devices_;
  std::optional<StreamAnswers::Failure> failure_outside_;
  std::optional<uint32_t> aborted_at_;  // a step of the last run that was in flight on a device
  RunState state_;
  FairSharedMutex::Hold turn_;                                 // the turn with the variables of the run that is under way
  Interruption until_;                                         // what ends its waits
  uint64_t finite_outputs_ = 0;                                // RunSettings::finite_outputs, likewise
  const std::function<Status(uint32_t)>* observer_ = nullptr;  // RunSettings::observer of the run that is under way
  Status refused_;                                             // by the observer, which is not called again
};

}  // namespace heddle

// Execution: one run context of a plan: its arena, the views its steps see, and the bindings of inputs and outputs.
//
// Exclusive: one run at a time (a second is refused with Code::busy). Several executions of one plan run concurrently over shared constants
// and variables. Everything is allocated by create; run() allocates nothing, takes no lock (unless the net has variables) and makes no
// system call of its own on the serial path.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "compile/plan.h"
#include "heddle/executor.h"
#include "heddle/status.h"
#include "memory/workspace.h"
#include "run/failure_log.h"
#include "schedule/run_control.h"
#include "schedule/scheduler.h"
#include "schedule/step_call.h"
#include "state/variables.h"

namespace heddle {

// Makes `workspace` large enough for `plan`. Errors: out_of_memory, device_failed.
Status reserve(Workspace& workspace, const Plan& plan);
// The same but for the host's part, which the caller of a context has brought.
Status reserve_on_devices(Workspace& workspace, const Plan& plan);

struct ExecutionOptions {
  Executor* executor = nullptr;  // null: the calling thread alone
  int max_threads = 1;
  SchedulerOptions scheduler;
  // Where it works; has reserved for the plan. Null: in memory of its own.
  const Workspace* workspace = nullptr;
  void* transient = nullptr;  // for the host's part: caller's buffer of at least plan.context_bytes(), 64-byte aligned
  int64_t transient_bytes = 0;
};

struct RunSettings {
  uint64_t seed = 0;
  int64_t step = 0;             // for random operators, where the net has no step counter of its own
  int64_t deadline_ns = 0;      // from when it was asked for; 0: none; negative: it has passed
  uint64_t asked_ticks = 0;     // in base/clock.h ticks; 0: when it begins
  StepSpan* profile = nullptr;  // one per step; null: off
  // Set by who then calls cancel(): so that it counts even if it comes before the run begins. Null: only runs under way are cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // For dumps, numeric checks and comparisons: the steps run serially and this is called behind each; a failing status ends the run.
  const std::function<Status(uint32_t step)>* seen = nullptr;
  // In ticks; 0: none.
  uint64_t deadline() const {
    if (deadline_ns <= 0) return deadline_ns < 0 ? 1 : 0;
    return (asked_ticks ? asked_ticks : ticks()) + ns_to_ticks(static_cast<double>(deadline_ns));
  }
};

class DeviceRun;
class Unanswered;
class LateStep;

class Execution {
 public:
  // `variables` may be null when the plan has none. Errors: out_of_memory, invalid_argument (transient buffer too small or unaligned).
  static Result<std::unique_ptr<Execution>> create(std::shared_ptr<const Plan> plan, std::shared_ptr<VariableStore> variables,
                                                   const ExecutionOptions& options);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Plan& plan() const { return *plan_; }
  // Moves it to `workspace`, which has reserved for the plan, unless it is there; allocates nothing. Bindings stay, results that lay in the
  // memory it had are left behind. Not while running.
  void follow(const Workspace& workspace) {
    if (place_ != workspace.place()) move_to(workspace);
  }
  // Row-major bytes of the plan's input `i`; must stay valid until rebound. Not while running.
  void bind_input(size_t i, const void* data);
  // Where output `i` is to be left; null: in the arena, valid until the next run. Without a copy where its buffer is the arena's.
  void bind_output(size_t i, void* data);
  // No input and no output is bound any more.
  void unbind();
  // After a run: dtype, true shape and bytes of output `i`.
  TensorView output(size_t i) const;
  // Any value by its id, for dumps and checks; its bytes may have been overwritten by later steps.
  const heddle_tensor& view(ValueId value) const { return views_[view_of_value_[value.index]]; }

  Status run(const RunSettings& settings);
  // [any thread] Ends the run that is under way as soon as the steps in flight are done. Code::cancelled is what run returns.
  void cancel() {
    uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, stop_cancelled);  // in one order with the accesses of begin()
    scheduler_->wake();
  }
  // A device of the last run did not answer in time, and may still read and write what the execution holds: it must stay, with its
  // workspace and variables, and cannot run. [one thread at a time] Busy, naming device and step; ok once the device has answered.
  Status answered();
  // What others are told that work with the same memory or variables; null: nothing is unanswered.
  std::shared_ptr<const Unanswered> unanswered() const;
  // Bytes of values that no plan could hold (dynamic extents).
  int64_t unplanned_bytes() const;
  // Bytes that it holds now on the host or on a device of the plan: memory of its own, unplanned values, subnets' own.
  int64_t allocated_bytes(uint8_t device = 0) const;
  // Where a value's bytes are on the host: where `view` says, or in `staging` when they lie on a device. Not while running, but in `seen`.
  Result<void*> on_host(ValueId value, std::vector<std::byte>& staging) const;
  const Scheduler& scheduler() const { return *scheduler_; }

 private:
  friend class LateStep;
  struct StepContext {
    heddle_run_context abi = {};
    Execution* owner = nullptr;
    uint32_t step = 0;
    void* thread_scratch = nullptr;  // of a late step; null: the execution's
  };
  explicit Execution(std::shared_ptr<const Plan> plan);
  Status build(const ExecutionOptions& options);
  void build_views();
  void build_steps();
  void build_bindings();
  Status build_nested();
  // It runs in that step of `parent`, and ends when that is to end.
  void set_parent(Execution& parent, uint32_t step);
  Status reach_memory(const ExecutionOptions& options);
  void move_to(const Workspace& workspace);
  void rebase(std::byte* host);
  std::byte* nested_memory(uint32_t step) const;
  std::byte* home_of(const PlanValue& value) const;
  std::byte* staged_output(size_t i) const;
  uint32_t view_index(const Operand& operand);
  Status admit();
  Status check_inputs_bound() const;
  Status check_contents() const;
  Status check_overlaps();
  void begin(const RunSettings& settings, uint64_t deadline);
  Status run_observed(const std::function<Status(uint32_t)>& seen);
  bool told_to_end();
  static bool told_to_end_by(void* self);
  Status end(bool complete, Status stopped);
  bool updates_begun() const;
  Status check_extents() const;
  void mark_torn();
  void copy_outputs();
  heddle_status run_subnet(uint32_t step, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                           heddle_tensor* const* outputs, uint32_t output_count);
  bool made_for(std::span<const heddle_tensor* const> inputs);
  Execution* find_nested(uint32_t step, const Net* subnet, std::span<const heddle_tensor* const> inputs, size_t outputs);
  bool should_stop(uint32_t step);
  Status reach_devices();
  void find_variables();
  Status freshen_variables(const Interruption& until);
  void note_device_failures();
  static heddle_status run_with_extents(const heddle_run_context* context, int64_t begin, int64_t end);
  struct TileSpan {
    int64_t begin = 0, end = 0;
  };
  heddle_status run_tiles(uint32_t step, heddle_run_function run, const heddle_run_context* context, TileSpan tiles, double tile_ns);
  static heddle_status run_in_ranges(const heddle_run_context* context, int64_t begin, int64_t end);
  static heddle_status enqueue(const heddle_run_context* context, int64_t begin, int64_t end);
  static void fence_passed(void* user, heddle_status failed, const char* text);
  static bool outer_stops(void* user);
  uint64_t next_trip(uint32_t step, const Net* subnet);
  static void step_failed(void* user, uint32_t step, heddle_status status);
  static const heddle_host* host();
  static StepContext& context_of(const void* context) { return *static_cast<StepContext*>(const_cast<void*>(context)); }

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<VariableStore> variables_;
  struct VariableUse {
    uint32_t variable = 0;
    const Device* device = nullptr;  // null: on the host
    bool updated = false;
  };
  std::vector<VariableUse> variable_uses_;
  std::unique_ptr<Workspace> own_;  // null: it was given all that it needs
  uint64_t place_ = 0;              // of the workspace
  bool left_behind_ = true;         // results of the last run, where the memory was then; and before the first one
  std::byte* arena_ = nullptr;
  std::byte* thread_scratch_ = nullptr;
  std::deque<int64_t> extents_;
  std::vector<heddle_tensor> views_;
  std::vector<uint32_t> view_of_value_;
  struct ArenaView {
    uint32_t view = 0;
    uint8_t device = 0;
    int64_t offset = 0;
  };
  std::vector<ArenaView> arena_views_;
  std::vector<heddle_tensor*> operands_;  // flat: inputs and outputs of all steps
  std::vector<StepContext> contexts_;
  std::vector<Step> steps_;
  std::vector<std::vector<uint32_t>> input_views_;  // by plan input: views to patch
  std::vector<const void*> inputs_;
  size_t unbound_inputs_ = 0;
  struct OutputBinding {
    void* user = nullptr;
    std::vector<uint32_t> views;  // to patch; empty: copied at the end of the run
    std::byte* home = nullptr;    // in the arena
  };
  std::vector<OutputBinding> outputs_;
  int64_t copies_ = 0;  // outputs that must be copied at the end: bound ones that come into being elsewhere, and variables
  // Memory that a run reads or writes.
  struct Region {
    enum Kind : uint8_t { memory, input, output };
    uintptr_t begin = 0, end = 0;
    Kind kind = memory;
    size_t index = 0;  // of the input or output
  };
  Status overlap(const Region& a, const Region& b) const;
  std::vector<Region> regions_;
  bool bindings_checked_ = false;
  heddle_run_info info_ = {};
  RunControl control_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<DeviceRun> devices_;                           // null: everything runs on the host
  std::vector<std::unique_ptr<LateStep>> late_;                  // by step; empty when no step is late
  std::vector<std::vector<std::unique_ptr<Execution>>> nested_;  // by step and subnet; empty when there are none
  struct Trips {
    const Net* subnet = nullptr;
    uint64_t count = 0;  // runs of it in this run, whatever its shapes
  };
  std::vector<std::vector<Trips>> trips_;  // by step; empty when there are no subnets
  Execution* parent_ = nullptr;            // of the execution of a subnet
  std::atomic<int64_t> subnet_runs_{0};    // in this run: held to the limit loop_trips
  uint32_t parent_step_ = 0;               // whose subnet it is
  const Net* subnet_ = nullptr;            // which of its subnets
  std::vector<const void*> recognised_;    // by plan_->known_inputs: the constant that had that content when it was last bound
  std::vector<Shape> result_shapes_;       // of a subnet: what views of its results point to
  std::atomic<bool> running_{false};
  uint32_t observed_ = 0;  // steps done of a run that is observed
  FailureLog failures_;
};

}  // namespace heddle

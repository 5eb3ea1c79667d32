// Subnets: the nets inside the operators of one context (branches, loop bodies): an execution for each plan of each, found or compiled,
// bound, run on the threads of the run around it, and its results handed back.
//
// Those of steps whose extents are known were compiled with the net and work in the step's scratch. Those of late steps are compiled for
// the types that they meet, in memory of their own, and kept while few. Belongs to one Execution; a step runs one subnet at a time, and
// different steps theirs side by side.
//
// A run of which only asynchronous steps are left gives its thread back, where the step's kernel resumes: the step is pending, and run
// again when there is something to do. (subnet_leave.cc)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "device/unanswered.h"
#include "heddle/abi.h"
#include "heddle/status.h"
#include "run/failure_log.h"
#include "run/run_scope.h"

namespace heddle {

class DeviceRun;
class Execution;
struct ExecutionOptions;
struct RunSettings;
class Scheduler;
class StepResources;

class Subnets {
 public:
  using Inputs = std::span<const heddle_tensor* const>;
  using Outputs = std::span<heddle_tensor* const>;

  // All outlive it. What goes wrong is left in `failures`. Runs of subnets find helpers among the threads of `scheduler`.
  Subnets(const Plan& plan, const ContextMemory& memory, RunScope& scope, FailureLog& failures, Scheduler& scheduler,
          StepResources& resources, DeviceRun* devices);
  ~Subnets();
  Subnets(const Subnets&) = delete;
  Subnets& operator=(const Subnets&) = delete;
  // Executions of all that the plan brings. Before anything else. Errors: as Execution::create.
  Status create_planned();
  // Before a run with asynchronous steps. False: in it all runs stay on their threads, as they do where there are no alarms for others.
  void begin(bool may_leave);

  // For a kernel of step `step`, while it runs, for the trip that it says: fills `outputs`; where one has null data, with a view that is
  // valid until the step's next subnet. The reason of a failure is noted for the step. HEDDLE_PENDING: it has left the thread, see call().
  heddle_status run(uint32_t step, const heddle_subnet* subnet, uint64_t trip, Inputs inputs, Outputs outputs);
  // For a late step, while its outputs are inferred: the types of those outputs of the subnet that are asked for (not null). Errors: as
  // inference, told from outside.
  Status infer(uint32_t step, const heddle_subnet* subnet, Inputs inputs, std::span<heddle_type* const> outputs);
  // For a late step that declares that it runs a subnet with such inputs. Errors: as compile_subnet(), told from outside; out_of_memory;
  // limit_exceeded.
  Status plan(uint32_t step, const heddle_subnet* subnet, Inputs inputs);

  // Runs the kernel of a step that suspends by `kernel`, which is told whether it is called again. HEDDLE_PENDING: the scheduler is told
  // when to call this once more.
  heddle_status call(uint32_t step, heddle_status (*kernel)(const heddle_run_context* context, bool resumed),
                     const heddle_run_context* context);
  // [any thread] The run is to end: those inside that may leave their threads are to end with it; with `all`, those in its tail too.
  void tell(bool all);

  bool empty() const { return steps_.empty(); }
  // What asynchronous steps inside have not completed of runs that were given up; null: nothing. look(): those that have are let go.
  std::shared_ptr<const Unanswered> unanswered() const;
  void look();

  // The memory is elsewhere now.
  Status move();
  // Held by subnets in memory of their own, and by what is inside them.
  int64_t allocated_bytes() const;

 private:
  struct Compiled;
  // Of a step that suspends: what has become of the run of a subnet that it asked for.
  struct Leave {
    Leave(Subnets& of, uint32_t step_of) : all(of), step(step_of) {}
    Subnets& all;
    const uint32_t step;
    Compiled* subnet = nullptr;         // what the kernel asked for
    Execution* execution = nullptr;     // of that
    uint64_t trip = 0;                  // for which it asked
    bool left = false;                  // start() or resume() returned before the run was over
    bool asked = false;                 // and did so in this call of the kernel
    heddle_status mistake = HEDDLE_OK;  // how the kernel ended in spite of it: it is not called again, the run is brought to its end
    // The step is run again when there is something to do and its kernel has returned, in whichever order.
    enum : uint32_t { returned = 1, woken = 2 };
    std::atomic<uint32_t> state{0};
    // For tell(), by telling_: from start() until the run is over. And how many are just telling it.
    bool running = false;
    std::atomic<uint32_t> tellers{0};
  };
  struct OfStep {
    std::vector<std::unique_ptr<Compiled>> compiled;  // of a late step: in the order of last use
    std::unique_ptr<Leave> leave;                     // null: its runs stay on their threads
  };
  // What a kernel asks for.
  struct Call {
    uint32_t step = 0;
    const Net* net = nullptr;
    uint64_t trip = 0;
    Inputs inputs;
    Outputs outputs;
  };
  heddle_status admit(const Call& call);
  heddle_status choose(const Call& call, Compiled** found);
  static bool overwrites_result(const Call& call, const Compiled& subnet, size_t output);
  heddle_status bind(const Call& call, Compiled& subnet);
  heddle_status run_bound(const Call& call, Compiled& subnet);
  heddle_status finish(const Call& call, Compiled& subnet, Status status);
  bool start(Leave& leave, const RunSettings& settings, Status* status);
  bool resume(Leave& leave, Status* status);
  bool leave_thread(Leave& leave);
  bool end(Leave& leave);
  heddle_status go_on(const Call& call, Leave& leave);
  heddle_status settle(Leave& leave, heddle_status answer);
  heddle_status hand_back(const Call& call, Compiled& subnet);
  // The reason, left with the step: its own words, or an error as it is.
  heddle_status refuse(const Call& call, heddle_status code, const std::string& text);
  heddle_status fail(const Call& call, Status cause);
  Status from_outside(uint32_t step, const Net& net, Status status) const;
  bool is_own(uint32_t step, const Net* net) const;

  Compiled* find(uint32_t step, const Net* net, Inputs inputs, size_t outputs);
  // For a late step.
  Result<Compiled*> find_or_compile(uint32_t step, const Net* net, Inputs inputs);
  // For an execution inside `step`.
  ExecutionOptions options_inside(uint32_t step);
  Status make_room(OfStep& of, int64_t bytes, int64_t limit);

  const Plan& plan_;
  const ContextMemory& memory_;
  RunScope& scope_;
  FailureLog& failures_;
  Scheduler& scheduler_;
  StepResources& resources_;
  DeviceRun* const devices_;             // null: everything runs on the host
  std::vector<OfStep> steps_;            // by step; empty when there can be none
  std::atomic<bool> unanswered_{false};  // one of them may be
  bool any_leave_ = false;               // a step suspends
  bool may_leave_ = false;               // and does so in this run
  enum : uint32_t { told = 1, told_all = 2 };
  std::atomic<uint32_t> told_{0};  // in this run
  std::mutex telling_;
};

}  // namespace heddle

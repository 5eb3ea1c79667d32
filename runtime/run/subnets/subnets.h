// Subnets: the nets inside the operators of one context (branches, loop bodies). Each plan of each subnet has an execution, which is found
// or compiled, bound, and run on the threads of the outer run; its results are then handed to the operator.
//
// Subnets of steps whose extents are known were compiled with the net and work in the step's scratch. Subnets of late steps are compiled
// for the types that occur, work in memory of their own, and are kept while they are few.
//
// Belongs to one Execution. Threads: a step runs one subnet at a time, different steps run theirs concurrently; tell() may be called by any
// thread; create_planned(), begin(), look() and move() while nothing runs.
//
// When only asynchronous steps are left of a subnet's run, it gives its thread back if the step's kernel can resume: the step is suspended,
// and run again when there is something to do (subnet_leave.cc).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "heddle/abi.h"
#include "heddle/status.h"
#include "run/failure_log.h"
#include "run/run_scope.h"
#include "run/subnets/leave_state.h"

namespace heddle {

class DeviceRun;
class Execution;
struct ExecutionOptions;
class LeftWork;
struct RunSettings;
class Scheduler;
class StepResources;

class Subnets {
 public:
  using Inputs = std::span<const heddle_tensor* const>;
  using Outputs = std::span<heddle_tensor* const>;

  // All arguments must outlive it. Failures are noted in `failures`. Runs of subnets find helpers among the threads of `scheduler`, and
  // register what they leave outstanding as part of `left`.
  Subnets(const Plan& plan, const ContextMemory& memory, RunScope& scope, FailureLog& failures, Scheduler& scheduler,
          StepResources& resources, DeviceRun* devices, const LeftWork& left);
  ~Subnets();
  Subnets(const Subnets&) = delete;
  Subnets& operator=(const Subnets&) = delete;
  // Creates the executions of all planned subnets. Call it first. Errors: as Execution::create.
  Status create_planned();
  // Call it before a run with asynchronous steps. `may_leave` false: all subnet runs in it stay on their threads, as they also do if the
  // system has no alarm thread.
  void begin(bool may_leave);

  // Runs a subnet for the running kernel of step `step`, for trip `trip`. Fills `outputs`; an output with null data becomes a view that is
  // valid until the step's next subnet. The reason of a failure is noted for the step. HEDDLE_PENDING: it has left the thread, see call().
  heddle_status run(uint32_t step, const heddle_subnet* subnet, uint64_t trip, Inputs inputs, Outputs outputs);
  // For a late step whose outputs are being inferred: fills in the types of the requested (non-null) outputs of the subnet. Errors: as
  // inference, reported for the outer step.
  Status infer(uint32_t step, const heddle_subnet* subnet, Inputs inputs, std::span<heddle_type* const> outputs);
  // For a late step that declares that it runs a subnet with such inputs. Errors: as compile_subnet(), reported for the outer step;
  // out_of_memory; limit_exceeded.
  Status plan(uint32_t step, const heddle_subnet* subnet, Inputs inputs);

  // Runs the kernel of a step that may suspend, by `kernel`; `resumed` is true if it is called again. HEDDLE_PENDING: the step is
  // suspended, and Scheduler::complete() will be called when this must be called once more.
  heddle_status call(uint32_t step, heddle_status (*kernel)(const heddle_run_context* context, bool resumed),
                     const heddle_run_context* context);
  // [any thread] The outer run was requested to stop: signals the subnet runs that may leave their threads to end; with `all`, those in its
  // update phase too.
  void tell(bool all);

  bool empty() const { return steps_.empty(); }
  // Whether subnet runs were given up whose work was outstanding when look() was called last, which queries them.
  bool left_work() const { return left_work_.load(); }
  void look();

  // Call it when the context's memory has moved.
  Status move();
  // The bytes held by subnets in memory of their own, and by what is inside them.
  int64_t allocated_bytes() const;

 private:
  struct Compiled;
  // The state of the subnet run that a suspending step has requested.
  struct Leave {
    Leave(Subnets& of, uint32_t step_of) : all(of), step(step_of) {}
    Subnets& all;
    const uint32_t step;
    Compiled* subnet = nullptr;         // the subnet that the kernel requested
    Execution* execution = nullptr;     // of that subnet
    uint64_t trip = 0;                  // the trip that the kernel requested
    heddle_status mistake = HEDDLE_OK;  // the kernel's status if it ended with its subnet under way: it is not called again
    LeaveState state;
    std::atomic<uint32_t> tellers{0};  // threads that are signalling the run to end
  };
  struct OfStep {
    std::vector<std::unique_ptr<Compiled>> compiled;  // for a late step: in order of last use, the oldest first
    std::unique_ptr<Leave> leave;                     // null: the step's subnet runs stay on their threads
  };
  // A subnet run that a kernel requests.
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
  // Note the reason with the step, as a text or as an error, and return its code.
  heddle_status refuse(const Call& call, heddle_status code, const std::string& text);
  heddle_status fail(const Call& call, Status cause);
  Status from_outside(uint32_t step, const Net& net, Status status) const;
  bool is_own(uint32_t step, const Net* net) const;

  Compiled* find(uint32_t step, const Net* net, Inputs inputs, size_t outputs);
  // For a late step.
  Result<Compiled*> find_or_compile(uint32_t step, const Net* net, Inputs inputs);
  // The options of an execution inside `step`.
  ExecutionOptions options_inside(uint32_t step);
  Status make_room(OfStep& of, int64_t bytes, int64_t limit);

  const Plan& plan_;
  const ContextMemory& memory_;
  RunScope& scope_;
  FailureLog& failures_;
  Scheduler& scheduler_;
  StepResources& resources_;
  DeviceRun* const devices_;   // null: everything runs on the host
  std::vector<OfStep> steps_;  // by step; empty when there can be no subnets
  const LeftWork& left_;
  std::atomic<bool> left_work_{false};
  bool any_leave_ = false;  // some step may suspend
  bool may_leave_ = false;  // steps may suspend in this run
  enum class Told : uint8_t { nothing, to_end, to_end_updates };
  std::atomic<Told> told_{Told::nothing};  // what tell() has signalled in this run
};

}  // namespace heddle

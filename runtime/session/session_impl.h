// The implementation of Runtime and Session; private to the library and its tests.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/threads/mutex.h"
#include "base/threads/warm_slot.h"
#include "compile/prepack.h"
#include "device/device_manager.h"
#include "device/outstanding_work.h"
#include "heddle/session.h"
#include "heddle/training.h"
#include "memory/workspace.h"
#include "plugin/registry.h"
#include "resolve/rule_reader.h"
#include "run/execution.h"
#include "session/forked.h"
#include "session/observation.h"
#include "session/pipeline.h"
#include "session/spare_findings.h"
#include "state/variables.h"

namespace heddle {

struct Runtime::Impl {
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  // Work that is outstanding then stays outstanding: all that it needs is never freed.
  ~Impl() { outstanding->abandon(); }
  MadeInThisProcess made;
  Registry registry{read_rewrite_rule};
  const std::shared_ptr<OutstandingWork> outstanding = std::make_shared<OutstandingWork>();
  DeviceManager devices{outstanding};
  std::shared_ptr<ResourceTable> resources = std::make_shared<ResourceTable>(ResourceHolder::runtime);
  std::unique_ptr<Executor> own_executor;
  Executor* executor = nullptr;  // null: the calling thread alone
  int threads = 1;
  WorkspacePool workspaces;
  std::atomic<int64_t> sessions{0};  // the number of open nets: the last one frees the idle workspaces
};

// A plan and its idle executions, without memory; the cache holds it while it is recently used, contexts while they live.
struct PlanEntry {
  std::vector<TensorType> types;                 // of the inputs
  bool as_declared = false;                      // made for the types in the net's declaration
  std::vector<std::vector<std::byte>> contents;  // of the inputs that decide shapes
  std::shared_ptr<const Plan> plan;
  WorkspaceNeeds needs;  // of the plan
  PlanInfo::Times times;
  int64_t number = 0;     // its number among the plans that were made of the net
  int64_t footprint = 0;  // bytes that are freed with it (plan_footprint.h)
  Mutex mutex;
  std::shared_ptr<const PlanInfo> info HEDDLE_GUARDED_BY(mutex);          // made when it is first requested
  WarmSlot<std::unique_ptr<Execution>> last_idle;                         // the execution that was used last
  std::vector<std::unique_ptr<Execution>> idle HEDDLE_GUARDED_BY(mutex);  // the others
  // [any thread] Returns the public description of the plan.
  std::shared_ptr<const PlanInfo> described();
};

struct Model;

// One net of a session. Each net of a session shares ownership of what they have in common (variables, packed constants, resources).
struct Session::Impl {
  Impl(std::shared_ptr<Runtime::Impl> of, const SessionOptions& asked);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  std::shared_ptr<Runtime::Impl> runtime;
  Model* model = nullptr;  // owns this; handles share it
  std::shared_ptr<const RegistrySnapshot> registry;
  SessionOptions options;
  CompilationTarget target;  // of every plan
  PipelineOptions pipeline;  // defaults for every plan
  SchedulerOptions scheduler;
  Net net;             // resolved
  std::string path;    // of its file; empty: it was made in memory
  std::string folder;  // of its weights
  PlanInfo::Times load_times;
  std::shared_ptr<PackCache> packs;          // shared with plans
  std::shared_ptr<ResourceTable> resources;  // likewise
  std::shared_ptr<Communicators> communicators;
  std::shared_ptr<VariableStore> variables;
  std::vector<uint32_t> shape_inputs;
  SpareFindings spare_findings;  // of check()
  mutable Mutex mutex;
  std::list<std::shared_ptr<PlanEntry>> plans HEDDLE_GUARDED_BY(mutex);  // most recent first
  int64_t plans_made HEDDLE_GUARDED_BY(mutex) = 0;                       // Session::PlanCounts; also the three below
  int64_t plan_hits HEDDLE_GUARDED_BY(mutex) = 0;
  int64_t plan_misses HEDDLE_GUARDED_BY(mutex) = 0;
  int64_t plans_evicted HEDDLE_GUARDED_BY(mutex) = 0;
  std::unordered_set<uint64_t> dropped_plans HEDDLE_GUARDED_BY(mutex);  // hashes of the inputs of evicted plans; at most 4096
  bool told_of_thrashing HEDDLE_GUARDED_BY(mutex) = false;

  // Finds or makes the plan for these inputs. Thread-safe; two threads that request the same new plan may both compile it, one is kept.
  // `interruption`: interrupts making one; null: none.
  Result<std::shared_ptr<PlanEntry>> find_plan(const TensorView* inputs, size_t count, const Interruption* interruption = nullptr);
  // Like find_plan(), for a plan that will be run: also fills the variables. Errors also: those of VariableStore::fill.
  Result<std::shared_ptr<PlanEntry>> find_plan_to_run(const TensorView* inputs, size_t count, const Interruption& interruption = {});
  // Returns an execution of the plan in that memory. An earlier user's bindings may still be there: bind or unbind every port.
  Result<std::unique_ptr<Execution>> take(PlanEntry& entry, Workspace& workspace);
  // Keeps the execution for the next take(). One with outstanding work is kept until that has completed, with its workspace.
  void give_back(PlanEntry& entry, std::unique_ptr<Execution> execution, std::shared_ptr<Workspace>& workspace);
  ExecutionOptions execution_options() const;
  // Return the ports of the net; unlike Session::inputs() and outputs() they throw where there is no memory.
  std::vector<PortInfo> inputs() const;
  std::vector<PortInfo> outputs() const;

 private:
  std::shared_ptr<PlanEntry> cached(const TensorView* inputs, size_t count);
  bool matches(const PlanEntry& entry, const TensorView* inputs, size_t count) const;
  void make_room() HEDDLE_REQUIRES(mutex);
  // Warns once if a plan is made again that had been evicted, which makes runs slow.
  void tell_of_thrashing(const PlanEntry& made) HEDDLE_REQUIRES(mutex);
  Result<std::shared_ptr<PlanEntry>> make_plan(const TensorView* inputs, size_t count, const Interruption* interruption);
};

// The nets of a session, in the order in which they were opened.
struct Model {
  std::vector<std::unique_ptr<Session::Impl>> nets;
};

// Checks that the data bound to an input or output are aligned as its device's kernels require (heddle_tensor::space).
Status check_address(const Plan& plan, ValueId value, const void* data);
// Returns the maximum number of bytes of output `i`; -1: there is no bound.
int64_t bytes_of_output(const Plan& plan, size_t i);
// Checks that a caller's buffer can be bound to output `i`; `bytes`: its size, -1: as large as needed.
Status check_output_buffer(const Plan& plan, size_t i, int64_t bytes);

// Borrows an execution of a plan, in a workspace of the pool, until it is destroyed.
class ExecutionLoan {
 public:
  ExecutionLoan(Session::Impl& session, PlanEntry& entry);
  ~ExecutionLoan();
  ExecutionLoan(const ExecutionLoan&) = delete;
  ExecutionLoan& operator=(const ExecutionLoan&) = delete;
  // Check it before anything else.
  const Status& status() const { return status_; }
  Execution* operator->() const { return execution_.get(); }

 private:
  Session::Impl& session_;
  PlanEntry& entry_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<Execution> execution_;
  Status status_;
};

struct Context::State {
  std::shared_ptr<Session::Impl> session;
  std::shared_ptr<PlanEntry> entry;
  std::unique_ptr<Execution> execution;
  std::shared_ptr<Workspace> workspace;  // null: it works in the caller's buffer and is never given back for reuse
  bool shared = false;                   // other contexts have the same workspace
  std::atomic<bool> reserved{false};     // a run is under way, or was accepted by run_async
  // Waits for this context's turn in shared memory, and moves to the memory's current place. Takes no turn if the memory is its own.
  // Errors: cancelled, deadline_exceeded, busy; out_of_memory or device_failed if another context's growth failed and left too little, and
  // there is no more for this one either.
  Status enter(FairSharedMutex::Hold& turn, const RunSettings& settings = {});
  RunSettings settings(const RunOptions& options);
  // Call it after a run, or in its place if enter() failed: leaves the turn and ends the observation.
  void leave(FairSharedMutex::Hold& turn);
  // Runs during this context's turn in shared memory, if it is shared; waits for the turn.
  Status run_in_turn(const RunSettings& settings);
  Observation observation;  // of the run that settings() was called for
  const MadeInThisProcess& made() const { return session->runtime->made; }
  struct Async;
  std::shared_ptr<Async> async;
};
// Takes a turn in memory that contexts share, also of other runtimes. Errors: as Context::State::enter.
Status enter_shared(const Runtime::Impl& runtime, Workspace& workspace, FairSharedMutex::Hold& turn, const Interruption& until = {});

// Returns when a call with these options that begins now has to end, in ticks; 0: never.
uint64_t deadline_of(const RunOptions& options);

// Checks that as many inputs are given as the net has, or none. Errors: missing_input.
Status check_count(const Net& net, size_t count);
// Checks that the bytes of each input are within limits. Call it before contents are copied and before the stages compute with them.
Status check_sizes(const Net& net, const TensorView* inputs, size_t count, const Limits& limits);

// The state of Nets: immutable, shared by copies, and replaced when a handle is changed.
struct Nets::State {
  std::vector<Net> nets;
  std::string path;    // of their file; empty: they were made in memory
  std::string folder;  // of their weights
  Limits limits;
};

// A net that load has just checked, and its origin.
struct LoadedNet {
  Net net;
  std::string path;    // of its file; empty: it was made in memory
  std::string folder;  // of its weights
  int64_t load_ns = 0;
};
// Opens a session of the nets; returns a handle on the first of them.
Result<Session> open_loaded(const Runtime& runtime, std::vector<LoadedNet> nets, const SessionOptions& options);
// Access to the insides of handles for the library's own code and its tests.
struct Internals {
  static Session::Impl& of(const Session& session) { return *session.impl_; }
  static Runtime::Impl& of(const Runtime& runtime) { return *runtime.impl_; }
  static const std::shared_ptr<Runtime::Impl>& shared(const Runtime& runtime) { return runtime.impl_; }
  static Runtime runtime_of(const Session& session) { return Runtime(session.impl_->runtime); }
  static const Nets::State& of(const Nets& nets) { return *nets.state_; }
  static const std::shared_ptr<Workspace>& workspace(const SharedMemory& memory) { return memory.workspace_; }
  static Execution& execution(Context& context) { return *context.state_->execution; }
  static Session make(std::shared_ptr<Session::Impl> impl);
  // Returns a context of that plan, in memory of its own.
  static Result<Context> prepare(const std::shared_ptr<Session::Impl>& session, std::shared_ptr<PlanEntry> entry);
};

}  // namespace heddle

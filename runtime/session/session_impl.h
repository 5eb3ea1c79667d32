// What Runtime and Session are made of; private to the library and its tests.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "compile/prepack.h"
#include "device/device_manager.h"
#include "heddle/session.h"
#include "heddle/training.h"
#include "memory/workspace.h"
#include "plugin/registry.h"
#include "resolve/rule_reader.h"
#include "run/execution.h"
#include "session/forked.h"
#include "session/observation.h"
#include "session/pipeline.h"
#include "session/quarantine.h"
#include "session/spare_findings.h"
#include "state/variables.h"

namespace heddle {

struct Runtime::Impl {
  MadeInThisProcess made;
  Registry registry{read_rewrite_rule};
  DeviceManager devices;
  std::shared_ptr<ResourceTable> resources = std::make_shared<ResourceTable>();  // of the runtime's scope and its devices'
  std::unique_ptr<Executor> own_executor;
  Executor* executor = nullptr;  // null: the calling thread alone
  int threads = 1;
  WorkspacePool workspaces;
  std::atomic<int64_t> sessions{0};  // that are open: the last one takes the idle workspaces with it
  Quarantine quarantine;
};

// A plan and the executions that are idle, without memory; the cache holds it while it is recent, contexts while they live.
struct PlanEntry {
  std::vector<TensorType> types;                 // of the inputs
  bool as_declared = false;                      // made for the types that the net declares
  std::vector<std::vector<std::byte>> contents;  // of the inputs that decide shapes
  std::shared_ptr<const Plan> plan;
  WorkspaceNeeds needs;  // of the plan
  PlanInfo::Times times;
  int64_t number = 0;                    // of the plans that were made of the net
  int64_t footprint = 0;                 // bytes that go with it (plan_footprint.h)
  std::mutex mutex;                      // of what follows
  std::shared_ptr<const PlanInfo> info;  // made when it is first asked for
  std::vector<std::unique_ptr<Execution>> idle;
  // [any thread]
  std::shared_ptr<const PlanInfo> described();
};

struct Model;

// One net of a session. What the nets have in common (variables, packed constants, resources) each of them holds a share of.
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
  std::string path;    // of its file; empty: from memory
  std::string folder;  // of its weights
  PlanInfo::Times load_times;
  std::shared_ptr<PackCache> packs;          // shared with plans
  std::shared_ptr<ResourceTable> resources;  // likewise
  std::shared_ptr<VariableStore> variables;
  std::vector<uint32_t> shape_inputs;
  SpareFindings spare_findings;                                               // of check()
  mutable std::mutex mutex;                                                   // of what follows
  std::list<std::shared_ptr<PlanEntry>> plans;                                // most recent first
  int64_t plans_made = 0, plan_hits = 0, plan_misses = 0, plans_evicted = 0;  // Session::PlanCounts
  std::unordered_set<uint64_t> dropped_plans;  // hashes of what plans were made for that had no room; as many as are told apart
  bool told_of_thrashing = false;

  // Finds or makes the plan for these inputs. Thread-safe; two threads asking for the same new plan may both compile it, one is kept.
  // `interruption`: of making one; null: none.
  Result<std::shared_ptr<PlanEntry>> find_plan(const TensorView* inputs, size_t count, const Interruption* interruption = nullptr);
  // The same for what is to run: its variables have a content, too. Errors also: those of VariableStore::fill.
  Result<std::shared_ptr<PlanEntry>> find_plan_to_run(const TensorView* inputs, size_t count, const Interruption& interruption = {});
  // An execution of the plan in that memory, with nothing bound.
  Result<std::unique_ptr<Execution>> take(PlanEntry& entry, Workspace& workspace);
  // Keeps the execution for the next take(). One that a device still works for goes to the quarantine, and its workspace with it.
  void give_back(PlanEntry& entry, std::unique_ptr<Execution> execution, std::shared_ptr<Workspace>& workspace);
  ExecutionOptions execution_options() const;

 private:
  std::shared_ptr<PlanEntry> cached(const TensorView* inputs, size_t count);
  bool matches(const PlanEntry& entry, const TensorView* inputs, size_t count) const;
  void make_room();
  void tell_of_thrashing(const PlanEntry& made);
  Result<std::shared_ptr<PlanEntry>> make_plan(const TensorView* inputs, size_t count, const Interruption* interruption);
};

// The nets of a session, in the order in which they were opened.
struct Model {
  std::vector<std::unique_ptr<Session::Impl>> nets;
};

// Whether what is bound to an input or output lies as kernels of its device are promised (heddle_tensor::space).
Status check_address(const Plan& plan, ValueId value, const void* data);
// The most bytes that output `i` takes; -1: there is no bound.
int64_t bytes_of_output(const Plan& plan, size_t i);
// Whether a caller's buffer can be bound to it; `bytes`: what it holds, -1: as much as is needed.
Status check_output_buffer(const Plan& plan, size_t i, int64_t bytes);

// An execution of a plan, in a workspace of the pool, for as long as this lives.
class ExecutionLoan {
 public:
  ExecutionLoan(Session::Impl& session, PlanEntry& entry);
  ~ExecutionLoan();
  ExecutionLoan(const ExecutionLoan&) = delete;
  ExecutionLoan& operator=(const ExecutionLoan&) = delete;
  // Before anything else.
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
  std::shared_ptr<Workspace> workspace;  // null: over the caller's buffer, never given back for reuse
  bool shared = false;                   // other contexts have the same workspace
  std::atomic<bool> reserved{false};     // a run is under way, or was accepted by run_async
  // Waits for this context's turn in shared memory, and follows it to where it is now. Holds nothing when the memory is its own. Errors:
  // cancelled, deadline_exceeded, busy; another context's growth failed and left too little, and there is no more for this one either.
  Status enter(FairSharedMutex::Hold& turn, const RunSettings& settings = {});
  RunSettings settings(const RunOptions& options);
  // Behind a run, or in its place when there was no turn for it.
  void leave(FairSharedMutex::Hold& turn, const Status& status);
  // When it is this context's turn in shared memory.
  Status run_in_turn(const RunSettings& settings);
  Observation observation;  // of the run that settings() were made for
  const MadeInThisProcess& made() const { return session->runtime->made; }
  struct Async;
  std::shared_ptr<Async> async;
};
// A turn in memory that contexts share. Errors: as Context::State::enter.
Status enter_shared(Workspace& workspace, FairSharedMutex::Hold& turn, const Interruption& until = {});

// When a call with these options has to end, in ticks, from now; 0: never.
uint64_t deadline_of(const RunOptions& options);

// Whether as many inputs are given as the net has, or none. Errors: missing_input.
Status check_count(const Net& net, size_t count);
// Whether the bytes of each are within limits. The stages compute with them; contents are copied before the first of them.
Status check_sizes(const Net& net, const TensorView* inputs, size_t count, const Limits& limits);

// What Nets are: shared by copies, and replaced by a changed one.
struct Nets::State {
  std::vector<Net> nets;
  std::string path;    // of their file; empty: from memory
  std::string folder;  // of their weights
  Limits limits;
};

// A net that load has just checked, and where it came from.
struct LoadedNet {
  Net net;
  std::string path;    // of its file; empty: from memory
  std::string folder;  // of its weights
  int64_t load_ns = 0;
};
// A handle on the first of them.
Result<Session> open_loaded(const Runtime& runtime, std::vector<LoadedNet> nets, const SessionOptions& options);
// What the library's own code and its tests see of handles.
struct Internals {
  static Session::Impl& of(const Session& session) { return *session.impl_; }
  static Runtime::Impl& of(const Runtime& runtime) { return *runtime.impl_; }
  static const std::shared_ptr<Runtime::Impl>& shared(const Runtime& runtime) { return runtime.impl_; }
  static const Nets::State& of(const Nets& nets) { return *nets.state_; }
  static const std::shared_ptr<Workspace>& workspace(const SharedMemory& memory) { return memory.workspace_; }
  static Execution& execution(Context& context) { return *context.state_->execution; }
  static Session make(std::shared_ptr<Session::Impl> impl);
  // A context of that plan, in memory of its own.
  static Result<Context> prepare(const std::shared_ptr<Session::Impl>& session, std::shared_ptr<PlanEntry> entry);
};

}  // namespace heddle

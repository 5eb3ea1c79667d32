// Runtime, Session and Context: what an embedding program works with.
//
//   auto runtime = heddle::Runtime::create({});     // a Result, like the next two: ok(), or status().text() says why not
//   auto session = runtime->open("resnet50.heddle");
//   auto context = session->prepare();              // compiles for the declared shapes, allocates once
//   context->bind_input(0, pixels);                 // no copy
//   context->bind_output(0, logits);
//   heddle::Status status = context->run();
//
// C++17; needs neither RTTI nor exceptions. Runtime and Session are handles: copies share one object; objects may be destroyed in any
// order, what others still need stays alive. Threads: Runtime and Session from any thread; a Context from one thread at a time, except
// cancel(). docs/embedding.md says which call from which thread.
#pragma once

#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/caller_stream.h"
#include "heddle/copies.h"
#include "heddle/executor.h"
#include "heddle/export.h"
#include "heddle/limits.h"
#include "heddle/observe.h"
#include "heddle/plan_info.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// Where log lines of the library and of plugins go; none by default. On stderr only: last words of an abort (status.h).
using LogFunction = void (*)(void* user, int level, const char* text, size_t length);
HEDDLE_API void set_log_function(LogFunction function, void* user);

struct RuntimeOptions {
  // Search order: `plugins`, then the *.so of `plugin_folders`, then (unless default_plugins is false) the folder named by the environment
  // variable HEDDLE_PLUGIN_DIR or else lib/heddle/plugins beside the library.
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_folders;
  bool default_plugins = true;
  Executor* executor = nullptr;  // the program's own, outliving the runtime; null: one over oneTBB with `threads`
  int threads = 0;               // 1 to max_threads; 0: what affinity and cgroup allow of them; 1: no helper threads at all
  bool pin_threads = false;      // helpers stay pinned to processors: for programs that own the machine
  // Devices that are not here, by kind ("cuda") and what the backend takes for a description (docs/cuda.md; empty: the one that it has
  // itself). They are there instead of those that are here, in the whole process: plans are made for them, runs on them are refused.
  std::vector<std::pair<std::string, std::string>> described_devices;
};

struct SessionOptions {
  std::vector<std::pair<std::string, int64_t>> symbols;  // extents of symbolic dims
  std::string device = "cpu:0";                          // where operators run that name none
  // Inputs and outputs of the net that lie on a device, by name: what is bound to them, and what output() shows, are addresses there.
  std::vector<std::pair<std::string, std::string>> placed_ports;
  Copies copies = Copies::warn;      // warn: to the log sink; automatic and warn also let operators without a kernel there run on the host
  int streams = 1;                   // of each device, 1 to max_streams; the results do not depend on it
  int64_t memory_limit = INT64_MAX;  // planned peak bytes of one context, on each device; and of subnets that grow while running
  // Plans are kept, one for each combination of shapes (and contents that decide shapes) that was asked for, as long as they take at most
  // so many bytes together and are at most so many, 1 or more; those that were used longest ago go first, the last one never.
  int64_t plan_cache_bytes = int64_t{64} << 20;
  int plan_cache = INT_MAX;
  int idle_contexts = 8;      // of each plan, without memory, kept for the next prepare or Session::run
  bool commit_late = true;    // a failed or cancelled run leaves variables as they were
  bool rewrite_rules = true;  // those of plugins are applied
  uint64_t seed = 0;          // of the net's random operators, and of variables that are filled by a rule
  Limits limits;              // what the net may ask for: sizes, depth, memory
  // Whether the net is judged behind each transform, and its plans behind compile, for finding defects of Heddle and of plugins. A plan
  // then takes several times as long to make. None: as the library was built (CMake's HEDDLE_CHECK_PLANS; not in Release).
  std::optional<bool> check_plans;
};

// Name and declared type of an input or output.
struct PortInfo {
  std::string name;
  DType dtype = DType::none;
  Shape shape;                       // -1 where an extent is not declared; its bound where it has one
  std::vector<std::string> symbols;  // by dim, the symbol that SessionOptions::symbols binds; empty: none
  bool ranked = false;
  bool decides_shapes = false;  // an input whose content prepare() must see
  int64_t index_bound = 0;      // an input that operators use as indices: the number of rows there are; 0: it is none
};

struct RunOptions {
  int64_t deadline_ns = 0;                 // from the call, also while it waits for its turn or a thread; 0: none; negative: it has passed
  std::optional<uint64_t> seed;            // of this run's random operators; none: the session's
  Profile* profile = nullptr;              // takes how long each step took; null: no measurement
  const StepObserver* observer = nullptr;  // sees each step; outlives the run; null: none
  // What the run does on those devices waits for what these streams were given before it; borrowed until the run is over.
  const CallerStream* streams = nullptr;
  size_t stream_count = 0;
};

// Of Session::load_variables: what need not fit. Dtypes and shapes always have to.
struct LoadVariablesOptions {
  bool allow_missing = false;  // variables that the file lacks stay as they are
  bool allow_excess = false;   // tensors that are no variable of the session are left out
};

// A tensor that owns its bytes. Copies share them; copy_of makes new ones.
class HEDDLE_API Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape);
  static Tensor copy_of(const TensorView& view);
  DType dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  int64_t byte_size() const { return view_.byte_size(); }
  void* data() { return view_.data; }
  const void* data() const { return view_.data; }
  const TensorView& view() const { return view_; }

 private:
  TensorView view_;
  std::shared_ptr<void> owner_;
};

// A prepared net: its bindings, and memory: its own, or SharedMemory. Everything is allocated when it is made; run() on one thread
// allocates nothing, takes no lock and makes no system call of ours (nets with variables take the session's reader/writer lock).
class HEDDLE_API Context {
 public:
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();
  size_t input_count() const;
  size_t output_count() const;
  // Exact types of this context's plan; an empty view where there is no such input or output.
  TensorView input(size_t i) const;
  // dtype, true shape and bytes (on a device: SessionOptions::placed_ports) after a run; data null before the first unless bound, and when
  // shared memory has moved since. An output that is a variable: as it was at the end of the run.
  TensorView output(size_t i) const;
  // The caller's row-major bytes, as many as the type says; must stay valid until rebound. No copy, but for a device. What lies on a device
  // (SessionOptions::placed_ports) begins at a multiple of 64 bytes, else: invalid_argument. An input whose
  // content decides shapes keeps the content that the context was prepared for.
  Status bind_input(size_t i, const void* data);
  // Where output i is to be left; null: in the context's own memory, valid until its next run. No copy for outputs that lie in the arena
  // and that no device reads or writes. Memory that nothing else of the run is read from or written to. `bytes`: how many the buffer holds;
  // -1: at least output_bytes(i). Errors: invalid_argument, unsupported (the output has no bound).
  Status bind_output(size_t i, void* data, int64_t bytes = -1);
  // The most bytes that output `i` can take, whatever its extent turns out to be; -1: not known before the run that writes it.
  int64_t output_bytes(size_t i) const;
  // Errors: missing_input; shape_mismatch (another content than prepared for); invalid_argument (bound memory overlaps); busy (running
  // already, called in a run that holds what it needs, or a device still works for a run that was given up); kernel_failed (operator,
  // device, shapes, cause; others attached), cancelled, deadline_exceeded, hazard, forked.
  Status run(const RunOptions& options = {});
  // Runs on a thread of the runtime's executor and calls `done` there, which may run the context again. The context is reserved from here
  // on: another run() or run_async() is busy. Its destructor waits for the run. Without `done` a failure is a line in the log. Errors:
  // unsupported (no executor), busy, forked.
  Status run_async(std::function<void(Status)> done, const RunOptions& options = {});
  // [any thread] Ends the run that was asked for, also one that waits for its turn in shared memory; it returns Code::cancelled when steps
  // in flight are done.
  void cancel();
  // Planned peak bytes on the host: what the context's memory holds there.
  int64_t planned_bytes() const;
  // Bytes that it holds now on a device of plan()->memory: its arena, values that no plan could place, what its subnets have of their own;
  // in shared memory all that is there. 0 where there is no such device.
  int64_t held_bytes(size_t device = 0) const;
  // What runs. The same for all contexts of one plan; null in a forked child. [any thread]
  std::shared_ptr<const PlanInfo> plan() const;

 private:
  friend class Session;
  friend struct Internals;
  struct State;
  explicit Context(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Memory that several contexts work in, of whatever nets: on the host and on each device as large as the largest of them needs, not as all
// together. Their runs are queued. A handle; copies are the same memory, which goes with the last of them and of the contexts.
class HEDDLE_API SharedMemory {
 public:
  SharedMemory();
  // Bytes that it holds now, on the host and on devices together.
  int64_t bytes() const;

 private:
  friend struct Internals;
  std::shared_ptr<class Workspace> workspace_;
};

// Opened nets with their weights, variables and plans. A handle on one of the nets: copies are the same, and net() gives those on the
// others. Nets of a session have variables of one name in common (a training net and what it is tested with). Thread-safe. In a child
// forked from the process that made the runtime every call that returns a Status or a Result is Code::forked.
class HEDDLE_API Session {
 public:
  // The session's nets by name, in the order in which they were opened. A session of one net has that.
  std::vector<std::string> nets() const;
  // Which of them this handle is on: the first, unless net() gave it.
  const std::string& name() const;
  // A handle on another net of the session. Errors: unknown_name.
  Result<Session> net(const std::string& name) const;
  // From here on: of the net that the handle is on.
  std::vector<PortInfo> inputs() const;
  std::vector<PortInfo> outputs() const;
  // Compiles (or finds) the plan for these input types; empty: as declared. `inputs[i].data` is read for inputs whose content decides
  // shapes. Errors: all findings of infer and verify, no_kernel, limit_exceeded, ...
  Result<Context> prepare(const std::vector<TensorView>& inputs = {});
  // The same over the caller's buffer of at least transient_bytes(inputs), aligned to 64, outliving the context. It takes the place of
  // memory on the host; on a device the context has its own. Errors: those of prepare; invalid_argument (null, small or unaligned).
  Result<Context> prepare_in(void* buffer, int64_t bytes, const std::vector<TensorView>& inputs = {});
  // The same in memory shared with other contexts. A run waits for theirs; what output() showed before may be overwritten by theirs.
  // Errors: those of prepare; busy (the calling thread is in a run of theirs).
  Result<Context> prepare_on(const SharedMemory& memory, const std::vector<TensorView>& inputs = {});
  // What prepare_in needs. Errors: those of prepare.
  Result<int64_t> transient_bytes(const std::vector<TensorView>& inputs = {});
  // Convenience: finds plan and context by the inputs' types, runs, leaves results in `outputs` (data non-null: written there; dtypes and
  // shapes are filled in). Allocates nothing once the shapes have been seen. Concurrent calls use a context each.
  Status run(const TensorView* inputs, size_t input_count, TensorView* outputs, size_t output_count, const RunOptions& options = {});
  // The same with results that own their bytes.
  Result<std::vector<Tensor>> run(const std::vector<TensorView>& inputs, const RunOptions& options = {});
  // The plan for these input types, compiled or found as prepare() does. Errors: those of prepare.
  Result<std::shared_ptr<const PlanInfo>> plan(const std::vector<TensorView>& inputs = {});
  // All that is wrong with the net for these input types, of every stage up to and including compile (missing kernels, what kernels refuse
  // to prepare, plans over a limit), and warnings; empty: nothing. An input without a dtype is as declared; one without data has a content
  // that is not known. Works anew in each call.
  std::vector<Diagnostic> check(const std::vector<TensorView>& inputs = {}) const;
  // The symbols in declared shapes, those of subnets too.
  std::vector<std::string> symbols() const;
  // The files that the session was read from, of all nets: nets and weights; empty when it was opened from memory without weights.
  std::vector<std::string> files() const;
  // Names of the variables, of all nets. Reading and writing take their turn with runs, in order of arrival, within the deadline of
  // `options`. Errors: unknown_name; dtype_mismatch, shape_mismatch and invalid_argument (no data) of what is written; deadline_exceeded;
  // busy (in a run that holds the variables, or a device still works for one that was given up); device_failed.
  std::vector<std::string> variables() const;
  Result<Tensor> read_variable(const std::string& name, const RunOptions& options = {}) const;
  Status write_variable(const std::string& name, const TensorView& value, const RunOptions& options = {});
  // Fills the variables that have an initializer by it, from `seed`. Those without content were filled so before the first context was
  // made, from SessionOptions::seed. The numbers are the same for any number of threads, and on any device. Errors: hazard, naming a
  // variable with an initializer that had content in a file, or that a run or write_variable has written since, unless `overwrite`: what
  // was trained is not lost by mistake; deadline_exceeded; busy.
  Status initialize(uint64_t seed, bool overwrite = false, const RunOptions& options = {});
  // Writes all variables, of all nets, the state of optimizers and counters of steps among them, to a safetensors file: each under its own
  // name, with a checksum. They are copied at one point between runs, for which runs that update wait, and written behind it. The file is
  // replaced as a whole. Errors: file_unwritable; hazard, naming a variable that a failed run left half-updated; invalid_argument (a name
  // that the format does not have); those of read_variable.
  Status save_variables(const std::string& path, const RunOptions& options = {}) const;
  // The reverse: all variables become what the file says, in one turn with runs, which see them before or behind it. Nothing changes when
  // it gives an error. The whole file is read first. Errors, of all names at once: weights_missing (a variable is not in the file),
  // unknown_name (no variable of that name), dtype_mismatch, shape_mismatch; file_not_found, file_unreadable, file_truncated, file_corrupt
  // (also: a checksum that does not fit), duplicate_name, limit_exceeded; those of write_variable.
  Status load_variables(const std::string& path, const LoadVariablesOptions& what = {}, const RunOptions& options = {});
  int64_t variable_bytes() const;  // of all of them
  // Of the net's plans, since it was opened: how many were made, and what is kept of them; how often one was asked for that was kept, and
  // that was not; and how many went that were kept, for want of room, by trim(), or with a device that was lost.
  struct PlanCounts {
    int64_t made = 0, kept = 0, kept_bytes = 0;
    int64_t hits = 0, misses = 0, evicted = 0;
  };
  PlanCounts plan_counts() const;
  // Frees cached plans of all nets with their packed constants, and run memory that no context uses, until about `keep_bytes` are held.
  // Never blocks runs under way.
  void trim(int64_t keep_bytes = 0);

  struct Impl;

 private:
  friend struct Internals;
  explicit Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// A plugin that is loaded.
struct PluginInfo {
  std::string name;
  std::string version;  // as it says; the CPU plugin's has the instruction set of its kernels behind a "+": "0.1.0+avx2"
  std::string path;     // of its library
};

// A device as its backend tells of it.
struct DeviceInfo {
  std::string name;         // "cuda:0"
  std::string description;  // one line for people
  int64_t free_bytes = 0;   // of its memory, now: others may take of it
  int64_t total_bytes = 0;
  bool described = false;  // it is not here: RuntimeOptions::described_devices
};

// Plugins, devices and threads. A handle: copies are the same runtime, which lives as long as a session of it. Thread-safe. In a child
// forked from the process that made it every call that returns a Status or a Result is Code::forked.
class HEDDLE_API Runtime {
 public:
  // Errors: plugin_unreadable, plugin_abi, plugin_invalid, duplicate_registration; what is wrong with a plugin's rewrite rules, naming rule
  // and file (operators that a rule speaks of come with its plugin, with one that is loaded together with it, or were loaded before);
  // invalid_argument (threads, or the executor's concurrency, out of range); forked (oneTBB's threads are the parent's).
  static Result<Runtime> create(const RuntimeOptions& options);
  // A .heddle or .json file of one net or several, with their weights. Errors: file_*, weights_*, syntax and all that is wrong with a net
  // or with its operators; invalid_argument (streams, plan_cache or idle_contexts out of range).
  Result<Session> open(const std::string& path, const SessionOptions& options = {}) const;
  // The same from memory; weights are looked up beneath `folder`.
  Result<Session> open_bytes(const void* bytes, size_t size, const std::string& folder, const SessionOptions& options = {}) const;
  // The same of a net in memory that this tree's builders or its importer made (net/net.h, which is not installed).
  Result<Session> open(struct Net&& net, const SessionOptions& options = {}) const;
  // Nets of several files, or made in memory, as one session; the handle is on the first. Symbols and placed ports of the options are for
  // those nets that have them. Errors: those of open; duplicate_name (two nets, or one without a name); what VariableStore says of
  // variables that two nets have in common: dtype_mismatch, shape_mismatch, weights_mismatch.
  Result<Session> open(const std::vector<std::string>& paths, const SessionOptions& options = {}) const;
  Result<Session> open(std::vector<struct Net>&& nets, const SessionOptions& options = {}) const;
  // The same of nets that were read before, and perhaps made to learn (heddle/training.h); they stay as they are.
  Result<Session> open(const class Nets& nets, const SessionOptions& options = {}) const;
  // Sessions that are open keep the operators that they had. Errors: as create.
  Status load_plugin(const std::string& path);
  // The plugin's library leaves the process when no session uses it. Errors: unknown_name; busy (kernels or rewrite rules of another plugin
  // need its operators); forked.
  Status unload_plugin(const std::string& name);
  std::vector<PluginInfo> plugins() const;
  // "kind" or "kind:index" of a device beside the host, which is opened for it. Any thread. Errors: no_such_device with the reason,
  // device_failed, device_lost.
  Result<DeviceInfo> device_info(const std::string& device) const;
  // Frees run memory that is idle, until about `keep_bytes` are held. It also goes with the last session.
  void trim(int64_t keep_bytes = 0);
  // That a run may use, the calling one included.
  int threads() const;

  struct Impl;

 private:
  friend struct Internals;
  explicit Runtime(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle

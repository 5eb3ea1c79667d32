// Runtime, Session and Context: the classes that an embedding program works with.
//
//   auto runtime = heddle::Runtime::create({});     // each of these three calls returns a Result: test ok(), else read status().text()
//   auto session = runtime->open("resnet50.heddle");
//   auto context = session->prepare();              // compiles for the declared shapes, allocates once
//   context->bind_input(0, pixels);                 // no copy
//   context->bind_output(0, logits);
//   heddle::Status status = context->run();
//
// Requires C++17; needs neither RTTI nor exceptions. Runtime and Session are handles: copies refer to one object, and objects may be
// destroyed in any order because each keeps alive what it needs. Threads: Runtime and Session may be used from any thread, a Context from
// one thread at a time except for cancel(). docs/embedding.md lists which call is allowed from which thread.
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
#include "heddle/communicator.h"
#include "heddle/copies.h"
#include "heddle/executor.h"
#include "heddle/export.h"
#include "heddle/limits.h"
#include "heddle/observe.h"
#include "heddle/plan_info.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// Receives the log lines of the library and of plugins. Without a log function these lines are dropped; only the text of an abort
// (status.h) always goes to stderr.
using LogFunction = void (*)(void* user, int level, const char* text, size_t length);
HEDDLE_API void set_log_function(LogFunction function, void* user);

struct RuntimeOptions {
  // Plugins are loaded in this order: `plugins`; the *.so files of `plugin_folders`; and, if default_plugins is true, the *.so files of a
  // default folder. The default folder is the value of the environment variable HEDDLE_PLUGIN_DIR. If that is not set, it is the first of
  // these that exists, relative to the folder of libheddle.so: heddle/plugins; the folder for which Heddle was built (CMake's
  // HEDDLE_PLUGIN_INSTALL_DIR); ../lib/heddle/plugins.
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_folders;
  bool default_plugins = true;
  // An executor that the embedding program provides and that must outlive the runtime. Null: the runtime makes an executor over oneTBB with
  // `threads` threads.
  Executor* executor = nullptr;
  int threads = 0;           // 1 to max_threads; 0: as many as affinity and cgroup allow; 1: no helper threads at all
  bool pin_threads = false;  // pins helper threads to processors: for programs that own the machine
  // Devices that the machine does not have, as pairs of a kind ("cuda") and a description in the format of the backend of that kind
  // (docs/cuda.md). An empty description stands for one that is built into the backend. In the whole process these devices replace the
  // machine's devices of that kind: plans can be made for them, but runs on them are refused.
  std::vector<std::pair<std::string, std::string>> described_devices;
};

struct SessionOptions {
  std::vector<std::pair<std::string, int64_t>> symbols;  // extents of symbolic dims
  std::string device = "cpu:0";                          // the device of operators for which the net names none
  // Inputs and outputs of the net that are in device memory, as pairs of port name and device. The addresses that are bound to these ports,
  // and those that output() returns for them, are addresses on the device.
  std::vector<std::pair<std::string, std::string>> placed_ports;
  // The policy for a value that is needed on another device. Warnings go to the log function. With automatic and warn, an operator that
  // has no kernel for its device runs on the host.
  Copies copies = Copies::warn;
  int streams = 1;  // number of streams of each device, 1 to max_streams; results do not depend on this number
  // Limit, on each device, of the planned peak bytes of one context. An operator may run its subnet many times in one run of the net, as
  // Loop does; one such execution of a subnet is a trip. If the values grow from one trip to the next, the runtime compiles plans for the
  // subnet during the run. Each such operator keeps some of these plans, and their memory together is limited too, separately for
  // each operator: to memory_limit or, if that is not set, to half of the memory that the process may use.
  int64_t memory_limit = INT64_MAX;
  // Each net's plans are cached: one plan for each combination of input shapes, and of input contents that determine shapes.
  // plan_cache_bytes limits the total size of these plans; plan_cache, 1 or more, limits their number. The least recently used plan is
  // dropped first; the last one is never dropped.
  int64_t plan_cache_bytes = int64_t{64} << 20;
  int plan_cache = INT_MAX;
  int idle_contexts = 8;  // number of idle contexts of each plan kept for the next prepare or Session::run; their memory is given back
  // True: a run updates variables only after all steps that may fail, so that variables keep their values if it fails or is cancelled
  // (docs/embedding.md lists exceptions). False: each update is made as soon as it can be, and a run that then fails leaves its variables
  // half-updated (Code::hazard).
  bool commit_late = true;
  bool rewrite_rules = true;  // applies the rewrite rules of plugins
  uint64_t seed = 0;          // for the net's random operators, and for variables that are filled by an initializer
  Limits limits;              // limits on what the net may request: sizes, depth, memory
  // The communicators that the nets name. A plugin makes the object of a communicator when the first run that uses it begins; runs that use
  // the same communicator take turns. A run that ends early aborts the objects of all communicators that its net uses, and the next run
  // that needs one makes a new object. If the net names a communicator that has no entry here, its runs are refused
  // (Code::missing_resource).
  std::vector<CommunicatorOptions> communicators;
  // True: the net is verified after each transform, and each plan after its compilation, to find defects in Heddle and in plugins. Making a
  // plan then takes several times as long. None: the default of the build (CMake's HEDDLE_CHECK_PLANS; off in Release).
  std::optional<bool> check_plans;
};

// The name and declared type of an input or output. An extent is bounded if it is known only after the operator that produces the value has
// run, but has an upper bound.
struct PortInfo {
  std::string name;
  DType dtype = DType::none;
  Shape shape;                       // an extent is -1 if it is not declared, and the bound if it is bounded
  std::vector<std::string> symbols;  // by dim: the name of its symbol (SessionOptions::symbols); empty: no symbol
  bool ranked = false;          // false: only the dtype is declared; the rank is unknown; the empty `shape` does not mean a scalar then
  bool decides_shapes = false;  // true for an input whose content prepare() needs to see
  int64_t index_bound = 0;      // for an input that operators use as indices: the number of rows that it may refer to; else 0
};

struct RunOptions {
  // Maximum duration of the run, counted from the call and including the time spent waiting for other runs or for a thread. 0: no deadline;
  // negative: the deadline has already passed.
  int64_t deadline_ns = 0;
  std::optional<uint64_t> seed;            // for this run's random operators; none: the session's seed
  Profile* profile = nullptr;              // receives the time that each step took; null: no measurement
  const StepObserver* observer = nullptr;  // sees each step; must outlive the run; null: none
  // Outputs without axes that must be finite if the run is to update variables: output i, of the first 64, is bit i. Where one of them is
  // not, the run ends with Code::numerics after all steps but the updates, and variables keep their values. Not examined where updates are
  // made early (SessionOptions::commit_late), or begin on devices without a look of the host.
  uint64_t finite_outputs = 0;
  // An array of `stream_count` streams of the program (heddle/caller_stream.h). For each stream, the work of the run on that stream's
  // device waits for all work that was enqueued on the stream before the run was called. The array must stay valid until the run is over.
  // A stream of a device that the plan does not use is an error (invalid_argument).
  const CallerStream* streams = nullptr;
  size_t stream_count = 0;
};

// Options of Session::load_variables: which mismatches of names are allowed. Dtypes and shapes must always match.
struct LoadVariablesOptions {
  bool allow_missing = false;  // variables that the file lacks keep their values
  bool allow_excess = false;   // tensors that are not variables of the session are ignored
};

// A tensor that owns its bytes. Copies of a Tensor share its bytes; copy_of copies the bytes.
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

// A prepared net: the bindings and the memory with which one caller runs it. The memory is the context's own, a buffer of the caller or
// SharedMemory. When the context is created, it allocates all memory whose size is known at that time. If the runtime has one thread
// (RuntimeOptions::threads = 1), run() itself, apart from its kernels, then allocates nothing and makes no system call. It takes no lock,
// except the session's reader/writer lock if the net has variables, those of its communicators, and the lock of SharedMemory.
class HEDDLE_API Context {
 public:
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();
  size_t input_count() const;
  size_t output_count() const;
  // Returns the exact dtype and shape of input i in this context's plan, without data; an empty view if there is no input i.
  TensorView input(size_t i) const;
  // Returns the dtype, true shape and bytes of output i after a run. `data` is an address on the device for an output in
  // SessionOptions::placed_ports. An output that the run computes and to which no address is bound has null `data` at two times: before the
  // first run; and, with SharedMemory, after prepare_on() has made another context that needs more memory, because the memory then moves.
  // If the output is a variable, the bytes are the value of the variable at the end of the run.
  TensorView output(size_t i) const;
  // Binds input i to memory of the caller, which must hold the whole input in row-major order, input(i).byte_size() bytes, and stay valid
  // until another address is bound. The bytes are copied only if a device other than the host reads the input; otherwise the run reads them
  // in place. Memory on a device (SessionOptions::placed_ports) must begin at a multiple of 64 bytes. If the content of the input
  // determines shapes, it must be the content that the context was prepared for; otherwise run() fails. Errors: invalid_argument.
  Status bind_input(size_t i, const void* data);
  // Binds output i to memory of the caller that has `bytes` bytes, or, with -1, at least output_bytes(i). If `data` is null, the output is
  // in memory of the context and valid until the next run of the context. An arena is one allocation on the host or on a device, in which
  // the plan gives each value an offset. An output that the plan has in an arena (PlanInfo::Place::arena) is written directly to `data`,
  // without a copy, if its extents are known before the run. If the arena is on the host, there is a second condition: no step on a device
  // reads or writes the output.
  // Other outputs, and a second output that shares its bytes with an earlier one, are copied to `data` at the end of the run. The memory
  // must not overlap anything else that the run reads or writes. Errors: invalid_argument, unsupported (the output has no bound).
  Status bind_output(size_t i, void* data, int64_t bytes = -1);
  // Returns the largest number of bytes that output i may have after any run; -1 if this is not known before a run.
  int64_t output_bytes(size_t i) const;
  // Runs the net on the calling thread and helpers. Errors: missing_input; shape_mismatch (the content of an input differs from the one
  // that the context was prepared for); invalid_argument (bound memory overlaps); busy (the context is already running; run() is called
  // within another run that holds variables or memory that this run needs; or a device or an asynchronous step is still working for a run
  // that has returned without waiting for it); kernel_failed (names the operator, device, shapes and cause; failures of other steps are
  // attached); cancelled; deadline_exceeded; hazard (an earlier run failed and left a variable of the session half-updated: write the
  // variable, or open the net again); forked.
  Status run(const RunOptions& options = {});
  // Runs the net on a thread of the runtime's executor, and then calls `done` on a thread of the executor; `done` may run the context
  // again. From this call until just before `done` is called, the context is reserved: another run() or run_async() returns busy. The
  // destructor of the context waits for the run. Without `done` a failure is written to the log. Errors: unsupported (no executor), busy,
  // out_of_memory (no thread to watch the deadline), forked.
  Status run_async(std::function<void(Status)> done, const RunOptions& options = {});
  // [any thread] Cancels the current run, even if it is still waiting for variables or SharedMemory. The run returns Code::cancelled when
  // the steps in progress are done.
  void cancel();
  // Returns the planned peak bytes on the host: the size of the context's memory on the host.
  int64_t planned_bytes() const;
  // Returns the bytes that the context holds now on device number `device` of plan()->memory: its arena, values that could not be planned,
  // and memory that its subnets have of their own. If the context uses SharedMemory, all bytes of the SharedMemory on that device count
  // instead of the arena. Returns 0 if there is no such device.
  int64_t held_bytes(size_t device = 0) const;
  // [any thread] Returns the plan that the context runs, which all contexts of that plan share; null in a forked child.
  std::shared_ptr<const PlanInfo> plan() const;

 private:
  friend class Session;
  friend struct Internals;
  struct State;
  explicit Context(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Memory that contexts of any nets share; one run uses it at a time, and runs wait for each other in order of arrival. On the host and on
// each device it has the size that the largest context needs, not the sum. An object is a handle: copies refer to the same memory, which is
// freed when the last copy and the last context that uses it are destroyed.
class HEDDLE_API SharedMemory {
 public:
  SharedMemory();
  // Returns the number of bytes that the memory has now, on the host and on all devices together.
  int64_t bytes() const;

 private:
  friend struct Internals;
  std::shared_ptr<class Workspace> workspace_;
};

// Opened nets with their weights, variables and plans. An object is a handle on one of the nets: copies are handles on the same net, and
// net() returns handles on the others. If several nets of a session have a variable of the same name, they share it, as a training net and
// the net that tests it do. Thread-safe. In a child forked from the process that made the runtime, every call that returns a Status or a
// Result returns Code::forked.
class HEDDLE_API Session {
 public:
  // Returns the names of the session's nets, in the order in which they were opened. A session of one net has one name.
  std::vector<std::string> nets() const;
  // Returns the name of the net that this handle is on: the first net, unless net() returned the handle.
  const std::string& name() const;
  // Returns a handle on another net of the session. Errors: unknown_name.
  Result<Session> net(const std::string& name) const;
  // The following functions concern the net that the handle is on.
  std::vector<PortInfo> inputs() const;
  std::vector<PortInfo> outputs() const;
  // Makes a context for inputs with the dtypes and shapes in `inputs`; if `inputs` is empty, for the declared ones. Compiles the plan
  // unless it is cached. `inputs[i].data` is read only if the content of input i determines shapes. Errors: every error that shape
  // inference and the verification of the net report; no_kernel; limit_exceeded; and others.
  Result<Context> prepare(const std::vector<TensorView>& inputs = {});
  // Like prepare(), but the context uses a buffer of the caller as its memory on the host. The buffer must have at least
  // transient_bytes(inputs) bytes, be aligned to 64 bytes and outlive the context. On a device the context has its own memory. Errors:
  // those of prepare; invalid_argument (null, too small or unaligned).
  Result<Context> prepare_in(void* buffer, int64_t bytes, const std::vector<TensorView>& inputs = {});
  // Like prepare(), but the context uses memory that other contexts may use too. A run of the context waits for runs of the other contexts,
  // and a run of another context may overwrite the data that output() returned before. Errors: those of prepare; busy (the calling thread
  // is within a run that uses `memory`).
  Result<Context> prepare_on(const SharedMemory& memory, const std::vector<TensorView>& inputs = {});
  // Returns the size of the buffer that prepare_in needs. Errors: those of prepare.
  Result<int64_t> transient_bytes(const std::vector<TensorView>& inputs = {});
  // Convenience: finds or makes a plan and a context for the types of `inputs`, runs the context, and fills in the dtypes and shapes of
  // `outputs`. The bytes of an output are written to its `data`, if that is not null. Allocates nothing once the shapes have been seen.
  // Concurrent calls use separate contexts.
  Status run(const TensorView* inputs, size_t input_count, TensorView* outputs, size_t output_count, const RunOptions& options = {});
  // Like run() above, but returns results that own their bytes.
  Result<std::vector<Tensor>> run(const std::vector<TensorView>& inputs, const RunOptions& options = {});
  // Returns the plan for these input types, which is found or compiled as in prepare(). Errors: those of prepare.
  Result<std::shared_ptr<const PlanInfo>> plan(const std::vector<TensorView>& inputs = {});
  // Returns all errors and warnings of the net for these input types, from every stage up to and including compile (missing kernels,
  // kernels whose prepare fails, plans over a limit); empty if there are none. If inputs[i].dtype is none, the declared type of input i is
  // used. The content of an input whose data is null counts as unknown. Nothing is cached: each call does all the work again.
  std::vector<Diagnostic> check(const std::vector<TensorView>& inputs = {}) const;
  // Returns the symbols in declared shapes, including those of subnets.
  std::vector<std::string> symbols() const;
  // Returns the files of nets and weights that all nets of the session were read from; empty if it was opened from memory without weights.
  std::vector<std::string> files() const;
  // Returns the names of the variables of all nets. read_variable and write_variable wait for runs that use the variables, in order of
  // arrival, until the deadline of `options` at the latest. Errors of both: unknown_name; deadline_exceeded; busy (called within a run that
  // holds the variables, or a device is still working for a run that has returned without waiting for it); device_failed. Errors of
  // write_variable: dtype_mismatch, shape_mismatch and invalid_argument (no data).
  std::vector<std::string> variables() const;
  Result<Tensor> read_variable(const std::string& name, const RunOptions& options = {}) const;
  Status write_variable(const std::string& name, const TensorView& value, const RunOptions& options = {});
  // Fills each variable that has an initializer with the values that its initializer gives for `seed`. (The session itself does this once,
  // with SessionOptions::seed, for all variables that have no content yet, before it makes the first context or first reads or writes a
  // variable.) The values do not depend on the number of threads or the device. Errors: deadline_exceeded; busy; hazard, naming a variable
  // that has an initializer and also content that came from a file or was written by a run or write_variable. If `overwrite` is true, such
  // variables are overwritten instead of being reported; the default, false, protects trained values from being lost by mistake.
  Status initialize(uint64_t seed, bool overwrite = false, const RunOptions& options = {});
  // Writes all variables of all nets, including the state of optimizers and step counters, to a safetensors file, each under its own name
  // and with a checksum. They are copied at one point between runs; runs that update variables wait for the copy, not for the file. The
  // file is replaced as a whole. Errors: file_unwritable; hazard, naming a variable that a failed run left half-updated; invalid_argument
  // (a name that the format does not allow); those of read_variable.
  Status save_variables(const std::string& path, const RunOptions& options = {}) const;
  // Loads all variables from the file atomically: a concurrent run sees either all old or all new values, and nothing changes if an error
  // is returned. The whole file is read first. Errors, reported for all names at once: weights_missing (a variable is not in the file),
  // unknown_name (no variable of that name), dtype_mismatch, shape_mismatch; file_not_found, file_unreadable, file_truncated, file_corrupt
  // (also: a checksum does not match), duplicate_name, limit_exceeded; those of write_variable.
  Status load_variables(const std::string& path, const LoadVariablesOptions& what = {}, const RunOptions& options = {});
  int64_t variable_bytes() const;  // the total size of all variables
  // Counts of the net's plans since it was opened. made: plans compiled. kept, kept_bytes: plans in the cache. hits: requests for a plan
  // that was in the cache; misses: requests for a plan that was not. evicted: plans dropped from the cache for lack of room, by trim(), or
  // because a device was lost.
  struct PlanCounts {
    int64_t made = 0, kept = 0, kept_bytes = 0;
    int64_t hits = 0, misses = 0, evicted = 0;
  };
  PlanCounts plan_counts() const;
  // Frees cached plans of all nets with their packed constants, and run memory that no context uses, until about `keep_bytes` are held.
  // Never blocks runs in progress.
  void trim(int64_t keep_bytes = 0);

  struct Impl;

 private:
  friend struct Internals;
  explicit Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// A loaded plugin.
struct PluginInfo {
  std::string name;
  std::string version;  // as the plugin reports it; the CPU plugin appends the instruction set of its kernels: "0.1.0+avx2"
  std::string path;     // the path of the plugin's library
};

// A device as its backend describes it.
struct DeviceInfo {
  std::string name;         // "cuda:0"
  std::string description;  // one line for people
  int64_t free_bytes = 0;   // free memory at the time of the call; other programs may use it too
  int64_t total_bytes = 0;
  bool described = false;  // true if the device does not exist: RuntimeOptions::described_devices
};

// Plugins, devices and threads. A handle: copies refer to the same runtime, which lives as long as any of its sessions. Thread-safe. In a
// child forked from the process that made the runtime, every call that returns a Status or a Result returns Code::forked.
class HEDDLE_API Runtime {
 public:
  // Makes a runtime. Errors: plugin_unreadable, plugin_abi, plugin_invalid, duplicate_registration; errors in a plugin's rewrite rules,
  // naming rule and file (a rule may use operators of its own plugin, of plugins loaded together with that plugin, and of plugins loaded
  // before); invalid_argument (threads, or the executor's concurrency, out of range); forked (oneTBB's threads belong to the parent).
  static Result<Runtime> create(const RuntimeOptions& options);
  // Opens a .heddle or .json file of one or more nets, with their weights. Errors: file_*, weights_*, syntax and every error in a net or
  // its operators; invalid_argument (streams, plan_cache, plan_cache_bytes or idle_contexts out of range).
  Result<Session> open(const std::string& path, const SessionOptions& options = {}) const;
  // Like open() for a file in memory; weights are looked up beneath `folder`.
  Result<Session> open_bytes(const void* bytes, size_t size, const std::string& folder, const SessionOptions& options = {}) const;
  // Like open() for a net in memory, made by code of the Heddle repository such as the ONNX importer (net/net.h is not installed).
  Result<Session> open(struct Net&& net, const SessionOptions& options = {}) const;
  // Opens the nets of several files, or nets made in memory, as one session and returns a handle on the first net. A symbol or placed port
  // in `options` applies to each net that has a symbol or port of that name. Errors: those of open; duplicate_name (two nets of one name,
  // or a net without a name); for variables that two nets share: dtype_mismatch, shape_mismatch, weights_mismatch.
  Result<Session> open(const std::vector<std::string>& paths, const SessionOptions& options = {}) const;
  Result<Session> open(std::vector<struct Net>&& nets, const SessionOptions& options = {}) const;
  // Like open() for nets that were read before, perhaps with training added (heddle/training.h); `nets` does not change.
  Result<Session> open(const class Nets& nets, const SessionOptions& options = {}) const;
  // Loads a plugin. Sessions that are already open keep the operators that they have. Errors: those of create.
  Status load_plugin(const std::string& path);
  // Unloads a plugin: its library is closed when no session uses it any more. Errors: unknown_name; busy (kernels or rewrite rules of
  // another plugin need its operators); forked.
  Status unload_plugin(const std::string& name);
  std::vector<PluginInfo> plugins() const;
  // [any thread] Opens a device other than the host, given as "kind" or "kind:index", and describes it. Errors: no_such_device with the
  // reason, device_failed, device_lost.
  Result<DeviceInfo> device_info(const std::string& device) const;
  // Frees idle run memory until about `keep_bytes` are held. Run memory is also freed with the last session.
  void trim(int64_t keep_bytes = 0);
  // Returns the number of threads that a run may use, including the calling one.
  int threads() const;

  struct Impl;

 private:
  friend struct Internals;
  explicit Runtime(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle

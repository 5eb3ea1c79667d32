// Runtime, Session and Context: the classes that an embedding program works with.
//
//   auto runtime = heddle::Runtime::create({});     // a Result, like the next two: ok(), or status().text() says why not
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
#include "heddle/copies.h"
#include "heddle/executor.h"
#include "heddle/export.h"
#include "heddle/limits.h"
#include "heddle/observe.h"
#include "heddle/plan_info.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// Receives the log lines of the library and of plugins. Without such a function they are dropped; only the text of an abort (status.h)
// always goes to stderr.
using LogFunction = void (*)(void* user, int level, const char* text, size_t length);
HEDDLE_API void set_log_function(LogFunction function, void* user);

struct RuntimeOptions {
  // Plugins are loaded in this order: `plugins`, then the *.so files of `plugin_folders`, then (unless default_plugins is false) those of
  // the folder named by the environment variable HEDDLE_PLUGIN_DIR or else of lib/heddle/plugins beside the library.
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_folders;
  bool default_plugins = true;
  Executor* executor = nullptr;  // the program's own, which must outlive the runtime; null: one over oneTBB with `threads`
  int threads = 0;               // 1 to max_threads; 0: as many as affinity and cgroup allow; 1: no helper threads at all
  bool pin_threads = false;      // pins helper threads to processors: for programs that own the machine
  // Devices that the machine does not have: pairs of a kind ("cuda") and the description that its backend reads (docs/cuda.md; empty: the
  // backend's own). They replace the machine's devices of that kind in the whole process: plans can be made for them, runs on them are
  // refused.
  std::vector<std::pair<std::string, std::string>> described_devices;
};

struct SessionOptions {
  std::vector<std::pair<std::string, int64_t>> symbols;  // extents of symbolic dims
  std::string device = "cpu:0";                          // where operators run that do not name a device
  // Inputs and outputs of the net that are in device memory, as pairs of port name and device: the addresses bound to them and those that
  // output() returns are device addresses.
  std::vector<std::pair<std::string, std::string>> placed_ports;
  Copies copies = Copies::warn;      // warn: to the log function; automatic and warn also run operators without a kernel there on the host
  int streams = 1;                   // number of streams of each device, 1 to max_streams; results do not depend on it
  int64_t memory_limit = INT64_MAX;  // limit of the planned peak bytes of one context, on each device, and of subnets that grow in a run
  // Each net's plans are cached, one for each combination of input shapes (and of contents that determine shapes). plan_cache_bytes limits
  // their total size and plan_cache, 1 or more, their number. The least recently used plan is dropped first; the last one is never dropped.
  int64_t plan_cache_bytes = int64_t{64} << 20;
  int plan_cache = INT_MAX;
  int idle_contexts = 8;      // number of idle contexts of each plan, without memory, kept for the next prepare or Session::run
  bool commit_late = true;    // variables keep their values when a run fails or is cancelled
  bool rewrite_rules = true;  // applies the rewrite rules of plugins
  uint64_t seed = 0;          // for the net's random operators, and for variables that are filled by an initializer
  Limits limits;              // limits on what the net may request: sizes, depth, memory
  // Whether to verify the net after each transform and its plans after compilation, for finding defects in Heddle and in plugins. Making a
  // plan then takes several times as long. None: the build's default (CMake's HEDDLE_CHECK_PLANS; off in Release).
  std::optional<bool> check_plans;
};

// The name and declared type of an input or output.
struct PortInfo {
  std::string name;
  DType dtype = DType::none;
  Shape shape;                       // -1 where an extent is not declared; the bound where it has one
  std::vector<std::string> symbols;  // by dim, the symbol that SessionOptions::symbols binds; empty: none
  bool ranked = false;
  bool decides_shapes = false;  // true for an input whose content prepare() needs to see
  int64_t index_bound = 0;      // for an input that operators use as indices: the number of rows it may refer to; 0 for other inputs
};

struct RunOptions {
  int64_t deadline_ns = 0;       // measured from the call, waiting for other runs or a thread included; 0: none; negative: already passed
  std::optional<uint64_t> seed;  // for this run's random operators; none: the session's seed
  Profile* profile = nullptr;    // receives the time that each step took; null: no measurement
  const StepObserver* observer = nullptr;  // sees each step; must outlive the run; null: none
  // The run's work on the devices of these streams waits for the work that the streams were given before. Borrowed until the run is over.
  const CallerStream* streams = nullptr;
  size_t stream_count = 0;
};

// Options of Session::load_variables: which mismatches of names are allowed. Dtypes and shapes must always match.
struct LoadVariablesOptions {
  bool allow_missing = false;  // variables that the file lacks keep their values
  bool allow_excess = false;   // tensors that are not variables of the session are ignored
};

// A tensor that owns its bytes. Copies share the bytes; copy_of makes new ones.
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

// A prepared net: its bindings and its memory, which is its own or SharedMemory. Everything is allocated on creation; run() on one thread
// allocates nothing, takes no lock and makes no system call itself (nets with variables take the session's reader/writer lock).
class HEDDLE_API Context {
 public:
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();
  size_t input_count() const;
  size_t output_count() const;
  // Returns the exact type in this context's plan; an empty view if there is no such input or output.
  TensorView input(size_t i) const;
  // Returns the dtype, true shape and bytes of an output after a run (a device address for SessionOptions::placed_ports). data is null
  // before the first run unless an address is bound, and after shared memory has moved. An output that is a variable has the value at the
  // end of the run.
  TensorView output(size_t i) const;
  // Binds input i to the caller's row-major bytes, as many as its type has; they must stay valid until another address is bound. They are
  // copied only if a device reads the input. Memory on a device (SessionOptions::placed_ports) must begin at a multiple of 64 bytes. An
  // input whose content determines shapes keeps the content that the context was prepared for. Errors: invalid_argument.
  Status bind_input(size_t i, const void* data);
  // Binds output i to the caller's memory of `bytes` bytes; -1: at least output_bytes(i). Null: the context's own memory, valid until its
  // next run. Nothing is copied for outputs that are in the arena and that no device reads or writes. The memory must not overlap anything
  // else that the run reads or writes. Errors: invalid_argument, unsupported (the output has no bound).
  Status bind_output(size_t i, void* data, int64_t bytes = -1);
  // Returns the most bytes that output i can take, whatever its extent turns out to be; -1: not known before the run that writes it.
  int64_t output_bytes(size_t i) const;
  // Runs the net on the calling thread and helpers. Errors: missing_input; shape_mismatch (a content other than the one prepared for);
  // invalid_argument (bound memory overlaps); busy (already running; called within a run that holds what this one needs; or a device still
  // works for an abandoned run); kernel_failed (with operator, device, shapes and cause; other failures attached), cancelled,
  // deadline_exceeded, hazard, forked.
  Status run(const RunOptions& options = {});
  // Runs the net on a thread of the runtime's executor and calls `done` there, which may run the context again. The context is reserved
  // from this call on: another run() or run_async() returns busy. The destructor of the context waits for the run. Without `done` a failure
  // is written to the log. Errors: unsupported (no executor), busy, out_of_memory (no thread to watch the deadline), forked.
  Status run_async(std::function<void(Status)> done, const RunOptions& options = {});
  // [any thread] Cancels the current run, also one that is waiting for shared memory. The run returns Code::cancelled when the steps in
  // progress are done.
  void cancel();
  // Returns the planned peak bytes on the host: the size of the context's memory there.
  int64_t planned_bytes() const;
  // Returns the bytes that the context holds now on a device of plan()->memory: its arena, values that could not be planned and the own
  // memory of its subnets; with shared memory everything there. 0 if there is no such device.
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

// Memory that the contexts of any nets work in, one run at a time: on the host and on each device it is as large as the largest context
// needs, not as all together. A handle: copies refer to the same memory, which is freed with the last copy and context. Runs wait for each
// other in order of arrival.
class HEDDLE_API SharedMemory {
 public:
  SharedMemory();
  // Returns the bytes that it holds now, on the host and on devices together.
  int64_t bytes() const;

 private:
  friend struct Internals;
  std::shared_ptr<class Workspace> workspace_;
};

// Opened nets with their weights, variables and plans. A handle on one of the nets: copies are handles on the same net, net() returns
// handles on the others. Nets of one session share variables of the same name (a training net and the net that tests it). Thread-safe. In a
// child forked from the process that made the runtime, every call that returns a Status or a Result returns Code::forked.
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
  // Makes a context for these input types; empty: the declared types. Compiles the plan unless it is cached. `inputs[i].data` is read for
  // inputs whose content determines shapes. Errors: all findings of infer and verify, no_kernel, limit_exceeded, ...
  Result<Context> prepare(const std::vector<TensorView>& inputs = {});
  // Like prepare(), with the caller's buffer as the context's memory on the host. The buffer must have at least transient_bytes(inputs)
  // bytes, be aligned to 64 bytes and outlive the context. On a device the context has its own memory. Errors: those of prepare;
  // invalid_argument (null, too small or unaligned).
  Result<Context> prepare_in(void* buffer, int64_t bytes, const std::vector<TensorView>& inputs = {});
  // Like prepare(), with memory shared with other contexts. A run waits for theirs, and theirs may overwrite what output() returned before.
  // Errors: those of prepare; busy (the calling thread is within a run of theirs).
  Result<Context> prepare_on(const SharedMemory& memory, const std::vector<TensorView>& inputs = {});
  // Returns the size of the buffer that prepare_in needs. Errors: those of prepare.
  Result<int64_t> transient_bytes(const std::vector<TensorView>& inputs = {});
  // Convenience: finds a plan and a context for the inputs' types, runs it, and leaves the results in `outputs` (written to `data` where it
  // is not null; dtypes and shapes are filled in). Allocates nothing once the shapes have been seen. Concurrent calls use separate
  // contexts.
  Status run(const TensorView* inputs, size_t input_count, TensorView* outputs, size_t output_count, const RunOptions& options = {});
  // Like run() above, but returns results that own their bytes.
  Result<std::vector<Tensor>> run(const std::vector<TensorView>& inputs, const RunOptions& options = {});
  // Returns the plan for these input types, compiled or found as by prepare(). Errors: those of prepare.
  Result<std::shared_ptr<const PlanInfo>> plan(const std::vector<TensorView>& inputs = {});
  // Returns all errors of the net for these input types, from every stage up to and including compile (missing kernels, what kernels refuse
  // to prepare, plans over a limit), and warnings; empty: none. An input without a dtype has its declared type; the content of one without
  // data is not known. Each call does all the work again.
  std::vector<Diagnostic> check(const std::vector<TensorView>& inputs = {}) const;
  // Returns the symbols in declared shapes, including those of subnets.
  std::vector<std::string> symbols() const;
  // Returns the files of nets and weights that all nets of the session were read from; empty if it was opened from memory without weights.
  std::vector<std::string> files() const;
  // Returns the names of the variables of all nets. Reading and writing variables wait for runs in order of arrival, up to the deadline of
  // `options`. Errors of both: unknown_name; deadline_exceeded; busy (called within a run that holds the variables, or a device still works
  // for an abandoned run); device_failed. Errors of writing: dtype_mismatch, shape_mismatch and invalid_argument (no data).
  std::vector<std::string> variables() const;
  Result<Tensor> read_variable(const std::string& name, const RunOptions& options = {}) const;
  Status write_variable(const std::string& name, const TensorView& value, const RunOptions& options = {});
  // Fills the variables that have an initializer by it, using `seed`. Variables without content are filled this way before the first
  // context is made, using SessionOptions::seed. The numbers do not depend on the number of threads or the device. Errors:
  // deadline_exceeded; busy; hazard, naming a variable that has an initializer but had content in a file or was written since by a run or
  // write_variable. `overwrite` permits this, so that trained values are not lost by mistake.
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
  int64_t variable_bytes() const;  // of all variables
  // Counts of the net's plans since it was opened. made: plans compiled. kept, kept_bytes: plans in the cache. hits, misses: requests for a
  // plan that was in the cache, and that was not. evicted: plans dropped from the cache for lack of room, by trim(), or because a device
  // was lost.
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
  std::string path;     // the path of its library
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
// child forked from the process that made it, every call that returns a Status or a Result returns Code::forked.
class HEDDLE_API Runtime {
 public:
  // Makes a runtime. Errors: plugin_unreadable, plugin_abi, plugin_invalid, duplicate_registration; errors in a plugin's rewrite rules,
  // naming rule and file (the operators of a rule must come from its own plugin, one loaded together with it, or one loaded before);
  // invalid_argument (threads, or the executor's concurrency, out of range); forked (oneTBB's threads belong to the parent).
  static Result<Runtime> create(const RuntimeOptions& options);
  // Opens a .heddle or .json file of one or more nets, with their weights. Errors: file_*, weights_*, syntax and every error in a net or
  // its operators; invalid_argument (streams, plan_cache, plan_cache_bytes or idle_contexts out of range).
  Result<Session> open(const std::string& path, const SessionOptions& options = {}) const;
  // Like open() for a file in memory; weights are looked up beneath `folder`.
  Result<Session> open_bytes(const void* bytes, size_t size, const std::string& folder, const SessionOptions& options = {}) const;
  // Like open() for a net in memory that this tree's builders or its importer made (net/net.h, which is not installed).
  Result<Session> open(struct Net&& net, const SessionOptions& options = {}) const;
  // Opens nets of several files, or made in memory, as one session; the handle is on the first net. Symbols and placed ports of the options
  // apply to those nets that have them. Errors: those of open; duplicate_name (two nets of one name, or a net without a name); for
  // variables that two nets share: dtype_mismatch, shape_mismatch, weights_mismatch.
  Result<Session> open(const std::vector<std::string>& paths, const SessionOptions& options = {}) const;
  Result<Session> open(std::vector<struct Net>&& nets, const SessionOptions& options = {}) const;
  // Like open() for nets that were read before, perhaps with training added (heddle/training.h); `nets` does not change.
  Result<Session> open(const class Nets& nets, const SessionOptions& options = {}) const;
  // Loads a plugin. Sessions that are open keep the operators that they had. Errors: those of create.
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

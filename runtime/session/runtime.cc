#include <fmt/format.h>

#include <climits>
#include <filesystem>

#include "base/clock.h"
#include "base/device_name.h"
#include "base/text.h"
#include "device/device_manager.h"
#include "infer/shape_operands.h"
#include "load/load.h"
#include "load/structure.h"
#include "plugin/host.h"
#include "plugin/search.h"
#include "resolve/resolve.h"
#include "schedule/tbb_executor.h"
#include "session/session_impl.h"
#include "weights/attach.h"

namespace heddle {
namespace {

// oneTBB keeps threads for the whole process, and a forked child of one that used them has none.
Status check_tbb_threads() {
  static const uint32_t first_used = fork_generation();
  if (first_used == fork_generation()) return {};
  return {Code::forked, "this process was forked from one that had made helper threads, which are not here",
          "use one thread, or an executor of your own, or create the first runtime after fork()"};
}

// Options are taken as they are or refused: never something else than what was asked for.
Status check_range(const char* option, int64_t value, int64_t least, int64_t most, const char* hint) {
  if (value >= least && value <= most) return {};
  return {Code::invalid_argument, fmt::format("{} is {}, not from {} to {}", option, value, least, most), hint};
}

Status check_options(const RuntimeOptions& options) {
  HEDDLE_CHECK(check_range("RuntimeOptions::threads", options.threads, 0, most_threads, "0 is what affinity and cgroup allow"));
  if (!options.executor) return {};
  return check_range("the executor's concurrency()", options.executor->concurrency(), 1, most_threads,
                     "it counts the threads that may work on one run, the calling one included");
}

Status check_options(const SessionOptions& options) {
  HEDDLE_CHECK(check_range("SessionOptions::streams", options.streams, 1, most_streams, "1 is enough for any net"));
  HEDDLE_CHECK(check_range("SessionOptions::plan_cache", options.plan_cache, 1, INT_MAX, "1 keeps the last plan alone"));
  return check_range("SessionOptions::idle_contexts", options.idle_contexts, 0, INT_MAX, "0 keeps none");
}

// The one place where a session's options become what its nets are compiled for.
CompilationTarget target_of(Runtime::Impl& runtime, const SessionOptions& options) {
  CompilationTarget target(options.device, options.limits, static_cast<uint32_t>(runtime.threads));
  target.copies = options.copies;
  target.memory_limit = options.memory_limit;
  target.devices = &runtime.devices;
  target.streams = static_cast<uint32_t>(options.streams);
  target.placed_ports = options.placed_ports;
  target.check_plans = options.check_plans.value_or(target.check_plans);
  return target;
}

}  // namespace

Session::Impl::Impl(std::shared_ptr<Runtime::Impl> of, const SessionOptions& asked)
    : runtime(std::move(of)), options(asked), target(target_of(*runtime, asked)) {
  ++runtime->sessions;
}

void set_log_function(LogFunction function, void* user) {
  set_log_sink(function, user);
}

Result<Runtime> Runtime::create(const RuntimeOptions& options) {
  HEDDLE_CHECK(check_options(options));
  const std::shared_ptr<Impl> impl(new Impl(), [](Impl* made) { delete_unless_forked(made, made->made); });
  HEDDLE_CHECK(load_plugins(impl->registry, options));
  for (const auto& [kind, text] : options.described_devices) HEDDLE_CHECK(describe_devices(*impl->registry.snapshot(), kind, text));
  if (options.executor) {
    impl->executor = options.executor;
  } else if (options.threads != 1) {
    HEDDLE_CHECK(check_tbb_threads());
    TbbExecutorOptions tbb;
    tbb.concurrency = options.threads;
    tbb.pin_helpers = options.pin_threads;
    impl->own_executor = std::make_unique<TbbExecutor>(tbb);
    impl->executor = impl->own_executor.get();
    HEDDLE_CHECK(check_threads(impl->executor->concurrency() - 1));
  }
  impl->threads = impl->executor ? impl->executor->concurrency() : 1;
  ns_per_tick();  // calibrates now rather than in the first run
  return Runtime(std::move(impl));
}

Result<Session> Runtime::open(const std::string& path, const SessionOptions& options) const {
  const uint64_t begin = ticks();
  LoadOptions load;
  load.limits = options.limits;
  HEDDLE_CHECK(impl_->made.check());
  HEDDLE_TRY(Net net, load_net(path, load));
  const auto load_ns = static_cast<int64_t>(ticks_to_ns(ticks() - begin));
  auto session = open_loaded(*this, std::move(net), options);
  if (session.ok()) {
    Internals::of(*session).load_times.load_ns = load_ns;
    Internals::of(*session).path = path;
    Internals::of(*session).folder = std::filesystem::path(path).parent_path().string();
  }
  return session;
}

Result<Session> Runtime::open_bytes(const void* bytes, size_t size, const std::string& folder, const SessionOptions& options) const {
  LoadOptions load;
  load.limits = options.limits;
  HEDDLE_CHECK(impl_->made.check());
  HEDDLE_TRY(Net net, load_net_bytes({static_cast<const std::byte*>(bytes), size}, folder, load));
  auto session = open_loaded(*this, std::move(net), options);
  if (session.ok()) Internals::of(*session).folder = folder;
  return session;
}

// A net built by hand is checked like a file before it is used: wrong ids given to the builder end in an error, not in reads outside its
// vectors.
Result<Session> Runtime::open(Net&& net, const SessionOptions& options) const {
  HEDDLE_CHECK(impl_->made.check());
  HEDDLE_CHECK(check_whole_net(net, options.limits));
  HEDDLE_CHECK(attach_weights(net, {}, {options.limits}));  // there are none to be had: what lacks them is named
  return open_loaded(*this, std::move(net), options);
}

Status Runtime::load_plugin(const std::string& path) {
  HEDDLE_CHECK(impl_->made.check());
  return impl_->registry.load(path);
}
Status Runtime::unload_plugin(const std::string& name) {
  HEDDLE_CHECK(impl_->made.check());
  HEDDLE_CHECK(impl_->registry.unload(name));
  impl_->resources->drop(name);
  impl_->devices.drop(name);
  impl_->workspaces.trim(0);  // what they hold on a device keeps its plugin loaded
  return {};
}
void Runtime::trim(int64_t keep_bytes) {
  if (!impl_->made.holds()) return;
  impl_->quarantine.sweep();
  impl_->devices.sweep();
  impl_->workspaces.trim(keep_bytes);
}
std::vector<PluginInfo> Runtime::plugins() const {
  std::vector<PluginInfo> plugins;
  const auto snapshot = impl_->registry.snapshot();
  for (const auto& plugin : snapshot->plugins()) plugins.push_back({plugin->name, plugin->version, plugin->library->path().string()});
  return plugins;
}
Result<DeviceInfo> Runtime::device_info(const std::string& device) const {
  HEDDLE_CHECK(impl_->made.check());
  const std::string name = full_device_name(device, host_name);
  if (is_host(name)) return Status(Code::no_such_device, "the host is no device of a backend's", "name one of another kind, as in cuda:0");
  HEDDLE_TRY(const std::shared_ptr<Device> opened, impl_->devices.open(*impl_->registry.snapshot(), name));
  DeviceInfo info;
  info.name = name;
  info.description = opened->description();
  info.described = opened->has(HEDDLE_DEVICE_DESCRIBED);
  HEDDLE_CHECK(opened->memory_info(&info.free_bytes, &info.total_bytes));
  return info;
}
int Runtime::threads() const {
  return impl_->threads;
}

Result<Session> open_loaded(const Runtime& runtime, Net net, const SessionOptions& options) {
  HEDDLE_CHECK(check_options(options));
  const std::shared_ptr<Session::Impl> impl(new Session::Impl(Internals::shared(runtime), options),
                                            [](Session::Impl* made) { delete_unless_forked(made, made->runtime->made); });
  impl->registry = impl->runtime->registry.snapshot();
  const uint64_t begin = ticks();
  HEDDLE_TRY(impl->net, resolve(std::move(net), impl->registry, options.limits));
  impl->load_times.resolve_ns = static_cast<int64_t>(ticks_to_ns(ticks() - begin));
  impl->packs = std::make_shared<PackCache>();
  impl->resources = std::make_shared<ResourceTable>(impl->runtime->resources);
  HEDDLE_TRY(impl->variables, VariableStore::create(impl->net));
  impl->shape_inputs = shape_deciding_inputs(impl->net, options.limits);
  PipelineOptions& p = impl->pipeline;
  p.symbols = options.symbols;
  p.transform.apply_rules = options.rewrite_rules;
  p.compile.commit_late = options.commit_late;
  p.compile.packs = impl->packs;
  p.compile.resources = impl->resources;
  return Internals::make(impl);
}

}  // namespace heddle

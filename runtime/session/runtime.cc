#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <string_view>
#include <unordered_map>

#include "base/device_name.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "device/device_manager.h"
#include "infer/shape_operands.h"
#include "load/load.h"
#include "load/structure.h"
#include "net/print.h"
#include "plugin/host.h"
#include "plugin/search.h"
#include "resolve/resolve.h"
#include "schedule/tbb_executor.h"
#include "session/plain_values.h"
#include "session/session_impl.h"
#include "weights/attach.h"

namespace heddle {
namespace {

// Fails in a forked child of a process that used oneTBB: it keeps threads for the whole process, and the child has none of them.
Status check_tbb_threads() {
  static const uint32_t first_used = fork_generation();
  if (first_used == fork_generation()) return {};
  return {Code::forked, "this process was forked from one that had made helper threads, which are not here",
          "use one thread, or an executor of your own, or create the first runtime after fork()"};
}

// Options are used as they are or refused, never adjusted.
Status check_range(const char* option, int64_t value, int64_t least, int64_t most, const char* hint) {
  if (value >= least && value <= most) return {};
  return {Code::invalid_argument, fmt::format("{} is {}, not from {} to {}", option, value, least, most), hint};
}

Status check_options(const RuntimeOptions& options) {
  HEDDLE_CHECK(check_range("RuntimeOptions::threads", options.threads, 0, max_threads, "0 is what affinity and cgroup allow"));
  if (!options.executor) return {};
  return check_range("the executor's concurrency()", options.executor->concurrency(), 1, max_threads,
                     "it counts the threads that may work on one run, the calling one included");
}

Status check_options(const SessionOptions& options) {
  HEDDLE_CHECK(check_range("SessionOptions::streams", options.streams, 1, max_streams, "1 is enough for any net"));
  HEDDLE_CHECK(check_range("SessionOptions::plan_cache", options.plan_cache, 1, INT_MAX, "1 keeps the last plan alone"));
  HEDDLE_CHECK(check_range("SessionOptions::plan_cache_bytes", options.plan_cache_bytes, 0, INT64_MAX, "0 keeps the last plan alone"));
  return check_range("SessionOptions::idle_contexts", options.idle_contexts, 0, INT_MAX, "0 keeps none");
}

// Makes the compilation target of a session's options; the only place that does.
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

Result<Runtime> Runtime::create(const RuntimeOptions& options) try {
  HEDDLE_CHECK(check_options(options));
  std::shared_ptr<Impl> impl(new Impl(), [](Impl* made) { delete_unless_forked(made, made->made); });
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
} catch (...) {
  return status_of_exception();
}

namespace {

Status load_file(const std::string& path, const SessionOptions& options, std::vector<LoadedNet>* loaded) {
  const uint64_t begin = ticks();
  LoadOptions load;
  load.limits = options.limits;
  HEDDLE_TRY(std::vector<Net> nets, load_nets(path, load));
  const auto load_ns = static_cast<int64_t>(ticks_to_ns(ticks() - begin));
  for (Net& net : nets) loaded->push_back({std::move(net), path, std::filesystem::path(path).parent_path().string(), load_ns});
  return {};
}

// Checks a net built by hand like a file before it is used: wrong ids given to the builder end in an error, not in reads outside its
// vectors.
Result<LoadedNet> check_built(Net net, const SessionOptions& options) {
  HEDDLE_CHECK(check_whole_net(net, options.limits));
  HEDDLE_CHECK(attach_weights(net, {}, {options.limits}));  // there are no weight files: values that lack weights are reported
  return LoadedNet{std::move(net), {}, {}, 0};
}

}  // namespace

Result<Session> Runtime::open(const std::string& path, const SessionOptions& options) const try {
  return open(std::vector<std::string>{path}, options);
} catch (...) {
  return status_of_exception();
}

Result<Session> Runtime::open(const std::vector<std::string>& paths, const SessionOptions& options) const try {
  HEDDLE_CHECK(impl_->made.check());
  std::vector<LoadedNet> nets;
  for (const std::string& path : paths) HEDDLE_CHECK(load_file(path, options, &nets));
  return open_loaded(*this, std::move(nets), options);
} catch (...) {
  return status_of_exception();
}

Result<Session> Runtime::open_bytes(const void* bytes, size_t size, const std::string& folder, const SessionOptions& options) const try {
  LoadOptions load;
  load.limits = options.limits;
  HEDDLE_CHECK(impl_->made.check());
  HEDDLE_TRY(std::vector<Net> nets, load_nets_bytes({static_cast<const std::byte*>(bytes), size}, folder, load));
  std::vector<LoadedNet> loaded;
  for (Net& net : nets) loaded.push_back({std::move(net), {}, folder, 0});
  return open_loaded(*this, std::move(loaded), options);
} catch (...) {
  return status_of_exception();
}

Result<Session> Runtime::open(Net&& net, const SessionOptions& options) const try {
  std::vector<Net> nets;
  nets.push_back(std::move(net));
  return open(std::move(nets), options);
} catch (...) {
  return status_of_exception();
}

Result<Session> Runtime::open(std::vector<Net>&& nets, const SessionOptions& options) const try {
  HEDDLE_CHECK(impl_->made.check());
  std::vector<LoadedNet> checked;
  for (Net& net : nets) {
    HEDDLE_TRY(LoadedNet loaded, check_built(std::move(net), options));
    checked.push_back(std::move(loaded));
  }
  return open_loaded(*this, std::move(checked), options);
} catch (...) {
  return status_of_exception();
}

Result<Session> Runtime::open(const Nets& nets, const SessionOptions& options) const try {
  HEDDLE_CHECK(impl_->made.check());
  const Nets::State& read = Internals::of(nets);
  std::vector<LoadedNet> checked;
  for (const Net& net : read.nets) {
    HEDDLE_TRY(LoadedNet loaded, check_built(Net(net), options));
    loaded.path = read.path;
    loaded.folder = read.folder;
    checked.push_back(std::move(loaded));
  }
  return open_loaded(*this, std::move(checked), options);
} catch (...) {
  return status_of_exception();
}

Status Runtime::load_plugin(const std::string& path) try {
  HEDDLE_CHECK(impl_->made.check());
  return impl_->registry.load(path);
} catch (...) {
  return status_of_exception();
}
Status Runtime::unload_plugin(const std::string& name) try {
  HEDDLE_CHECK(impl_->made.check());
  HEDDLE_CHECK(impl_->registry.unload(name));
  impl_->resources->drop(name);
  impl_->devices.drop(name);
  impl_->workspaces.trim(0);  // memory that they hold on a device keeps its plugin loaded
  return {};
} catch (...) {
  return status_of_exception();
}
void Runtime::trim(int64_t keep_bytes) {
  if (!impl_->made.holds()) return;
  impl_->outstanding->sweep();
  impl_->workspaces.trim(keep_bytes);
}
std::vector<PluginInfo> Runtime::plugins() const {
  return or_empty("no memory for the list of plugins", [&] {
    std::vector<PluginInfo> plugins;
    const auto snapshot = impl_->registry.snapshot();
    for (const auto& plugin : snapshot->plugins()) plugins.push_back({plugin->name, plugin->version, plugin->library->path().string()});
    return plugins;
  });
}
Result<DeviceInfo> Runtime::device_info(const std::string& device) const try {
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
} catch (...) {
  return status_of_exception();
}
int Runtime::threads() const {
  return impl_->threads;
}

namespace {

bool has_port(const Net& net, const std::string& name) {
  const auto is_it = [&](ValueId id) { return net[id].name == name; };
  return std::any_of(net.inputs.begin(), net.inputs.end(), is_it) || std::any_of(net.outputs.begin(), net.outputs.end(), is_it);
}
bool has_symbol(const Net& net, const std::string& name) {
  const std::vector<std::string> names = symbol_names(net);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Removes from a list by name the entries that only other nets have. Entries that no net has stay, so that each net reports them.
template <class Has, class Second>
void keep_own(std::vector<std::pair<std::string, Second>>& list, const Net& own, const std::vector<LoadedNet>& nets, const Has& has) {
  std::erase_if(list, [&](const auto& item) {
    return !has(own, item.first) && std::any_of(nets.begin(), nets.end(), [&](const LoadedNet& n) { return has(n.net, item.first); });
  });
}

// Opens the part of a session that belongs to one net.
Result<std::unique_ptr<Session::Impl>> open_net(const std::shared_ptr<Runtime::Impl>& runtime,
                                                const std::shared_ptr<const RegistrySnapshot>& registry, const SessionOptions& options,
                                                LoadedNet loaded) {
  auto impl = std::make_unique<Session::Impl>(runtime, options);
  impl->registry = registry;
  const uint64_t begin = ticks();
  HEDDLE_TRY(impl->net, resolve(std::move(loaded.net), impl->registry, options.limits));
  impl->load_times.load_ns = loaded.load_ns;
  impl->load_times.resolve_ns = static_cast<int64_t>(ticks_to_ns(ticks() - begin));
  impl->path = std::move(loaded.path);
  impl->folder = std::move(loaded.folder);
  impl->shape_inputs = shape_deciding_inputs(impl->net, options.limits);
  return impl;
}

// Returns where the store has the variables of `net`.
std::shared_ptr<const VariableSlots> slots_in(const VariableStore& store, const Net& net) {
  auto slots = std::make_shared<VariableSlots>();
  slots->names = store.names();
  std::unordered_map<std::string_view, uint32_t> known;
  for (size_t i = 0; i < slots->names.size(); ++i) known.emplace(slots->names[i], static_cast<uint32_t>(i));
  for (const Variable& variable : net.variables) slots->of.push_back(known.at(variable.name));
  return slots;
}

}  // namespace

Result<Session> open_loaded(const Runtime& runtime, std::vector<LoadedNet> nets, const SessionOptions& options) {
  HEDDLE_CHECK(check_options(options));
  std::vector<const Net*> loaded;
  for (const LoadedNet& net : nets) loaded.push_back(&net.net);
  HEDDLE_CHECK(check_net_names(loaded));
  const std::shared_ptr<Runtime::Impl>& shared = Internals::shared(runtime);
  const std::shared_ptr<Model> model(new Model(), [shared](Model* made) { delete_unless_forked(made, shared->made); });
  std::vector<SessionOptions> own(nets.size(), options);
  for (size_t i = 0; i < nets.size(); ++i) {
    keep_own(own[i].placed_ports, nets[i].net, nets, has_port);
    keep_own(own[i].symbols, nets[i].net, nets, has_symbol);
  }
  const std::shared_ptr<const RegistrySnapshot> registry = shared->registry.snapshot();  // the same operators for all
  std::vector<const Net*> resolved;
  for (size_t i = 0; i < nets.size(); ++i) {
    HEDDLE_TRY(auto net, open_net(shared, registry, own[i], std::move(nets[i])));
    net->model = model.get();
    resolved.push_back(&net->net);
    model->nets.push_back(std::move(net));
  }
  const auto packs = std::make_shared<PackCache>();
  const auto resources = std::make_shared<ResourceTable>(ResourceHolder::session, shared->resources);
  HEDDLE_CHECK(check_communicators(options.communicators));
  const auto communicators = std::make_shared<Communicators>(options.communicators, options.device, resources);
  HEDDLE_TRY(const std::shared_ptr<VariableStore> variables,
             VariableStore::create(resolved, options.seed, options.limits, shared->outstanding));
  for (const auto& net : model->nets) {
    net->packs = packs;
    net->resources = resources;
    net->communicators = communicators;
    net->variables = variables;
    PipelineOptions& p = net->pipeline;
    p.symbols = net->options.symbols;
    p.transform.apply_rules = options.rewrite_rules;
    p.compile.commit_late = options.commit_late;
    p.compile.packs = packs;
    p.compile.rank_in = [communicators](const std::string& name) { return communicators->rank_in(name); };
    if (std::any_of(net->net.metadata.begin(), net->net.metadata.end(), [](const auto& m) { return m.first.starts_with(ranks_key({})); }))
      p.compile.net_text = std::make_shared<const std::string>(print(net->net));
    p.compile.ranks_of = [communicators](const std::string& name) { return communicators->ranks_of(name); };
    p.compile.devices_of = [communicators](const std::string& name) { return communicators->devices_of(name); };
    p.compile.resources = resources;
    p.compile.variable_slots = slots_in(*variables, net->net);
  }
  return Internals::make({model, model->nets[0].get()});
}

}  // namespace heddle

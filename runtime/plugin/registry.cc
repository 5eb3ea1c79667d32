#include "plugin/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"

namespace heddle {
namespace {

// Names come from C strings and hold no zero byte, so two different pairs never share a key.
std::string key_of(std::string_view domain, std::string_view name) {
  std::string key;
  key.reserve(domain.size() + name.size() + 1);
  key.append(domain);
  key += '\0';
  key.append(name);
  return key;
}

// The set of a variadic last port applies to all its values.
bool takes(const heddle_dtype_set* sets, uint32_t count, uint32_t port_count, std::span<const DType> dtypes) {
  if (!sets) return true;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i] == DType::none) continue;  // absent
    const size_t port = port_count > 0 ? std::min<size_t>(i, port_count - 1) : 0;
    if (port < count && !(sets[port] & HEDDLE_DTYPE_BIT(static_cast<int>(dtypes[i])))) return false;
  }
  return true;
}

bool sets_overlap(const heddle_dtype_set* a, uint32_t a_count, const heddle_dtype_set* b, uint32_t b_count) {
  if (!a || !b) return true;
  for (uint32_t i = 0; i < std::min(a_count, b_count); ++i)
    if (!(a[i] & b[i])) return false;
  return true;
}

// Operations of an expression with every name as an input; -1: there is none, or it needs its attributes.
int operations_of(const char* expression) {
  if (!expression) return -1;
  expression::Program program;
  std::string error;
  if (!expression::parse(expression, {}, program, error)) return -1;
  expression::prune(program);
  return expression::operations(program);
}

std::shared_ptr<LoadedPlugin> read_tables(std::unique_ptr<Library> library) {
  auto loaded = std::make_shared<LoadedPlugin>();
  const heddle_plugin& plugin = library->plugin();
  loaded->name = plugin.name;
  loaded->version = plugin.version ? plugin.version : "";
  for (uint32_t i = 0; i < plugin.operator_count; ++i) {
    const heddle_operator* op = plugin.operators[i];
    OperatorSchema& schema = loaded->operators.emplace_back();
    schema.op = op;
    schema.domain = op->domain ? op->domain : "";
    schema.name = op->name;
    schema.version = op->version;
    schema.plugin = loaded.get();
    schema.pointwise_operations = operations_of(op->pointwise);
    std::string ignored;  // unused: check_tables() has read them without error
    schema.declared_dims.read(*op, &ignored);
    for (uint32_t k = 0; k < op->input_count; ++k) {
      if (!(op->inputs[k]->flags & HEDDLE_PORT_OPTIONAL)) schema.required_inputs = k + 1;
      if (op->inputs[k]->flags & HEDDLE_PORT_SHAPE_OPERAND) schema.has_shape_operand = true;
    }
  }
  for (uint32_t i = 0; i < plugin.kernel_count; ++i) {
    KernelEntry& entry = loaded->kernels.emplace_back();
    entry.kernel = plugin.kernels[i];
    entry.plugin = loaded.get();
    entry.name = entry.kernel->name ? entry.kernel->name : loaded->name + ":" + entry.kernel->operator_name;
  }
  loaded->library = std::move(library);
  return loaded;
}

}  // namespace

std::string display_name(std::string_view domain, std::string_view name) {
  return domain.empty() ? std::string(name) : std::string(domain) + "::" + std::string(name);
}

int OperatorSchema::attribute_index(std::string_view attribute) const {
  for (uint32_t i = 0; i < op->attribute_count; ++i)
    if (attribute == op->attributes[i]->name) return static_cast<int>(i);
  return -1;
}

bool OperatorSchema::updates_variable() const {
  for (uint32_t i = 0; i < op->output_count; ++i)
    if (op->outputs[i]->updates >= 0) return true;
  return false;
}

const RegistrySnapshot::Operator* RegistrySnapshot::find(std::string_view domain, std::string_view name) const {
  const auto it = operators_.find(key_of(domain, name));
  return it == operators_.end() ? nullptr : &it->second;
}

const OperatorSchema* RegistrySnapshot::find_operator(std::string_view domain, std::string_view name, int32_t version) const {
  const Operator* op = find(domain, name);
  if (!op) return nullptr;
  // The newest version not above the requested one: a version's semantics hold until a later one changes them. Sorted by add().
  const OperatorSchema* best = nullptr;
  for (const OperatorSchema* schema : op->versions)
    if (version == 0 || schema->version <= version) best = schema;
  return best;
}

std::string_view RegistrySnapshot::launched_kind(std::string_view kind) const {
  std::shared_ptr<const LoadedPlugin> owner;
  const heddle_device_backend* const backend = find_device(kind, &owner);
  return backend && backend->runs_kernels_of ? backend->runs_kernels_of : "";
}

bool RegistrySnapshot::has_kernel(const OperatorSchema& schema, std::string_view device_kind) const {
  const Operator* const op = find(schema.domain, schema.name);
  if (!op) return false;
  for (const std::string_view kind : {device_kind, launched_kind(device_kind)}) {
    const auto it = op->kernels.find(std::string(kind));
    if (it == op->kernels.end()) continue;
    if (std::any_of(it->second.begin(), it->second.end(), [&](const KernelEntry* k) { return k->kernel->version == schema.version; }))
      return true;
  }
  return false;
}

const KernelEntry* RegistrySnapshot::find_kernel(const OperatorSchema& schema, std::string_view device_kind, std::span<const DType> inputs,
                                                 std::span<const DType> outputs, const KernelEntry* after) const {
  const Operator* op = find(schema.domain, schema.name);
  if (!op) return nullptr;
  // Kernels by falling priority. `after` refused the node, so the search continues past it.
  const auto find_of_kind = [&](std::string_view kind, uint32_t unwanted, uint32_t wanted = 0) -> const KernelEntry* {
    const auto it = op->kernels.find(std::string(kind));
    if (it == op->kernels.end()) return nullptr;
    for (const KernelEntry* entry : it->second) {
      if (after) {
        if (entry == after) after = nullptr;
        continue;
      }
      const heddle_kernel& k = *entry->kernel;
      if (k.version == schema.version && (k.flags & unwanted) == 0 && (k.flags & wanted) == wanted &&
          takes(k.input_dtypes, k.input_dtype_count, schema.op->input_count, inputs) &&
          takes(k.output_dtypes, k.output_dtype_count, schema.op->output_count, outputs))
        return entry;
    }
    return nullptr;
  };
  const KernelEntry* const own = find_of_kind(device_kind, 0);
  if (own || device_kind == "cpu") return own;
  const KernelEntry* const refused = after;  // of one kind or the other
  if (const KernelEntry* const mover = find_of_kind("cpu", 0, HEDDLE_KERNEL_MOVES_ONLY)) return mover;
  after = refused;
  if (schema.op->subnets) return nullptr;
  const std::string_view launched = launched_kind(device_kind);
  if (launched.empty()) return nullptr;
  std::shared_ptr<const LoadedPlugin> owner;
  const uint32_t in_groups = find_device(device_kind, &owner)->enqueue_group ? 0u : uint32_t{HEDDLE_KERNEL_GROUP};
  return find_of_kind(launched, HEDDLE_KERNEL_ASYNC | HEDDLE_KERNEL_RESUMES | in_groups);
}

const heddle_resource* RegistrySnapshot::find_resource(std::string_view name, std::string_view device_kind,
                                                       std::shared_ptr<const LoadedPlugin>* owner) const {
  for (const auto& loaded : plugins_) {
    const heddle_plugin& p = loaded->library->plugin();
    for (uint32_t i = 0; i < p.resource_count; ++i)
      if (name == p.resources[i]->name && (!p.resources[i]->device_kind || device_kind == p.resources[i]->device_kind)) {
        *owner = loaded;
        return p.resources[i];
      }
  }
  return nullptr;
}

const heddle_device_backend* RegistrySnapshot::find_device(std::string_view kind, std::shared_ptr<const LoadedPlugin>* owner) const {
  for (const auto& loaded : plugins_) {
    const heddle_plugin& p = loaded->library->plugin();
    for (uint32_t i = 0; i < p.device_count; ++i)
      if (kind == p.devices[i]->kind) {
        *owner = loaded;
        return p.devices[i];
      }
  }
  return nullptr;
}

std::vector<std::string> RegistrySnapshot::operator_names(std::string_view domain) const {
  std::vector<std::string> names;
  for (const auto& [key, op] : operators_)
    if (std::string_view(key).substr(0, key.find('\0')) == domain) names.push_back(key.substr(domain.size() + 1));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> RegistrySnapshot::domains() const {
  std::vector<std::string> names;
  for (const auto& [key, op] : operators_) names.push_back(key.substr(0, key.find('\0')));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::shared_ptr<const LoadedPlugin> RegistrySnapshot::owner(const LoadedPlugin* plugin) const {
  for (const auto& loaded : plugins_)
    if (loaded.get() == plugin) return loaded;
  return nullptr;
}

namespace {

// Fusion uses the text instead of a kernel: where they differ a net's results would depend on the neighbours of the operator.
Status check_beside_pointwise(const OperatorSchema& schema, const heddle_kernel& kernel, const std::string& path) {
  const bool equal = (kernel.flags & HEDDLE_KERNEL_EQUALS_POINTWISE) != 0, text = schema.op->pointwise != nullptr;
  if (equal == text) return {};
  const std::string what =
      fmt::format("plugin {} brings a kernel for {} on {}", path, display_name(schema.domain, schema.name), kernel.device_kind);
  if (equal)
    return {Code::plugin_invalid, fmt::format("{} that claims to equal a pointwise text, but the operator has none", what),
            "drop the claim"};
  return {Code::plugin_invalid, fmt::format("{} beside the operator's pointwise text and does not say that they are equal", what),
          "drop one of the two, or declare equals_pointwise() after the kernel (plugin check tests it)"};
}

}  // namespace

Status RegistrySnapshot::add(std::shared_ptr<const LoadedPlugin> plugin) {
  const std::string path = quoted(plugin->library->path().string());
  const auto duplicate = [&](const std::string& what, const LoadedPlugin& other) {
    return Status(Code::duplicate_registration,
                  fmt::format("{} is registered by {} and again by {}", what, quoted(other.library->path().string()), path),
                  "load one of the two, or give one kernel a higher priority");
  };
  for (const auto& other : plugins_)
    if (other->name == plugin->name) return duplicate(fmt::format("plugin name {}", quoted(plugin->name)), *other);
  // Operators before kernels: a plugin's kernels may be for its own operators as well as for those of plugins loaded before.
  for (const OperatorSchema& schema : plugin->operators) {
    std::vector<const OperatorSchema*>& versions = operators_[key_of(schema.domain, schema.name)].versions;
    for (const OperatorSchema* other : versions)
      if (other->version == schema.version)
        return duplicate(fmt::format("operator {} version {}", display_name(schema.domain, schema.name), schema.version), *other->plugin);
    versions.push_back(&schema);
    std::sort(versions.begin(), versions.end(), [](const OperatorSchema* a, const OperatorSchema* b) { return a->version < b->version; });
  }
  for (const KernelEntry& entry : plugin->kernels) {
    const heddle_kernel& k = *entry.kernel;
    const std::string domain = k.domain ? k.domain : "";
    const OperatorSchema* schema = find_operator(domain, k.operator_name, k.version);
    if (!schema || schema->version != k.version)
      return {Code::plugin_invalid,
              fmt::format("plugin {} brings a kernel for {} version {}, an operator nobody declares", path,
                          display_name(domain, k.operator_name), k.version),
              "load the plugin that declares it first, or declare it"};
    HEDDLE_CHECK(check_beside_pointwise(*schema, k, path));
    if ((k.flags & HEDDLE_KERNEL_GROUP) != 0 && !schema->has_trait(HEDDLE_TRAIT_COLLECTIVE))
      return {Code::plugin_invalid,
              fmt::format("plugin {} brings a kernel for {} on {} that is launched in groups, and its operator is no collective", path,
                          display_name(schema->domain, schema->name), k.device_kind),
              "give the operator HEDDLE_TRAIT_COLLECTIVE, or the kernel no run_group"};
    std::vector<const KernelEntry*>& entries = operators_[key_of(domain, k.operator_name)].kernels[k.device_kind];
    // With equal priority and overlapping dtypes, the order of loading would choose: results must not depend on it.
    for (const KernelEntry* other : entries) {
      const heddle_kernel& o = *other->kernel;
      if (o.version == k.version && o.priority == k.priority &&
          sets_overlap(o.input_dtypes, o.input_dtype_count, k.input_dtypes, k.input_dtype_count) &&
          sets_overlap(o.output_dtypes, o.output_dtype_count, k.output_dtypes, k.output_dtype_count))
        return duplicate(fmt::format("kernel of {} on {} for the same dtypes", display_name(domain, k.operator_name), k.device_kind),
                         *other->plugin);
    }
    entries.push_back(&entry);
    std::stable_sort(entries.begin(), entries.end(),
                     [](const KernelEntry* a, const KernelEntry* b) { return a->kernel->priority > b->kernel->priority; });
  }
  const heddle_plugin& tables = plugin->library->plugin();
  for (uint32_t i = 0; i < tables.device_count; ++i) {
    std::shared_ptr<const LoadedPlugin> other;
    if (find_device(tables.devices[i]->kind, &other)) return duplicate(fmt::format("device kind {}", tables.devices[i]->kind), *other);
  }
  for (uint32_t i = 0; i < tables.resource_count; ++i) {
    std::shared_ptr<const LoadedPlugin> other;
    if (find_resource(tables.resources[i]->name, tables.resources[i]->device_kind ? tables.resources[i]->device_kind : "cpu", &other))
      return duplicate(fmt::format("resource {}", quoted(tables.resources[i]->name)), *other);
  }
  plugins_.push_back(std::move(plugin));
  return {};
}

bool RegistrySnapshot::has_asynchronous_kernels() const {
  return has_kernels_with("cpu", HEDDLE_KERNEL_ASYNC);
}

bool RegistrySnapshot::has_kernels_with(std::string_view device_kind, uint32_t flag) const {
  return std::any_of(plugins_.begin(), plugins_.end(), [&](const auto& plugin) {
    return std::any_of(plugin->kernels.begin(), plugin->kernels.end(), [&](const KernelEntry& entry) {
      return (entry.kernel->flags & flag) != 0 && entry.kernel->device_kind == device_kind;
    });
  });
}

Registry::Registry(RuleReader reader) : reader_(std::move(reader)), snapshot_(std::make_shared<RegistrySnapshot>()) {}

// Reads the rules of all plugins, not only of new ones: new plugins may change the operator that a name refers to.
Status Registry::read_rules(const std::shared_ptr<RegistrySnapshot>& snapshot) const {
  snapshot->rewrite_rules_.clear();
  if (!reader_) return {};
  for (const auto& loaded : snapshot->plugins()) {
    const heddle_plugin& tables = loaded->library->plugin();
    for (uint32_t i = 0; i < tables.rule_count; ++i) {
      HEDDLE_TRY(RewriteRule rule, reader_(*loaded, *tables.rules[i], snapshot));
      snapshot->rewrite_rules_.push_back(std::make_shared<const RewriteRule>(std::move(rule)));
    }
  }
  return {};
}

Status Registry::load(std::span<const std::filesystem::path> files) {
  const MutexLock lock(mutex_);
  // Works on a copy: a refusal half-way has no effect.
  auto next = std::make_shared<RegistrySnapshot>(*snapshot_);
  for (const std::filesystem::path& file : files) {
    // A file under another name is the same library to the loader, and its tables must not be entered twice.
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(file, error);
    const auto is_it = [&](const auto& loaded) { return loaded->library->path() == canonical; };
    if (!error && std::any_of(next->plugins().begin(), next->plugins().end(), is_it)) continue;
    HEDDLE_TRY(std::unique_ptr<Library> library, Library::open(file));
    HEDDLE_CHECK(next->add(read_tables(std::move(library))));
  }
  if (next->plugins().size() == snapshot_->plugins().size()) return {};
  HEDDLE_CHECK(read_rules(next));
  snapshot_ = std::move(next);
  return {};
}

Result<std::vector<std::filesystem::path>> plugin_files(const std::filesystem::path& folder) {
  const Result<std::vector<std::string>> names = names_in(folder);
  if (!names.ok())
    return Status(Code::plugin_unreadable,
                  fmt::format("plugin folder {}: {}", quoted(folder.string()), names.status().diagnostic().message),
                  hint_with("check ", option_names::plugin_folders));
  std::vector<std::filesystem::path> files;
  for (const std::string& name : *names)
    if (std::filesystem::path(name).extension() == ".so") files.push_back(folder / name);
  std::sort(files.begin(), files.end());
  return files;
}

Status Registry::unload(const std::string& plugin_name) {
  std::shared_ptr<const RegistrySnapshot> before;  // released after unlocking: closing a library may take a while
  const MutexLock lock(mutex_);
  // Built anew from the remaining plugins: add() then finds which of them need the removed one.
  auto next = std::make_shared<RegistrySnapshot>();
  bool found = false;
  for (const auto& loaded : snapshot_->plugins()) {
    if (loaded->name == plugin_name) {
      found = true;
      continue;
    }
    Status added = next->add(loaded);
    if (added.code() == Code::out_of_memory) return added;
    if (!added.ok())
      return {Code::busy, fmt::format("plugin {} declares operators for which {} has kernels", quoted(plugin_name), quoted(loaded->name)),
              fmt::format("unload {} first", quoted(loaded->name))};
  }
  if (!found) return {Code::unknown_name, fmt::format("no plugin {} is loaded", quoted(plugin_name)), "see heddle plugin list"};
  if (Status read = read_rules(next); read.code() == Code::out_of_memory)
    return read;
  else if (!read.ok())
    return {Code::busy, fmt::format("plugin {} is needed by a rewrite rule: {}", quoted(plugin_name), read.text()),
            "unload the plugin of the rule first"};
  before = std::move(snapshot_);
  snapshot_ = std::move(next);
  return {};
}

std::shared_ptr<const RegistrySnapshot> Registry::snapshot() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

}  // namespace heddle

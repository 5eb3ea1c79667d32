#include "commands/inspect/inspect_plugin.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/text/text.h"
#include "commands/inspect/operator_text.h"
#include "commands/plugin/kernel_json.h"
#include "plugin/search.h"

namespace heddle::tool {
namespace {

std::string kernel_text(const Json& kernel, const OperatorSchema& schema) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < kernel["types"].size(); ++i)
    inputs.push_back(fmt::format("{}: {}", schema.op->inputs[i]->name, dtypes_text(kernel["types"][i])));
  return fmt::format("{} on {}{}{}", word(kernel["name"].get<std::string>()), word(kernel["device"].get<std::string>()),
                     inputs.empty() ? "" : ", ", join(inputs, ", "));
}

// An operator of another plugin is printed before the kernels for it.
class KernelLines {
 public:
  KernelLines(const RegistrySnapshot& registry, const LoadedPlugin& plugin) : registry_(registry) {
    for (const KernelEntry& entry : plugin.kernels) {
      const heddle_kernel& kernel = *entry.kernel;
      const OperatorSchema* const schema = registry.find_operator(kernel.domain ? kernel.domain : "", kernel.operator_name, kernel.version);
      by_operator_[schema].push_back(&entry);
      if (schema->plugin != &plugin && by_operator_[schema].size() == 1) others_.push_back(schema);
    }
  }
  // Operators of other plugins that this one has kernels for.
  const std::vector<const OperatorSchema*>& others() const { return others_; }
  // Appends them to `list`.
  void describe(const OperatorSchema& schema, Report& report, Json& list) const {
    const auto found = by_operator_.find(&schema);
    if (found == by_operator_.end()) return;
    for (const KernelEntry* const entry : found->second) {
      list.push_back(kernel_json(registry_, *entry));
      say_part(report, "kernel", kernel_text(list.back(), schema));
    }
  }

 private:
  const RegistrySnapshot& registry_;
  std::map<const OperatorSchema*, std::vector<const KernelEntry*>> by_operator_;
  std::vector<const OperatorSchema*> others_;
};

// ---------------------------------------------------------------- loading

// Kernels for operators of other plugins need the plugins that declare them: those that every command loads. A plugin loaded by that name
// already is another build of the plugin, which this one replaces.
Status load_beside_others(Registry& registry, const std::string& file, const CommonOptions& common) {
  HEDDLE_CHECK(load_plugins(registry, runtime_options(common)));
  HEDDLE_TRY(const std::unique_ptr<Library> library, Library::open(file));
  const auto loaded = registry.snapshot();
  for (const auto& other : loaded->plugins())
    if (other->name == library->plugin().name && other->library->path() != library->path()) HEDDLE_CHECK(registry.unload(other->name));
  return registry.load(file);
}

Result<std::shared_ptr<const RegistrySnapshot>> load_inspected(const std::string& file, const CommonOptions& common) {
  Registry alone;
  const Status status = alone.load(file);
  if (status.ok()) return alone.snapshot();
  if (status.code() != Code::plugin_invalid) return status;
  Registry beside_others;
  HEDDLE_CHECK(load_beside_others(beside_others, file, common));
  return beside_others.snapshot();
}

const LoadedPlugin* plugin_of(const RegistrySnapshot& registry, const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  for (const auto& plugin : registry.plugins())
    if (plugin->library->path() == path) return plugin.get();
  return nullptr;
}

}  // namespace

Status inspect_plugin(const std::string& file, const std::string& only, Report& report) {
  HEDDLE_TRY(const auto registry, load_inspected(file, report.common));
  const LoadedPlugin* const found = plugin_of(*registry, file);
  if (!found) return {Code::plugin_unreadable, fmt::format("{} is another file than it was a moment ago", quoted(file)), "try again"};
  const LoadedPlugin& plugin = *found;
  const heddle_plugin& tables = plugin.library->plugin();
  std::vector<std::string> devices;
  for (uint32_t i = 0; i < tables.device_count; ++i) devices.emplace_back(tables.devices[i]->kind);
  report.say(fmt::format("plugin {} {}: {} operators, {} kernels{}", quoted(plugin.name), word(plugin.version), plugin.operators.size(),
                         plugin.kernels.size(), devices.empty() ? "" : fmt::format(", devices {}", join(devices, ", "))));
  const KernelLines kernel_lines(*registry, plugin);
  Json operators = Json::array(), kernels = Json::array();
  std::vector<std::string> names;
  const auto wanted = [&](const OperatorSchema& schema) {
    names.push_back(display_name(schema.domain, schema.name));
    return only.empty() || only == schema.name || only == names.back();
  };
  for (const OperatorSchema& schema : plugin.operators) {
    if (!wanted(schema)) continue;
    operators.push_back(operator_json(schema));
    say_operator(operators.back(), schema, report);
    kernel_lines.describe(schema, report, kernels);
  }
  for (const OperatorSchema* const schema : kernel_lines.others()) {
    if (!wanted(*schema)) continue;
    report.say(fmt::format("  {} {}, an operator of {}", names.back(), schema->version, quoted(schema->plugin->name)));
    kernel_lines.describe(*schema, report, kernels);
  }
  if (!only.empty() && operators.empty() && kernels.empty())
    return {Code::unknown_name, fmt::format("{} has no operator {}", quoted(file), quoted(only)), suggestion(only, names)};
  report.json["plugin"] = {
      {"name", plugin.name}, {"version", plugin.version}, {"operators", operators}, {"kernels", kernels}, {"devices", devices}};
  return {};
}

}  // namespace heddle::tool

// op: what an operator is, or which there are.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text/text.h"
#include "commands/commands.h"
#include "commands/inspect/operator_text.h"
#include "commands/op/operator_pages.h"
#include "plugin/registry.h"
#include "plugin/search.h"

namespace heddle::tool {
namespace {

struct OpArguments {
  std::string name, search, pages;
  bool all = false;
  std::vector<std::string> of;
  bool is_of(const LoadedPlugin& plugin) const { return of.empty() || std::find(of.begin(), of.end(), plugin.name) != of.end(); }
  bool is_named(const OperatorSchema& schema) const {
    return name.empty() || name == schema.name || name == display_name(schema.domain, schema.name);
  }
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the kinds of device that have a kernel for an operator, from any plugin or from `only`. One with a pointwise expression is run by
// the kernels of Pointwise.
std::vector<std::string> devices_of(const RegistrySnapshot& registry, const OperatorSchema& asked, const LoadedPlugin* only = nullptr) {
  const OperatorSchema* const pointwise = asked.op->pointwise ? registry.find_operator("heddle", "Pointwise") : nullptr;
  const OperatorSchema& schema = pointwise ? *pointwise : asked;
  std::set<std::string> kinds;
  for (const auto& plugin : registry.plugins()) {
    if (only && plugin.get() != only) continue;
    for (const KernelEntry& entry : plugin->kernels) {
      const heddle_kernel& kernel = *entry.kernel;
      if (registry.find_operator(kernel.domain ? kernel.domain : "", kernel.operator_name, kernel.version) == &schema)
        kinds.insert(kernel.device_kind ? kernel.device_kind : "cpu");
    }
  }
  return {kinds.begin(), kinds.end()};
}

Status check_plugins_named(const RegistrySnapshot& registry, const std::vector<std::string>& names) {
  std::vector<std::string> loaded;
  for (const auto& plugin : registry.plugins()) loaded.push_back(plugin->name);
  for (const std::string& name : names)
    if (std::find(loaded.begin(), loaded.end(), name) == loaded.end())
      return {Code::unknown_name, fmt::format("no plugin called {} is loaded", quoted(name)),
              fmt::format("loaded are {}; load another with --plugin FILE", join(loaded, ", "))};
  return {};
}

Json described(const RegistrySnapshot& registry, const OperatorSchema& schema) {
  Json json = operator_json(schema);
  json["plugin"] = schema.plugin->name;
  json["devices"] = devices_of(registry, schema);
  return json;
}

// Whether a text stands in what an operator says of itself.
bool is_found(const Json& json, const std::string& wanted) {
  if (lower(json["name"].get<std::string>()).find(wanted) != std::string::npos) return true;
  if (lower(json["doc"].get<std::string>()).find(wanted) != std::string::npos) return true;
  for (const char* const part : {"inputs", "outputs", "attributes"})
    for (const Json& one : json[part])
      if (lower(one["name"].get<std::string>()) == wanted) return true;
  return false;
}

// Each operator in a line, by name.
void say_list(const std::vector<DescribedOperator>& found, const Report& report) {
  size_t longest = 0;
  for (const auto& [schema, json, own] : found) longest = std::max(longest, json["name"].get<std::string>().size());
  for (const auto& [schema, json, own] : found) {
    std::string doc = first_sentence(json["doc"].get<std::string>());
    if (doc.empty() && !json["examples"].empty()) doc = fmt::format("as in {}", json["examples"][0]["text"].get<std::string>());
    report.say(fmt::format("{:<{}}  {}", json["name"].get<std::string>(), longest, doc));
  }
}

Status describe_operators(const OpArguments& o, Report& report) {
  Registry loaded;
  HEDDLE_CHECK(load_plugins(loaded, runtime_options(report.common)));
  const auto registry = loaded.snapshot();
  std::vector<DescribedOperator> found;
  std::vector<std::string> names;
  const std::string wanted = lower(o.search);
  for (const auto& plugin : registry->plugins()) {
    if (!o.is_of(*plugin)) continue;
    for (const OperatorSchema& schema : plugin->operators) {
      names.push_back(display_name(schema.domain, schema.name));
      if (!o.is_named(schema)) continue;
      Json json = described(*registry, schema);
      if (o.search.empty() || is_found(json, wanted)) found.push_back({&schema, std::move(json), {}});
    }
  }
  HEDDLE_CHECK(check_plugins_named(*registry, o.of));
  if (!o.name.empty() && found.empty())
    return {Code::unknown_name,
            fmt::format("{} has an operator {}", o.of.empty() ? std::string("no plugin") : fmt::format("none of {}", join(o.of, ", ")),
                        quoted(o.name)),
            suggestion(o.name, names).empty() ? "look for it with --search TEXT" : suggestion(o.name, names)};
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const auto key = [](const DescribedOperator& one) {
      return std::pair(one.json["name"].get<std::string>(), one.json["version"].get<int>());
    };
    return key(a) < key(b);
  });
  report.json["operators"] = Json::array();
  for (const auto& [schema, json, own] : found) report.json["operators"].push_back(json);
  if (!o.pages.empty()) {
    for (DescribedOperator& one : found) one.own_devices = devices_of(*registry, *one.schema, one.schema->plugin);
    HEDDLE_CHECK(write_operator_pages(o.pages, found));
    report.say(fmt::format("{} operators, written to {}", found.size(), quoted(o.pages)));
    return {};
  }
  if (o.name.empty() && !o.all) {
    say_list(found, report);
    return {};
  }
  for (const auto& [schema, json, own] : found) {
    say_operator(json, *schema, report);
    say_part(report, "devices", join(json["devices"].get<std::vector<std::string>>(), ", "));
    say_part(report, "plugin", word(json["plugin"].get<std::string>()));
  }
  return {};
}

Run declare_op(CLI::App& app) {
  auto o = std::make_shared<OpArguments>();
  auto* const name =
      app.add_option("name", o->name, "an operator, with its domain or without; none: a line for each there is")->type_name("NAME");
  app.add_option("--search", o->search, "those whose name or description has this text, or a port or attribute this name")
      ->type_name("TEXT")
      ->check(not_empty())
      ->excludes(name);
  app.add_flag("--all", o->all, "all that is known of each operator, and not a line")->excludes(name);
  app.add_option("--of", o->of, "only operators of these plugins, by name")->type_name("PLUGIN")->check(not_empty());
  app.add_option("--pages", o->pages, "write the reference as Markdown pages to this folder: README.md and a page for each group")
      ->type_name("FOLDER")
      ->check(not_empty());
  return [o](Report& report) { return report.finish_with(describe_operators(*o, report)); };
}

}  // namespace

const Command op_command = {"op", "what an operator is, or which there are", "heddle op Gather", declare_op, {{"op", {"operators"}}}};

}  // namespace heddle::tool

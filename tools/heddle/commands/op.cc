// op: what an operator is, or which there are.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text/text.h"
#include "commands/commands.h"
#include "commands/inspect/operator_text.h"
#include "plugin/registry.h"
#include "plugin/search.h"

namespace heddle::tool {
namespace {

struct OpArguments {
  std::string name, search;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the kinds of device that have a kernel for an operator, from any plugin. One with a pointwise expression is run by the kernels of
// Pointwise.
std::vector<std::string> devices_of(const RegistrySnapshot& registry, const OperatorSchema& asked) {
  const OperatorSchema* const pointwise = asked.op->pointwise ? registry.find_operator("heddle", "Pointwise") : nullptr;
  const OperatorSchema& schema = pointwise ? *pointwise : asked;
  std::set<std::string> kinds;
  for (const auto& plugin : registry.plugins())
    for (const KernelEntry& entry : plugin->kernels) {
      const heddle_kernel& kernel = *entry.kernel;
      if (registry.find_operator(kernel.domain ? kernel.domain : "", kernel.operator_name, kernel.version) == &schema)
        kinds.insert(kernel.device_kind ? kernel.device_kind : "cpu");
    }
  return {kinds.begin(), kinds.end()};
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
void say_list(const std::vector<std::pair<const OperatorSchema*, Json>>& found, const Report& report) {
  size_t longest = 0;
  for (const auto& [schema, json] : found) longest = std::max(longest, json["name"].get<std::string>().size());
  for (const auto& [schema, json] : found) {
    std::string doc = json["doc"];
    if (doc.empty() && !json["examples"].empty()) doc = fmt::format("as in {}", json["examples"][0]["text"].get<std::string>());
    report.say(fmt::format("{:<{}}  {}", json["name"].get<std::string>(), longest, doc));
  }
}

Status describe_operators(const OpArguments& o, Report& report) {
  Registry loaded;
  HEDDLE_CHECK(load_plugins(loaded, runtime_options(report.common)));
  const auto registry = loaded.snapshot();
  std::vector<std::pair<const OperatorSchema*, Json>> found;
  std::vector<std::string> names;
  const std::string wanted = lower(o.search);
  for (const auto& plugin : registry->plugins())
    for (const OperatorSchema& schema : plugin->operators) {
      names.push_back(display_name(schema.domain, schema.name));
      if (!o.name.empty() && o.name != schema.name && o.name != names.back()) continue;
      Json json = described(*registry, schema);
      if (o.search.empty() || is_found(json, wanted)) found.emplace_back(&schema, std::move(json));
    }
  if (!o.name.empty() && found.empty())
    return {Code::unknown_name, fmt::format("no plugin has an operator {}", quoted(o.name)),
            suggestion(o.name, names).empty() ? "look for it with --search TEXT" : suggestion(o.name, names)};
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second["name"].template get<std::string>(), a.second["version"].template get<int>()) <
           std::pair(b.second["name"].template get<std::string>(), b.second["version"].template get<int>());
  });
  report.json["operators"] = Json::array();
  for (const auto& [schema, json] : found) report.json["operators"].push_back(json);
  if (o.name.empty()) {
    say_list(found, report);
    return {};
  }
  for (const auto& [schema, json] : found) {
    say_operator(json, *schema->op, report);
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
  return [o](Report& report) { return report.finish_with(describe_operators(*o, report)); };
}

}  // namespace

const Command op_command = {"op", "what an operator is, or which there are", "heddle op Gather", declare_op, {{"op", {"operators"}}}};

}  // namespace heddle::tool

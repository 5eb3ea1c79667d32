// plugin: lists the loaded plugins and their files, and the commands for authors.
#include <fmt/format.h>

#include "base/text/text.h"
#include "commands/commands.h"
#include "commands/plugin/kernel_json.h"
#include "commands/plugin/plugin_commands.h"
#include "plugin/search.h"
#include "resolve/rule_reader.h"

namespace heddle::tool {
namespace {

Json plugin_json(const RegistrySnapshot& registry, const LoadedPlugin& plugin) {
  Json operators = Json::array(), kernels = Json::array(), devices = Json::array();
  for (const OperatorSchema& s : plugin.operators) operators.push_back({{"name", display_name(s.domain, s.name)}, {"version", s.version}});
  for (const KernelEntry& k : plugin.kernels) kernels.push_back(kernel_json(registry, k));
  const heddle_plugin& tables = plugin.library->plugin();
  for (uint32_t i = 0; i < tables.device_count; ++i) devices.push_back(tables.devices[i]->kind);
  return {{"name", plugin.name},
          {"version", plugin.version},
          {"path", plugin.library->path().string()},
          {"xxh64", fmt::to_string(plugin.library->file_hash())},
          {"operators", operators},
          {"kernels", kernels},
          {"devices", devices}};
}

int list(Report& report) {
  Registry loaded(read_rewrite_rule);  // like a runtime: plugins that it refuses are not listed
  const Status status = load_plugins(loaded, runtime_options(report.common));
  if (!status.ok()) return report.fail(status);
  Json plugins = Json::array();
  const auto registry = loaded.snapshot();
  for (const auto& plugin : registry->plugins()) {
    plugins.push_back(plugin_json(*registry, *plugin));
    report.say(fmt::format("{} {} from {}: {} operators, {} kernels", quoted(plugin->name), word(plugin->version),
                           quoted(plugin->library->path().string()), plugin->operators.size(), plugin->kernels.size()));
  }
  report.json["plugins"] = plugins;
  return 0;
}

Run declare_plugin(CLI::App& app) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Run>();
  const auto add = [&](const char* name, const char* description, const char* example, Run (*declare)(CLI::App&)) {
    CLI::App* sub = app.add_subcommand(name, description);
    sub->footer(fmt::format("Example: {}", example));
    sub->callback([chosen, run = declare(*sub)] { *chosen = run; });
  };
  add("list", "what is loaded from where", "heddle plugin list", [](CLI::App&) -> Run { return list; });
  add("check", "the author's suite, each operator in a child process", "heddle plugin check mine.so", declare_plugin_check);
  add("new", "write a template project", "heddle plugin new mine", declare_plugin_new);
  add("run", "one operator on given or random inputs", "heddle plugin run Relu --shape 2x3", declare_plugin_run);
  return [chosen](Report& report) { return (*chosen)(report); };
}

}  // namespace

const Command plugin_command = {"plugin",
                                "list, check, make and run plugins",
                                "heddle plugin list",
                                declare_plugin,
                                {{"plugin list", {"plugins"}},
                                 {"plugin check", {"operators", "rules", "not_examined", "totals"}},
                                 {"plugin new", {"files"}},
                                 {"plugin run", {"outputs"}}}};

}  // namespace heddle::tool

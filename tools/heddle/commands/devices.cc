// devices: lists the devices of all backends, or why one offers none, and what other plugins say of the libraries that they work with.
#include <fmt/format.h>

#include "base/text/text.h"
#include "commands/commands.h"
#include "device/device_manager.h"
#include "plugin/search.h"

namespace heddle::tool {
namespace {

// Adds what a plugin says of libraries that it opens, or why it offers nothing.
void add_description(const Library& library, Report& report, Json& plugins, Json& unavailable) {
  const std::string name = library.plugin().name;
  const Library::Description description = library.describe();
  if (!description.offers) {
    unavailable.push_back({{"backend", name}, {"reason", description.text}});
    report.say(fmt::format("{}: none, {}", name, description.text));
  } else if (!description.text.empty()) {
    plugins.push_back({{"name", name}, {"description", description.text}});
    report.say(fmt::format("{}  {}", name, description.text));
  }
}

int devices(Report& report) {
  const auto runtime = make_runtime(report.common);
  if (!runtime.ok()) return report.fail(runtime.status());
  Json list = Json::array(), unavailable = Json::array(), described = Json::array();
  list.push_back(
      {{"name", "cpu:0"}, {"backend", "cpu"}, {"memory_bytes", nullptr}, {"description", counted(runtime->threads(), "thread")}});
  report.say(fmt::format("cpu:0  {}", counted(runtime->threads(), "thread")));
  Registry plugins;
  const Status loaded = load_plugins(plugins, runtime_options(report.common));
  if (!loaded.ok()) return report.fail(loaded);
  const auto registry = plugins.snapshot();
  DeviceManager manager;
  for (const auto& plugin : registry->plugins()) {
    const heddle_plugin& tables = plugin->library->plugin();
    for (uint32_t i = 0; i < tables.device_count; ++i) {
      const auto [count, reason] = count_devices(*tables.devices[i]);
      if (count == 0) {
        unavailable.push_back({{"backend", tables.devices[i]->kind}, {"reason", reason}});
        report.say(fmt::format("{}: none, {}", tables.devices[i]->kind, reason));
      }
      for (int32_t k = 0; k < count; ++k) {
        const std::string name = fmt::format("{}:{}", tables.devices[i]->kind, k);
        const auto device = manager.open(*registry, name);
        int64_t free = 0, total = 0;
        Status status = device.ok() ? (*device)->memory_info(&free, &total) : device.status();
        if (!status.ok()) {
          unavailable.push_back({{"backend", tables.devices[i]->kind}, {"reason", status.diagnostic().message}});
          report.say(status.diagnostic().message);
          continue;
        }
        const std::string description = (*device)->description();
        list.push_back({{"name", name}, {"backend", tables.devices[i]->kind}, {"memory_bytes", total}, {"description", description}});
        report.say(fmt::format("{}  {}  {}", name, human_bytes(total), description));
      }
    }
  }
  for (const auto& plugin : registry->plugins()) add_description(*plugin->library, report, described, unavailable);
  report.json["devices"] = list;
  report.json["plugins"] = described;
  report.json["unavailable"] = unavailable;
  return 0;
}

}  // namespace

const Command devices_command = {"devices",
                                 "devices of all backends",
                                 "heddle devices",
                                 [](CLI::App&) -> Run { return devices; },
                                 {{"devices", {"devices", "unavailable", "plugins"}}}};

}  // namespace heddle::tool

#include "plugin_commands.h"
namespace heddle::tool {
Run declare_plugin_run(CLI::App&) {
  return [](Report& report) { return report.fail(Status(Code::unsupported, "heddle plugin run is not implemented")); };
}
}  // namespace heddle::tool

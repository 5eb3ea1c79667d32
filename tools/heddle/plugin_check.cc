#include "plugin_commands.h"
namespace heddle::tool {
Run declare_plugin_check(CLI::App&) {
  return [](Report& report) { return report.fail(Status(Code::unsupported, "heddle plugin check is not implemented")); };
}
}  // namespace heddle::tool

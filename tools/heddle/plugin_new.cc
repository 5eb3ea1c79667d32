#include "plugin_commands.h"
namespace heddle::tool {
Run declare_plugin_new(CLI::App&) {
  return [](Report& report) { return report.fail(Status(Code::unsupported, "heddle plugin new is not implemented")); };
}
}  // namespace heddle::tool

// The subcommands of `heddle plugin` that have files of their own.
#pragma once

#include "common/command.h"

namespace heddle::tool {

Run declare_plugin_check(CLI::App& app);
Run declare_plugin_new(CLI::App& app);
Run declare_plugin_run(CLI::App& app);

}  // namespace heddle::tool

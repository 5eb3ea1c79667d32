// The declarations of a plugin, for people and as JSON: ports, attributes, gradients and examples of its operators, kernels with device
// kinds and dtypes, devices.
#pragma once

#include <string>

#include "common/command.h"

namespace heddle::tool {

// Inspects the plugin `file`; `only`: this operator, by its name with or without the domain; empty: all. If it has kernels for operators of
// other plugins, the plugins that every command loads are loaded. Errors: those of loading; unknown_name.
Status inspect_plugin(const std::string& file, const std::string& only, Report& report);

}  // namespace heddle::tool

// What a plugin declares, for people and as JSON: ports, attributes, gradients and examples of its operators, kernels with device kinds and
// dtypes, devices.
#pragma once

#include <string>

#include "common/command.h"

namespace heddle::tool {

// Of the plugin `file`; `only`: of this operator, by its name with or without the domain; empty: of all. Where it brings kernels for
// operators of others, those are loaded that every command loads. Errors: those of loading; unknown_name.
Status inspect_plugin(const std::string& file, const std::string& only, Report& report);

}  // namespace heddle::tool

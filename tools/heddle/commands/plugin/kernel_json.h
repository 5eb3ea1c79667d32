// A kernel of a plugin as a command's JSON object shows it.
#pragma once

#include "common/command.h"
#include "plugin/registry.h"

namespace heddle::tool {

// Names of the dtypes in a set.
Json dtypes_json(heddle_dtype_set set);
// Name, operator with version, device kind, and the dtypes of each input: as the kernel declares, else as its operator in `registry` does.
Json kernel_json(const RegistrySnapshot& registry, const KernelEntry& kernel);

}  // namespace heddle::tool

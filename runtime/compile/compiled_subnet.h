// The nets inside nets: a subnet attribute compiled for the types that inference asked with.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compile/compile.h"

namespace heddle {

// The attribute that `net` is; null when it is none of them.
std::shared_ptr<const Net> subnet_attribute(const std::vector<Attribute>& attributes, const Net* net);

// A plan for the thread of the operator that the subnet belongs to, on the host. `inputs`: views whose dtypes and dims count. `outputs`:
// filled with the types of its outputs; null entries: not asked for. `target` and `options` are those of the net around it. Thread-safe.
Result<std::shared_ptr<const Plan>> compile_subnet(const Net& subnet, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                   std::span<const heddle_tensor* const> inputs, std::span<heddle_type* const> outputs,
                                                   const CompilationTarget& target, const CompileOptions& options);

}  // namespace heddle

// What is known of the outputs of a net before any extent of its inputs is.
#pragma once

#include <memory>
#include <vector>

#include "heddle/limits.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle::tool {

// By output: dtype and dims, symbols of the inputs where a dim is the same one in every run, `dynamic` where it depends on something else.
// Found by inference with two different extents for each symbol and each open dim. Errors: those of resolve and infer, as an unknown
// operator.
Result<std::vector<DeclaredType>> output_types(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const Limits& limits);

}  // namespace heddle::tool

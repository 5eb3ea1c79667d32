// The types of a net's outputs that hold for all extents of its inputs.
#pragma once

#include <memory>
#include <vector>

#include "heddle/limits.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle::tool {

// By output: dtype and dims, symbols of the inputs where a dim is the same symbol in every run, `dynamic` where it depends on something
// else. Found by inference with two different extents for each symbol and each open dim. Errors: those of resolve and infer, such as an
// unknown operator.
Result<std::vector<DeclaredType>> output_types(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const Limits& limits);

}  // namespace heddle::tool

// The part of `heddle plugin check` that examines the layouts that a kernel ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator_runner/operator_runner.h"

namespace heddle::tool {

// Runs the call in each layout that its kernel's formats() ranks and compares with `outputs`, those of the call in row-major order: a
// result may differ only by rounding. Empty: they agree; else what is wrong, with the layouts.
std::string examine_layouts(const RegistrySnapshot& registry, const OperatorCall& call,
                            const std::vector<std::shared_ptr<const Blob>>& outputs);

}  // namespace heddle::tool

// What `heddle plugin check` asks of one operator's gradient.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/operator_runner.h"

namespace heddle::tool {

// Runs the gradient that the schema declares, emitted nodes or a callback, on the inputs of `call` and its `outputs`, and compares what it
// gives for f32 inputs with differences of the kernel to both sides, for up to 16 elements each. Where the sides disagree (kinks) the
// gradient may be anything between them. Empty: they agree, or there is nothing to compare (no f32 input or output); else what is wrong, a
// gradient that gives nothing for any f32 input too.
std::string examine_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                             const std::vector<std::shared_ptr<const Blob>>& outputs, uint64_t seed);

}  // namespace heddle::tool

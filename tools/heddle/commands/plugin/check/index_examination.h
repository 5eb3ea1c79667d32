// What `heddle plugin check` asks of inputs that hold indices into others (heddle_port::index_bound_port).
#pragma once

#include <cstddef>

#include "commands/plugin/check/call_examination.h"

namespace heddle::tool {

// Runs the call with indices outside of their bounds, and with indices of nothing: each is to be refused. `outputs`: what the call gives.
Finding examine_indices(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs);

// Whether any index of input `input` shows in what the call gives, or might. An operator need not refuse what it has no use for, as the
// indices that are in no bag.
bool reads_indices(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, size_t input);

}  // namespace heddle::tool

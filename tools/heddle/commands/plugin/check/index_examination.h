// The part of `heddle plugin check` that examines inputs with indices into others (heddle_port::index_bound_port).
#pragma once

#include <cstddef>

#include "commands/plugin/check/call_examination.h"

namespace heddle::tool {

// Runs the call with indices outside of their bounds, and with indices into empty inputs: each must be refused. `outputs`: the results of
// the call.
Finding examine_indices(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs);

// Whether any index of input `input` affects the results of the call, or might. An operator need not refuse unused indices, such as those
// that are in no bag.
bool reads_indices(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, size_t input);

}  // namespace heddle::tool

// What `heddle plugin check` asks of one operator.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/registry.h"

namespace heddle::tool {

// Runs the operator on random inputs of several shapes (scalars, odd, empty, broadcast-free) in every dtype that its schema allows for all
// inputs alike: real outputs against inference (run_operator compares extents), the same bits for any split into tiles and when run again,
// the same bits with constant inputs, and the emitted gradient against central differences in f32. Empty: passed; "note: ..." when no
// generic inputs fit it; else the first thing that is wrong, with shapes.
std::string examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed);

}  // namespace heddle::tool

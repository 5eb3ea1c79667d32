// What `heddle plugin check` asks of one operator.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/registry.h"

namespace heddle::tool {

// How a verdict begins that says why there was nothing to examine.
inline constexpr const char* not_run = "not run: ";

// Runs the operator on random inputs of several shapes (scalars, odd, empty, square) in every dtype that its schema allows: real outputs
// against inference (run_operator compares extents); the same bits for any split into tiles, with constant inputs, and where outputs take
// the bytes of the inputs that the schema names; results close to row-major's in each layout that formats() ranks; and the declared
// gradient against differences in f32. Empty: passed; `not_run` and why when no such inputs fit it; else the first thing that is wrong,
// with shapes.
std::string examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed);

}  // namespace heddle::tool

// What `heddle plugin check` asks of one operator.
#pragma once

#include <cstdint>

#include "commands/plugin/device_examination.h"
#include "commands/plugin/verdict.h"
#include "plugin/registry.h"

namespace heddle::tool {

// Runs the operator on random inputs of several shapes (scalars, odd, empty, square) in every dtype that its schema allows. Each is run
// or refused as CallEnd::refused() says; all else is a failure, whatever other inputs it fits. Of what it runs: real outputs against
// inference (run_operator compares extents); a cost that the compiler takes; the same bits for any split into tiles, with constant inputs,
// and where outputs take the bytes of the inputs that the schema names; the bits of its pointwise text, where it has a kernel beside one,
// also on special values; results close to row-major's in each layout that formats() ranks; and the declared gradient against differences
// in f32. With `device`: the same bits there too. Not run, with the reason, when it refuses all; else the first thing that is wrong, with
// shapes.
Verdict examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed,
                         DeviceExamination* device = nullptr);

}  // namespace heddle::tool

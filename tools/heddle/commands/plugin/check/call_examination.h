// The part of `heddle plugin check` that examines one call that an operator does not refuse.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "commands/plugin/check/operator_cases.h"
#include "commands/plugin/check/verdict.h"
#include "plugin/registry.h"

namespace heddle::tool {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

// `outputs`: the results of an earlier run of the call. Returns the first mistake that shows: two equal runs differ; memory beside its own
// is read or written, inputs are written, memory is read before it is written, elements or extents are not written; memory is allocated,
// threads are started, something is printed; results depend on tiles, threads, seed and step (without HEDDLE_TRAIT_RANDOM), on whether
// inputs are constants or share bytes with outputs where the schema allows it; an index is not checked; something is leaked.
Finding examine_call(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs);

bool same_bits(const Blobs& a, const Blobs& b);

// Checks that bools are 0 or 1.
Finding examine_bools(const Blobs& outputs);

// Compares the outputs with the expectations of the example; returns the difference.
Finding compare_with_example(const OperatorCase& example, const Blobs& outputs);

}  // namespace heddle::tool

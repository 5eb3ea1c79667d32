// The part of `heddle plugin check` that examines one rewrite rule.
#pragma once

#include <cstdint>

#include "commands/plugin/check/verdict.h"
#include "heddle/abi.h"
#include "heddle/session.h"

namespace heddle::tool {

// Runs pattern and replacement as separate nets on the same random inputs, for several extents of the symbols in their shapes, and compares
// (relative 1e-4, absolute 1e-5: another order of operations may round differently). Not run, with the reason, when the pattern's inputs
// have no dtype and shape to test with; else what is wrong, with the extents.
Verdict examine_rule(const Runtime& runtime, const heddle_rewrite_rule& rule, uint64_t seed);

}  // namespace heddle::tool

// The checker of memory plans: accepts an offset assignment only when it is right. O(n^2), shares nothing with the planner but the types.
#pragma once

#include "memory/offsets/offsets.h"

namespace heddle::offsets {

// Returns ok when `solution` is a legal answer to `problem`: one aligned, non-negative offset for each buffer; no two buffers that
// interfere share a byte; `height` is exactly the highest byte used; `lower_bound` is not above it, nor, when it is of kind max_live, above
// the most bytes ever alive; a plan as low as its lower bound is called optimal. Other claims of optimality, and antichains, are not
// examined. Code::internal names the first offence: the planner is wrong, not its caller. Any thread.
Status check(const Problem& problem, const Solution& solution);

}  // namespace heddle::offsets

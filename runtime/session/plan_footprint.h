// The memory cost of a cached plan, by which a session limits its plans.
#pragma once

#include <cstdint>

#include "compile/plan.h"
#include "net/net.h"

namespace heddle {

// Returns the bytes on the host and on devices that are freed with the plan: its steps and values, constants that were made for it, and its
// share of packed constants. Constants of `net` belong to the session. An estimate of what the allocator holds, exact for constants.
int64_t plan_footprint(const Plan& plan, const Net& net);

}  // namespace heddle

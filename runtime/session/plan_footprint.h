// What a kept plan costs, so that a session keeps plans by their bytes.
#pragma once

#include <cstdint>

#include "compile/plan.h"
#include "net/net.h"

namespace heddle {

// Bytes on the host and on devices that go when the plan goes: its steps and values, constants that were made for it, and its share of
// packed constants. Constants of `net` are the session's. An estimate of what the allocator holds, exact for constants.
int64_t plan_footprint(const Plan& plan, const Net& net);

}  // namespace heddle

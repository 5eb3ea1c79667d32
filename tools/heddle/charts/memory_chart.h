// The memory of a plan as a picture: which bytes of each device hold what, over the steps.
#pragma once

#include <string>

#include "heddle/plan_info.h"

namespace heddle::tool {

// Returns an SVG with a part for each device: steps go right and bytes up. What lives longest in each byte range is a rectangle with its
// name; the rest of a name, its bytes and its life are shown at the pointer. Rectangles too small to be seen are drawn together, so that
// the picture of a net of any size stays under 2 MB.
std::string memory_chart(const PlanInfo& plan);

}  // namespace heddle::tool

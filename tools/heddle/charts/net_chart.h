// A plan as a picture of its operators and the values between them.
#pragma once

#include <string>

#include "heddle/plan_info.h"

namespace heddle::tool {

// Returns an SVG: a box for each step with its name, type, what is fused into it and the shapes of its outputs; in the colour of its
// device, copies in red; the steps of a subnet in a frame within its operator's box; the net's inputs above, its outputs below. Graphviz
// places up to 300 boxes where it is installed and does not take long, and the tool places all others. Plans of more than 600 steps have
// several to a box, which has the colour of the first one's device.
std::string net_chart(const PlanInfo& plan);

}  // namespace heddle::tool

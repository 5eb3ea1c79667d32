// Versions of variables that gradients read: they are there when they are needed, or the net is refused.
#pragma once

#include <cstddef>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Nodes from `forward_nodes` on were derived. Errors: hazard, where one reads a version of a variable that an operator before it, on whose
// results it depends, overwrites: names value, versions and both operators.
Status check_needed_versions(const Net& net, size_t forward_nodes);

// The same net with the updates that derived nodes do not depend on, and what follows from them, behind these: in the order of a file, a
// name stands for its version there.
Net with_updates_last(Net net, size_t forward_nodes);

}  // namespace heddle

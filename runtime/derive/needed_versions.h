// Checks that the versions of variables which gradients read are still there when they are needed.
#pragma once

#include <cstddef>

#include "derive/emitter.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Checks the nodes that `emitter` has added. Errors: hazard, where one reads a version of a variable that an operator before it, on whose
// results it depends, overwrites: names value, versions and both operators.
Status check_needed_versions(const Net& net, const Emitter& emitter);

// Returns the same net with the updates that derived nodes do not depend on, and what follows from them, moved after the derived nodes:
// nodes are in a serial order, and derived nodes read a variable before it is overwritten.
Net with_updates_last(Net net, size_t forward_nodes);

}  // namespace heddle

// Versions of variables that gradients read: they are there when they are needed, or the net is refused.
#pragma once

#include <cstddef>

#include "derive/emitter.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Of the nodes that `emitter` has added. Errors: hazard, where one reads a version of a variable that an operator before it, on whose
// results it depends, overwrites: names value, versions and both operators.
Status check_needed_versions(const Net& net, const Emitter& emitter);

// The same net with the updates that derived nodes do not depend on, and what follows from them, behind these: nodes are in a serial order,
// and what derived nodes read of a variable is read before it is overwritten.
Net with_updates_last(Net net, size_t forward_nodes);

}  // namespace heddle

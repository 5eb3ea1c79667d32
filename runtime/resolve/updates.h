// Which outputs of a node are next versions of variables: by the operator's schema, or, where that leaves it to the net, by the versions.
#pragma once

#include <cstddef>

#include "net/net.h"

namespace heddle {

// The input whose next version output `output` of a resolved node is; -1: it is no update.
int updated_input(const Net& net, const Node& node, size_t output);
// Whether any output of a resolved node is an update.
bool updates_variable(const Net& net, const Node& node);

}  // namespace heddle

// Which nodes are collectives: operators that work with the peers of a communicator, and have to be in one order on all of them.
#pragma once

#include "net/net.h"

namespace heddle {

// Whether the operator of a resolved node is collective.
bool is_collective(const Node& node);
// Whether it is, or whether any in a net inside it is.
bool has_collectives(const Node& node);

}  // namespace heddle

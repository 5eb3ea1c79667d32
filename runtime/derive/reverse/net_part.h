// The part of a net that computes some of its values from others.
#pragma once

#include <vector>

#include "base/ids.h"
#include "net/net.h"

namespace heddle {

// By node: whether one of `values` is made by it or depends on what it makes.
std::vector<bool> needed_nodes(const Net& net, const std::vector<ValueId>& values);

// Returns the nodes that `outputs` need, as a net that takes `inputs` and gives `outputs`, in these orders. `inputs` are made by no node;
// other values that no node makes become constants. Nodes keep no control dependencies. The caller must not include a node that makes a
// version of a variable.
Net net_part(const Net& net, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs);

}  // namespace heddle

// The part of a net that makes some of its values of others.
#pragma once

#include <vector>

#include "base/ids.h"
#include "net/net.h"

namespace heddle {

// By node: whether one of `values` is made by it or of what it makes.
std::vector<bool> needed_nodes(const Net& net, const std::vector<ValueId>& values);

// The nodes that `outputs` need, as a net that takes `inputs` and gives `outputs`, in these orders. `inputs` are made by no node; other
// values that no node makes are constants. Nodes wait for nothing but what they read. A node that makes a version of a variable has no
// place in it.
Net net_part(const Net& net, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs);

}  // namespace heddle

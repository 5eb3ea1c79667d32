// The inference form of an operator.
#pragma once

#include <vector>

#include "net/net.h"

namespace heddle {

// Converts `node`: Dropout passes its input on, and BatchNormalization normalises by the running statistics. Neither makes outputs that
// only training needs, a mask or statistics, and their further outputs are dropped.
void end_training(Node& node);

// Returns `node` with the nets inside it converted too. `wanted`: by output of `node`, whether anything reads it. Unwanted outputs are left
// out where the operator allows it, with the nodes inside and the inputs that only they need. A mask is computed as before there, and
// running statistics keep their values. Positions of outputs and inputs may change.
Node without_training(const Node& node, const std::vector<bool>& wanted);

// Whether the output may be left out: as the schema declares, or, where the net is not resolved, for operators that Heddle knows.
bool may_leave_out(const Node& node, size_t output);

}  // namespace heddle

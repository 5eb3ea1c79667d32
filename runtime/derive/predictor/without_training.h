// An operator as it is when nothing learns.
#pragma once

#include <vector>

#include "net/net.h"

namespace heddle {

// Dropout gives what it is given, and BatchNormalization normalises by the running statistics: neither makes what training alone needs,
// a mask or statistics, and their further outputs go.
void end_training(Node& node);

// The same in the nets inside it too. `wanted`: by output of `node`, whether anything reads it. What is not wanted is left out where the
// operator may leave it out, with what the nets inside compute for it alone and take from outside for that. There a mask is made as
// before, and running statistics stay what they were. Places of outputs and inputs may change.
Node without_training(const Node& node, const std::vector<bool>& wanted);

// Whether an operator need not give that output: as its schema says, or, where the net is not resolved, of operators that Heddle knows.
bool may_leave_out(const Node& node, size_t output);

}  // namespace heddle

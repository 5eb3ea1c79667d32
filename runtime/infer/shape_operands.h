// Which values decide the extents of others by their content: what shape operands (HEDDLE_PORT_SHAPE_OPERAND) are computed from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/limits.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// By ValueId: whether a shape operand can be reached from it, or, with `conditions`, what an operator with subnets decides by (If), or,
// with `outputs`, an output of the net. Only such contents are worth following.
std::vector<char> shape_relevant_values(const Net& net, bool conditions, bool outputs = false);
bool may_decide_shapes(DType dtype);

// Positions of net inputs whose content decides extents: feeds of these are part of a plan's key. Depends on the net alone.
std::vector<uint32_t> shape_deciding_inputs(const Net& net, const Limits& limits);
// What to say where the content of an input decides shapes and is not known.
Status missing_content(const std::string& input);

}  // namespace heddle

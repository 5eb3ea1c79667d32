// Finds the values whose content decides the extents of others: inputs of the computation of shape operands (HEDDLE_PORT_SHAPE_OPERAND).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/limits.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// By ValueId: whether a shape operand depends on the value, or, with `conditions`, an input by which an operator with subnets decides (If),
// or, with `outputs`, an output of the net. Only such contents are worth following.
std::vector<char> shape_relevant_values(const Net& net, bool conditions, bool outputs = false);
bool may_decide_shapes(DType dtype);

// Positions of net inputs whose content decides extents: the content fed to them is part of a plan's key. Depends on the net alone.
std::vector<uint32_t> shape_deciding_inputs(const Net& net, const Limits& limits);
// The error where the content of an input decides shapes and is not known.
Status missing_content(const std::string& input);

}  // namespace heddle

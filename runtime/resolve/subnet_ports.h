// What ties a subnet to the operator that it is an attribute of: which of its inputs and outputs are the operator's, and which of those are
// variables that it may update.
#pragma once

#include "heddle/abi.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Whether `subnet` takes and gives as many values as the operator of `node` hands it and wants of it. Errors: subnet_mismatch.
Status check_subnet_ports(const Node& node, const heddle_subnet_ports& ports, const Net& subnet);

// Where `node` makes the next version of a variable, the input of `subnet` that stands for the version before becomes a variable of the
// subnet, which operators in it may update: its bytes are the variable's own. Errors: hazard, subnet_mismatch.
Status adopt_variables(const Net& net, const Node& node, const heddle_subnet_ports& ports, Net& subnet);

}  // namespace heddle

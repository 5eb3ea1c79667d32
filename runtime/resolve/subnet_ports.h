// The correspondence of a subnet and the operator that has it as an attribute: which inputs and outputs are the operator's, and which of
// those are variables that it may update.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Checks that `subnet` takes and gives as many values as the operator of `node` passes to it and expects from it. Errors: subnet_mismatch.
Status check_subnet_ports(const Node& node, const heddle_subnet_ports& ports, const Net& subnet);

// By index of a value of a subnet: the variable of the net around it, by its id in the subnet, of which the value is to be a next version.
using Adopted = std::unordered_map<uint32_t, VariableId>;

// Where `node` makes the next version of a variable, makes the input of `subnet` that stands for the previous version a variable of the
// subnet, which operators in it may update: its bytes are the variable's own. Adds them to `adopted`. Errors: hazard, subnet_mismatch.
Status adopt_variables(const Net& net, const Node& node, const heddle_subnet_ports& ports, Net& subnet, Adopted& adopted);

// Reverts the effect of these functions in all subnets of a resolved net, for files: there no subnet has variables.
void disown_variables(Net& net);

// For chains of updates inside `subnet`, before it is resolved: walks back from each value in `adopted` through the operators that update,
// and adds the values on the way. `schema_of` returns null for unknown operators.
void trace_updates(const Net& subnet, const std::function<const OperatorSchema*(const Node&)>& schema_of, Adopted& adopted);

// Files cannot declare this for an operator in a subnet: an output of `node` that may be an update, and that an adopted variable is to
// become, is its next version where `node` takes the newest there is.
void mark_updates(Net& subnet, const Node& node, const Adopted& adopted);

}  // namespace heddle

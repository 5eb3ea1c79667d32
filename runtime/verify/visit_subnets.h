// The nets inside a net, as they will be run: typed for the inputs that the operator around them gives.
#pragma once

#include <functional>

#include "base/text/findings.h"
#include "net/evaluator.h"
#include "net/typed_net.h"

namespace heddle {

// Asks the operator `id` for the inputs of its subnets and passes each subnet that it declares to `visit`, once, inferred as far as
// possible: values that depend on a mistake have no dtype, `whole` is false then. Findings in it are added to `findings` as seen from
// outside ("operator/inner operator"). Operators without subnets, or whose inputs have no types, are left out.
using SubnetVisit = std::function<void(TypedNet subnet, bool whole, Findings& inside)>;
void visit_subnets(const TypedNet& net, NodeId id, Evaluator* evaluator, Findings& findings, const SubnetVisit& visit);

// True if every input and output of a node has a type.
bool has_types(const TypedNet& net, const Node& node);

}  // namespace heddle

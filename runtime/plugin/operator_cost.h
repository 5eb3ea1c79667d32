// The cost of one run of an operator as it declares it: heddle_operator::cost, or the expression of a pointwise operator.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/abi_attributes.h"

namespace heddle {

struct OperatorCost {
  std::optional<double> flops;  // empty: the operator does not declare it
  int64_t bytes = 0;            // read and written; every input and output once unless the operator declares otherwise
};

// Returns the cost of `node` with its epilogue. `attributes`: the node's own. Flops of nodes whose extents are known only while they run
// are unknown. Pure. kernel_failed when the operator's cost function fails or returns what is not a number; the caller adds net and node.
Result<OperatorCost> operator_cost(const TypedNet& net, const Node& node, const AttributeTable& attributes);

}  // namespace heddle

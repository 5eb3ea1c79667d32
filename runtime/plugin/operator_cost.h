// What one run of an operator costs by its own words: heddle_operator::cost, or the expression of a pointwise operator.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/abi_attributes.h"

namespace heddle {

struct OperatorCost {
  std::optional<double> flops;  // empty: the operator does not tell
  int64_t bytes = 0;            // read and written; every input and output once unless the operator says otherwise
};

// Of `node`, what is fused behind it included. `attributes`: its own. Flops of nodes whose extents are known only while they run are
// unknown. Pure. kernel_failed when the operator's cost function fails or gives what is no number; the caller adds net and node.
Result<OperatorCost> operator_cost(const TypedNet& net, const Node& node, const AttributeTable& attributes);

}  // namespace heddle

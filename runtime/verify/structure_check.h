// Checks typed nets: what holds for every one of them, and what a transform must preserve of its input net. For checking builds; verify
// finds mistakes in a user's net, this finds ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"

namespace heddle {

// Returns Code::internal for the first violation of these rules:
//   - nodes are in an order in which they can run: what a node reads or waits for comes before it, and has a producer;
//   - a node reads what its operator needs, and each of its outputs names it as its producer;
//   - each version of a variable is made from the one before it, and its readers do not depend on the node that overwrites it;
//   - outputs of the net have a producer, or are inputs, constants or variables;
//   - every type is the inferred one: the dtype, and the extents as far as both know them before the run.
// O(nodes), plus the cost of inference: its functions are called again. `evaluator`: for nets inside nets. The net is unchanged on return.
// Not synchronised.
Status check_structure(TypedNet& net, Evaluator* evaluator);

// The properties of a net that others rely on, recorded before a transform.
class NetPromises {
 public:
  explicit NetPromises(const TypedNet& net);
  // `net` has passed check_structure. Returns Code::internal for the first property that it does not keep: inputs and outputs by name and
  // type, variables with as many updates, and that nodes that waited for others still wait for them, where both are left.
  Status kept_by(const TypedNet& net) const;

 private:
  struct Port {
    std::string name;
    TensorType type;
  };
  struct Versions {
    std::string name;
    uint32_t last = 0;
  };
  struct Waiting {
    std::string name;
    std::vector<NodeId> control;
    std::vector<NodeId> producers;  // producers of its inputs
  };
  static std::vector<Port> ports(const TypedNet& net, const std::vector<ValueId>& values);
  static Status same_ports(const char* what, const std::vector<Port>& before, const std::vector<Port>& after);
  Status order_kept(const Net& net) const;

  std::vector<Port> inputs_, outputs_;
  std::vector<Versions> variables_;
  std::vector<Waiting> nodes_;  // nodes of the net before; empty when no node waits for another
};

}  // namespace heddle

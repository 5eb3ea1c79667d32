// The judge of typed nets: what holds of every one of them, and what a transform must hand on of the net that it was given. For checking
// builds; verify says what is wrong with a user's net, this what is wrong with ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"

namespace heddle {

// Code::internal for the first thing that is not as it should be:
//   - nodes stand in an order in which they can run: what a node reads or waits for stands before it, and something makes it;
//   - a node reads what its operator needs, and each of its outputs names it as its producer;
//   - each version of a variable is made from the one before it, and its readers do not depend on the node that overwrites it;
//   - outputs of the net have a producer, or are inputs, constants or variables;
//   - every type is the one that inference says: the dtype, and the extents as far as both know them before the run.
// O(nodes), and once the cost of inference: its functions are called again. `evaluator`: for nets inside nets. The net is as before when it
// returns. Not synchronised.
Status check_structure(TypedNet& net, Evaluator* evaluator);

// What others rely on in a net, taken down before a transform.
class NetPromises {
 public:
  explicit NetPromises(const TypedNet& net);
  // `net` has passed check_structure. Code::internal for the first that it does not keep: inputs and outputs by name and type, variables
  // with as many updates, and that nodes that waited for others wait for them still, where both are left.
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
    std::vector<NodeId> producers;  // of its inputs
  };
  static std::vector<Port> ports(const TypedNet& net, const std::vector<ValueId>& values);
  static Status same_ports(const char* what, const std::vector<Port>& before, const std::vector<Port>& after);
  Status order_kept(const Net& net) const;

  std::vector<Port> inputs_, outputs_;
  std::vector<Versions> variables_;
  std::vector<Waiting> nodes_;  // of the net before; empty when no node waits for another
};

}  // namespace heddle

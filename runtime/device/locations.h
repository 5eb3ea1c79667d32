// Locations: the devices where a net's nodes run and where its values lie.
//
// A value lies where its producer runs, except that host ports and constants lie on the host, and inputs of the net where its caller gives
// them. A variable lies on the device of the operators that update it; one that is never updated lies where all its readers run, else on
// the host.
#pragma once

#include <vector>

#include "net/typed_net.h"

namespace heddle {

class Locations {
 public:
  // `net` must be placed and outlive this. Costs a look at each node when everything is on the host.
  explicit Locations(const TypedNet& net);

  // True if everything runs on the host; no other member may be called then.
  bool all_on_host() const { return all_on_host_; }
  DeviceId of(NodeId node) const { return nodes_[node.index]; }
  DeviceId of(ValueId value) const { return values_[value.index]; }
  // Returns where input `i` of a node must lie. A Copy takes it from anywhere.
  DeviceId wanted(NodeId node, size_t i) const;
  // Adds a node that was appended to the net, with its outputs, which belong to no variable; it must read its inputs in place of a node
  // that read them before.
  void add(NodeId node);

 private:
  void locate_variables();

  const Net& net_;
  bool all_on_host_ = true;
  std::vector<DeviceId> nodes_;   // indexed by NodeId
  std::vector<DeviceId> values_;  // indexed by ValueId
};

// True for heddle::Copy, which makes the input's bytes available on the node's own device.
bool is_copy(const Node& node);

}  // namespace heddle

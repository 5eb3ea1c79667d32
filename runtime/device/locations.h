// Where a net's nodes run and where its values lie.
//
// A value lies where its producer runs, except that host ports, inputs, constants and outputs of the net lie on the host. A variable lies
// on the device of the operators that update it; one that nobody updates lies where all its readers run, else on the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/net.h"

namespace heddle {

class Locations {
 public:
  static constexpr uint32_t host = 0;
  // `net` is resolved and outlives this. Costs a look at each node's device when everything is on the host.
  Locations(const Net& net, const std::string& default_device);

  // Everything runs on the host; nothing else may be asked then.
  bool all_on_host() const { return names_.size() == 1; }
  // Full names by index; names()[host] is "cpu:0".
  const std::vector<std::string>& names() const { return names_; }
  uint32_t of(NodeId node) const { return nodes_[node.index]; }
  uint32_t of(ValueId value) const { return values_[value.index]; }
  // Where input `i` of a node must lie. A Copy takes it from anywhere, but between two devices only by way of the host.
  uint32_t wanted(NodeId node, size_t i) const;

 private:
  uint32_t intern(const std::string& name);
  void locate_variables();

  const Net& net_;
  std::vector<std::string> names_{"cpu:0"};
  std::vector<uint32_t> nodes_;   // by NodeId
  std::vector<uint32_t> values_;  // by ValueId
};

// heddle::Copy: the input's bytes on the node's own device.
bool is_copy(const Node& node);

}  // namespace heddle

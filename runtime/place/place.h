// Placement: decides where each operator of a typed net runs. The last stage before verify, which checks the result.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/findings.h"
#include "device/compilation_target.h"
#include "heddle/status.h"
#include "net/typed_net.h"

namespace heddle {

// Gives every operator that names no device the target's default one. Where copies may be made (Copies other than strict) and the device
// exists, operators that do not run there go to the host, if they name no device or allow the host too (base/device_name.h), each with a
// finding: a warning, or a note where copies were requested (Copies::automatic). So do operators around them that would have more bytes
// copied if they stayed (place/host_regions.h), with a finding for each region. Operators whose results are known before the run go to the
// host in any case: they are folded away. From here on a device is an id (Node::placed, TypedNet::devices).
TypedNet place(TypedNet net, const CompilationTarget& target, Findings& findings);

// Removes devices without any operator, input or output from the table; the others get new ids, in the same order.
void drop_unused_devices(TypedNet& net);

// The reason why an operator does not run on a device.
enum class Obstacle : uint8_t {
  none,              // it does
  no_kernel,         // none of its kernels is for devices of the kind
  other_types,       // its kernels for that kind take other types
  late_subnets,      // it has subnets for extents that are known only while they run
  updating_subnets,  // its subnets update variables
  late_outputs,      // its kernel is launched, and finds the extents of its outputs
};

// `node` runs on a device where it has a kernel, where it becomes part of a Pointwise that has one (`has_pointwise`: runs_pointwise of the
// device), or where it runs nothing. Nodes with values that have no type run anywhere: the mistake was reported before.
Obstacle obstacle(const TypedNet& net, const Node& node, const std::string& device, bool has_pointwise);
inline bool runs_on(const TypedNet& net, const Node& node, const std::string& device, bool has_pointwise) {
  return obstacle(net, node, device, has_pointwise) == Obstacle::none;
}

// True if its results are known before the run, so that it is folded away.
bool is_known(const TypedNet& net, const Node& node);

// True if devices of this kind have a kernel for heddle::Pointwise.
bool runs_pointwise(const TypedNet& net, const std::string& device);

// True if a node that a transform added runs on the device that it was put on.
bool runs_where_it_is(const TypedNet& net, const Node& node);

}  // namespace heddle

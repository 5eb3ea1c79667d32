// Operators of the default device that are better off on the host, beside those that fell back to it.
#pragma once

#include <cstdint>
#include <vector>

#include "net/typed_net.h"

namespace heddle {

// Operators that share values with each other, in their order.
struct HostRegion {
  std::vector<NodeId> nodes;
  int64_t saved_bytes = 0;  // by which a run copies fewer when they run on the host
};

// `net`: placed; `device`: the default one; `fallen_back`: operators that are on the host because `device` has no kernel for them, in
// order.
//
// What may move names no device, was put on `device`, has a kernel on the host too, and is light: it does no more operations than it reads
// and writes bytes that could cross. It lies at most four operators away from one that fell back: a longer way costs more work than the two
// copies at its ends. All these are thought on the host first. Then each goes back to the device as soon as its being there makes no more
// cost, and with it may others; what is left moves, region by region, where a region costs strictly less on the host. Cost: the bytes that
// each run copies between devices, and for what is on the host an eighth of the bytes and operations of its work, as memory and processor
// do about eight in the time in which one byte is copied. So every region that moves has fewer bytes copied, and which do depends on no
// order but the net's. Time: that of a look at each value and its readers. Pure.
std::vector<HostRegion> host_regions(const TypedNet& net, DeviceId device, const std::vector<NodeId>& fallen_back);

}  // namespace heddle

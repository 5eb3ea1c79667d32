// Finds operators of a device that are better off on the host, next to those that fell back to it.
#pragma once

#include <cstdint>
#include <vector>

#include "net/typed_net.h"

namespace heddle {

// Operators that share values with each other, in the order of the net.
struct HostRegion {
  std::vector<NodeId> nodes;
  int64_t saved_bytes = 0;  // how many fewer bytes a run copies when they run on the host
};

// `net` must be placed; `fallen_back`: operators that are on the host because `device` has no kernel for them, in order.
//
// An operator may move if it names no device or allows the host too, was put on `device`, has a kernel on the host, and is light: it does
// no more operations than it reads and writes bytes that could cross. It lies at most four operators away from one that fell back: a longer
// way costs more work than the two copies at its ends. All candidates start on the host. Then each goes back to the device as soon as that
// does not raise the cost, which may let others go back; the rest moves to the host, region by region, where a region costs strictly less
// there. Cost: the bytes that each run copies between devices, and for operators on the host an eighth of the bytes and operations of their
// work, as memory and processor do about eight in the time in which one byte is copied. So every region that moves has fewer bytes copied,
// and the choice depends on no order but the net's. Takes the time of a look at each value and its readers. Pure.
std::vector<HostRegion> host_regions(const TypedNet& net, DeviceId device, const std::vector<NodeId>& fallen_back);

}  // namespace heddle

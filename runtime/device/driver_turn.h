// DriverTurn: the turn of a thread whose calls drivers must not mix. While a group is launched, one launch on each device, no thread
// allocates or frees memory on any device: a driver may do that only once a device is idle, and a device that has its launch of a group is
// not before the others have theirs. Caffe2 met this deadlock with NCCL.
#pragma once

#include <cstdint>

#include "base/threads/fair_shared_mutex.h"

namespace heddle {

// Held from the constructor on. Allocations of several threads go on side by side; a group is launched alone. Turns are fair. No
// deadline ends the wait: calls of drivers, which it waits for, have none either. A thread that has a turn goes on in it, so that a kernel
// that allocates while it launches a group, which it must not, does not wait for itself.
class DriverTurn {
 public:
  enum class For : uint8_t { allocation, group };
  explicit DriverTurn(For what);
  DriverTurn(const DriverTurn&) = delete;
  DriverTurn& operator=(const DriverTurn&) = delete;

 private:
  FairSharedMutex::Hold hold_;
};

}  // namespace heddle

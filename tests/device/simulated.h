// The counters and functions of a simulated device (plugins/sim/native.h).
#pragma once

#include "device_support.h"
#include "sim/native.h"

namespace heddle::testing_devices {

inline const sim_native_table& native(const Device& device) {
  return **static_cast<const sim_native_table* const*>(device.handle());
}

inline sim_counts counts(const Device& device) {
  sim_counts made;
  native(device).counts(std::stoi(device.name().substr(device.name().find(':') + 1)), &made);
  return made;
}

// Returns the sum over all devices of a plan.
inline uint64_t counted(const Plan& plan, uint64_t sim_counts::*what) {
  uint64_t sum = 0;
  for (const PlanDevice& planned : plan.devices) sum += counts(*planned.device).*what;
  return sum;
}

}  // namespace heddle::testing_devices

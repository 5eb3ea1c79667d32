// The target that nets are compiled for: where operators run and what a plan may use. A session holds one; every stage from infer on and
// the compilation of subnets read it by reference, so that no two stages can disagree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/copies.h"
#include "heddle/limits.h"

namespace heddle {

class DeviceManager;

// Returns the default of the build (CMake's HEDDLE_CHECK_PLANS).
bool checks_plans_by_default();

// Not synchronised: complete before the first net is compiled for it. Must outlive the compilations that it is handed to, but not their
// plans.
struct CompilationTarget {
  // Takes the members without a default. `device`: "kind" or "kind:index", where operators run that name none; `threads`: the maximum
  // number that work on one run, the calling one included.
  CompilationTarget(const std::string& device, const Limits& net_limits, uint32_t threads);
  // Returns this target for the net of an operator's attribute, which runs on the host, on the threads of the net around it.
  CompilationTarget for_subnets() const;
  // Returns this target for a subnet of an operator that is on a device: it runs on the operator's stream. The first `own_inputs` inputs
  // and `own_outputs` outputs, which are the operator's own, lie on the host, all others on the device.
  CompilationTarget for_subnets_on(const std::string& device, uint32_t own_inputs, uint32_t own_outputs) const;

  std::string default_device;  // in full: "kind:index"
  Limits limits;
  uint32_t max_threads;
  Copies copies = Copies::warn;      // between devices
  int64_t memory_limit = INT64_MAX;  // planned peak bytes per device
  DeviceManager* devices = nullptr;  // borrowed; null: compile refuses operators that are placed elsewhere
  uint32_t streams = 1;              // compute streams of each device
  bool copy_streams = true;          // in addition to them, where a device has copy streams
  // The devices of the net's inputs and outputs: the port's name and the device's full name; the others lie on the host.
  std::vector<std::pair<std::string, std::string>> placed_ports;
  // For a subnet on a device: how many of its first inputs and outputs lie on the host; the others are on the default device.
  struct OwnPorts {
    uint32_t inputs = 0, outputs = 0;
  };
  std::optional<OwnPorts> own_ports;
  // True: verify the net after each transform, and each plan after compile; what is wrong with them is a defect of Heddle or of a plugin.
  bool check_plans = checks_plans_by_default();
};

}  // namespace heddle

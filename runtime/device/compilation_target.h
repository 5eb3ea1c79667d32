// What nets are compiled for: where operators run and what a plan may take. A session holds one; every stage from infer on and
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

// What a build decides (CMake's HEDDLE_CHECK_PLANS).
bool checks_plans_by_default();

// Not synchronised: complete before the first net is compiled for it. Outlives the compilations that it is handed to, not their plans.
struct CompilationTarget {
  // What has no default. `device`: "kind" or "kind:index", where operators run that name none; `threads`: the most that
  // work on one run, the calling one included.
  CompilationTarget(const std::string& device, const Limits& net_limits, uint32_t threads);
  // The same for the net of an operator's attribute, which runs on the host, on the threads of the net around it.
  CompilationTarget for_subnets() const;
  // The same where the operator is on a device: on its stream. Its first so many inputs and outputs, which are the operator's own, lie on
  // the host, all others on the device.
  CompilationTarget for_subnets_on(const std::string& device, uint32_t own_inputs, uint32_t own_outputs) const;

  std::string default_device;  // in full: "kind:index"
  Limits limits;
  uint32_t max_threads;
  Copies copies = Copies::warn;      // between devices
  int64_t memory_limit = INT64_MAX;  // planned peak bytes per device
  DeviceManager* devices = nullptr;  // borrowed; null: compile refuses operators that are placed elsewhere
  uint32_t streams = 1;              // of each device that compute
  bool copy_streams = true;          // beside them, where a device has them
  // Where inputs and outputs of the net lie, by name and full name of the device; the others lie on the host.
  std::vector<std::pair<std::string, std::string>> placed_ports;
  // Of a subnet on a device: how many of its first inputs and outputs lie on the host; the others are on the default device.
  struct OwnPorts {
    uint32_t inputs = 0, outputs = 0;
  };
  std::optional<OwnPorts> own_ports;
  // Each transform's net is judged behind it, and each plan behind compile: what is wrong with them is a defect of Heddle or of a plugin.
  bool check_plans = checks_plans_by_default();
};

}  // namespace heddle

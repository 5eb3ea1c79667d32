// Ranks that are processes, each with devices of its own: the participants of a collective are the devices of all.
#pragma once

#include <cstdlib>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "collectives/rank_children.h"

namespace heddle::testing_collectives {

// The devices of a process, and their kind: "sim", or "nccl" for those of kind "cuda" that NCCL connects. None ("gloo"): the process
// takes part itself.
struct OwnDevices {
  std::string kind = "sim";
  int devices = 2;
  std::string device(int d) const { return (kind == "nccl" ? "cuda:" : "sim:") + std::to_string(d); }
  std::vector<std::string> all_devices() const {
    std::vector<std::string> names;
    for (int d = 0; d < devices; ++d) names.push_back(device(d));
    return names;
  }
  std::string plugins() const { return kind == "nccl" ? kind : "gloo"; }
  // How a process learns of it. The GPUs of a machine are of one process each.
  std::map<std::string, std::string> environment(int rank) const {
    return {{"HEDDLE_TEST_KIND", kind},
            {"HEDDLE_TEST_DEVICES", std::to_string(devices)},
            {"HEDDLE_CUDA_STANDIN_FIRST_DEVICE", std::to_string(rank * devices)}};
  }
  static OwnDevices find() {
    const char* const kind = std::getenv("HEDDLE_TEST_KIND");
    const char* const devices = std::getenv("HEDDLE_TEST_DEVICES");
    return kind && devices ? OwnDevices{kind, std::atoi(devices)} : OwnDevices();
  }
};

inline void PrintTo(const OwnDevices& own, std::ostream* out) {
  *out << own.devices << " of kind " << own.kind;
}

}  // namespace heddle::testing_collectives

// Settings of one simulated device, and what it counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "faults.h"
#include "native.h"

namespace sim {

struct Counts {
  std::atomic<uint64_t> calls{0}, works{0}, launches{0}, copies{0}, pageable_copies{0}, peer_copies{0}, waits{0}, records{0}, callbacks{0},
      synchronizes{0}, queries{0}, allocations{0}, silences{0}, entries{0}, departures{0}, inner_allocations{0};
  std::atomic<uint64_t> streams{0}, events{0};  // existing now
};

// One device: the settings of its environment variables, the state that a fault leaves (`lost`), and its counters.
struct Settings {
  int32_t device = 0;
  std::string hold;   // while a file of this name exists, no work begins
  std::string wrong;  // the operator whose kernels compute something else; empty: none
  Faults faults;
  // After the first failure every request to the device fails, callbacks of its streams are dropped, and a callback delays only its own
  // stream.
  bool cuda_like = false;
  uint64_t group_timeout_ms = 0;  // how long a stream waits in a group before it fails
  uint64_t refusal_us = 0;        // how long a device that is lost takes to refuse work
  // The time that work of an operator, or a "copy", takes.
  struct Cost {
    std::string name;
    uint64_t ns = 0;
    double ns_per_byte = 0;  // of its inputs
  };
  std::vector<Cost> costs;
  std::atomic<bool> lost{false};
  Counts counts;

  // False: `error` describes the mistake. NAME=NS or NAME=NS+NS_PER_BYTE, separated by commas.
  bool parse_costs(const std::string& text, std::string* error);
  // In ns; 0: no cost was set for it.
  uint64_t cost(const char* name, uint64_t bytes) const;
};

}  // namespace sim

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
      synchronizes{0}, queries{0}, allocations{0}, silences{0}, entries{0}, departures{0};
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
  uint64_t refusal_us = 0;                              // how long a device that is lost takes to refuse work
  std::vector<std::pair<std::string, uint64_t>> costs;  // ns by operator, or "copy"
  std::atomic<bool> lost{false};
  Counts counts;

  // False: `error` describes the mistake. NAME=NS, separated by commas.
  bool parse_costs(const std::string& text, std::string* error);
  // 0: no cost was set for it.
  uint64_t cost(const char* name) const;
};

}  // namespace sim

// How one simulated device is told to behave, and what it counts.
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
  std::atomic<uint64_t> streams{0}, events{0};  // that there are now
};

struct Settings {
  int32_t device = 0;
  std::string hold;   // while there is a file of this name, nothing begins
  std::string wrong;  // the operator whose kernels compute something else; empty: none
  Faults faults;
  // What breaks once stays broken: everything asked of the device fails from then on, callbacks of its streams are forgotten, and a
  // callback keeps its own stream waiting only.
  bool cuda_like = false;
  uint64_t refusal_us = 0;                              // how long a device that is lost takes to refuse work
  std::vector<std::pair<std::string, uint64_t>> costs;  // ns by operator, or "copy"
  std::atomic<bool> lost{false};
  Counts counts;

  // False: `error` says what is wrong. NAME=NS, with commas between them.
  bool parse_costs(const std::string& text, std::string* error);
  // 0: it was said of none.
  uint64_t cost(const char* name) const;
};

}  // namespace sim

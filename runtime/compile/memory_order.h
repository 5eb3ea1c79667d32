// The cost of an order that is there for memory's sake: how long a run of the steps would take with it, simulated. Part of plan_memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compile/draft.h"
#include "memory/liveness/liveness.h"

namespace heddle::compiling {

// The threads are those of the plan, on a machine without costs of its own. Threads that have no step help others with their tiles at any
// time, as those of a run do. schedule/list_schedule.h, where only threads that are idle when a step begins share it, gives lengths that
// rise and fall by some percent with any edge.
class StepLengths {
 public:
  // Both must outlive it; `problem` has the edges and costs of the steps.
  StepLengths(const Draft& draft, const LivenessProblem& problem);
  // Returns the nanoseconds of a run with these edges added.
  double with(std::span<const std::pair<uint32_t, uint32_t>> edges) const;
  // Returns the smallest lag with which a run takes at most 1 % longer than `length_ns`: the primes up to 3, 6, 12 and 24 places for each
  // thread are tried (LivenessProblem::lag). 0: there is none, or there are too many steps to try.
  uint32_t lag_within(double length_ns) const;
  // Returns the largest prime that is not above n; n itself if that is less than 2.
  static uint32_t prime_up_to(uint32_t n);
  // Returns the largest lag that is tried, or a little more; 0: none.
  uint32_t max_lag() const;

 private:
  double simulate(const std::vector<std::vector<uint32_t>>& added) const;
  uint32_t threads() const;

  const Draft& draft_;
  const LivenessProblem& problem_;
  std::vector<int64_t> tiles_;
  std::vector<float> rank_;  // the longest path from each step to the end, without added edges
};

}  // namespace heddle::compiling

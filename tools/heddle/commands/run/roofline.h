// How fast this machine is at most, measured by operators of Heddle's own.
#pragma once

#include <optional>
#include <string>

#include "heddle/plan_info.h"
#include "heddle/session.h"

namespace heddle::tool {

// The two rates that bound a step (Williams, Waterman and Patterson, "Roofline", 2009).
struct Roofline {
  struct Rates {
    double flops_per_second = 0;  // of a product of matrices of f32
    double bytes_per_second = 0;  // of a sum of tensors that no cache holds, read and written
  };
  Rates all_threads, one_thread;

  // Returns the rates that bound a step: those of one thread if it is one tile.
  const Rates& rates(const PlanInfo::Step& step) const { return step.tiles > 1 ? all_threads : one_thread; }
  // Returns the least time in which a step can read, write and compute what the plan says, in nanoseconds.
  double min_ns(const PlanInfo::Step& step) const;
  // Returns whether reading and writing take longer than computing.
  bool is_memory_bound(const PlanInfo::Step& step) const;
};

// Measures the rates of a runtime, in about a tenth of a second. Errors: those of opening and running a net (an operator may be missing, or
// memory).
Result<Roofline::Rates> measure_rates(const Runtime& runtime);

}  // namespace heddle::tool

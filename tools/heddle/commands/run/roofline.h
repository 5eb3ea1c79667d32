// How fast this machine is at most, measured by operators of Heddle's own.
#pragma once

#include <optional>
#include <string>

#include "heddle/plan_info.h"
#include "heddle/session.h"

namespace heddle::tool {

// The two rates that bound a step (Williams, Waterman and Patterson, "Roofline", 2009), with all threads of the runtime.
struct Roofline {
  double flops_per_second = 0;  // of a product of matrices of f32
  double bytes_per_second = 0;  // of a sum of tensors that no cache holds, read and written

  // Returns the least time in which a step can read, write and compute what the plan says, in nanoseconds.
  double min_ns(const PlanInfo::Step& step) const;
  // Returns whether reading and writing take longer than computing.
  bool is_memory_bound(const PlanInfo::Step& step) const;
};

// Measures both, in about a tenth of a second. Errors: those of opening and running a net (an operator may be missing, or memory).
Result<Roofline> measure_roofline(const Runtime& runtime);

}  // namespace heddle::tool

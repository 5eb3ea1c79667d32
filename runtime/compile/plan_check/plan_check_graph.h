// The graph of a plan as its checker sees it: whether it is valid, and which step is complete before which. Private to plan_check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/plan.h"

namespace heddle::compiling {

// Returns Code::internal: the plan is wrong in this way.
Status wrong_plan(const std::string& what);
// Returns the step's name and place in plan order, for messages.
std::string plan_step_name(const Plan& plan, uint32_t step);

// A step after all others, which represents the reader of the net's outputs.
constexpr uint32_t the_end = UINT32_MAX - 1;

class PlanOrder {
 public:
  explicit PlanOrder(const Plan& plan) : plan_(plan), graph_(plan.graph) {}
  // Reads the plan; must be called first. Errors: the arrays do not fit together, an edge goes against plan order (so there is no cycle),
  // predecessor counts are not those of the edges, a step relies on work elsewhere that is merely enqueued, two steps may call for one
  // stream at once, a fence is not that of its step, a group is not launched as one.
  Status read();
  // True if `a` is complete before `b` begins, by the edges alone, through other steps too. A step is not before itself.
  bool reaches(uint32_t a, uint32_t b) const {
    if (b == the_end) return a != the_end;
    return a != the_end && ((reach_[a * words_ + b / 64] >> (b % 64)) & 1) != 0;
  }

 private:
  Status check_arrays() const;
  Status check_groups() const;
  // Whether there is an edge, or one that no device waits for.
  bool precedes(uint32_t from, uint32_t to) const;
  bool of_order_alone(uint32_t from, uint32_t to) const;
  Status check_enqueued() const;
  Status check_extents() const;
  Status check_streams() const;
  void find_reach();

  const Plan& plan_;
  const StepGraph& graph_;
  size_t words_ = 0;             // words of a row of reach_
  std::vector<uint64_t> reach_;  // by step: bits of the steps after it
};

}  // namespace heddle::compiling

// The buffers of a device's arena as a picture needs them: where each is, how long it lives, and what it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "charts/step_phase.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

struct ArenaBuffer {
  enum class Role { value, gradient, output, scratch };
  Role role = Role::value;
  std::string name;    // of its first value; of scratch, the step's
  std::string writer;  // the operator that first writes it
  std::string type;    // dtype and shape of its first value; empty for scratch
  size_t others = 0;   // more values in the same bytes: views, updates, in-place outputs
  int64_t offset = 0, bytes = 0;
  size_t first_step = 0, last_step = 0;  // both included
  bool held = false;                     // when the arena is fullest
};

struct ArenaBuffers {
  std::vector<ArenaBuffer> all;  // by offset
  // The steps during which the arena is fullest, both included, and what it then holds; no bytes: it holds nothing.
  size_t first_full = 0, last_full = 0;
  int64_t held_bytes = 0;
};

// Returns those of `memory[device]`. Lives are those of a run whose steps follow each other in the plan's order.
ArenaBuffers arena_buffers(const PlanInfo& plan, size_t device, const std::vector<StepPhase>& phases);

}  // namespace heddle::tool

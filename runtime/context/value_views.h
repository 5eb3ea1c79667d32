// ValueViews: the values of a plan as the steps of one context see them: a heddle_tensor for each value, one more for each operand that
// reads its bytes under another layout, and the extents that are determined during a run.
//
// Belongs to one Execution; its addresses last as long as it does. Threads: during a run kernels write extents and late steps write views,
// each those of its own step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "heddle/status.h"
#include "state/variables.h"

namespace heddle {

class ValueViews {
 public:
  // All arguments must outlive it. `variables` may be null if the plan has none.
  ValueViews(const Plan& plan, const ContextMemory& memory, VariableStore* variables);
  ValueViews(const ValueViews&) = delete;
  ValueViews& operator=(const ValueViews&) = delete;

  // The view of a value, in its own layout.
  const heddle_tensor& of(ValueId value) const { return views_[value.index]; }
  // The operands of all steps in plan order, inputs before outputs; null: absent.
  heddle_tensor** operands() { return operands_.data(); }
  // All views by index, and the value that each shows.
  uint32_t size() const { return static_cast<uint32_t>(views_.size()); }
  heddle_tensor& operator[](uint32_t view) { return views_[view]; }
  const PlanValue& value(uint32_t view) const {
    const size_t own = plan_.values.size();
    return plan_.values[view < own ? view : others_[view - own]];
  }

  // Returns where the plan puts a value; null: nowhere before the run.
  std::byte* home(const PlanValue& value) const;
  // Sets where the extents of values on a device lie, by slot, in that device's memory.
  void extents_on(uint8_t device, int64_t* extents);
  // Call it when the memory has moved: updates the views of values in its arenas.
  void move();
  // Rejects an extent that a kernel wrote outside its bound, naming the operator. Errors: kernel_failed.
  Status check_extents() const;

 private:
  void add(uint32_t value, const heddle_tensor& view);
  uint32_t view_of(const Operand& operand);

  const Plan& plan_;
  const ContextMemory& memory_;
  VariableStore* const variables_;
  std::vector<int64_t> extents_;      // by PlanValue::extent_slot
  std::vector<heddle_tensor> views_;  // the values' own first
  std::vector<uint32_t> others_;      // the values of the views after those
  struct ArenaView {
    uint32_t view = 0;
    uint8_t device = 0;
    int64_t offset = 0;
  };
  std::vector<ArenaView> arena_views_;
  std::vector<heddle_tensor*> operands_;
};

}  // namespace heddle

// RunVariables: the session's variables in the runs of one plan: the turn that a run takes with them, where it reads and updates them, and
// what becomes of them when it fails.
//
// Belongs to one Execution, used by the thread that runs. Without variables it does nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/threads/fair_shared_mutex.h"
#include "base/threads/interruption.h"
#include "compile/plan.h"
#include "heddle/status.h"
#include "state/variables.h"

namespace heddle {

// Gives the variables of `plan` homes on the devices whose steps use them. Errors: out_of_memory, device_failed.
Status make_homes(const Plan& plan, VariableStore* store);

class RunVariables {
 public:
  // `plan` outlives it. `store` may be null when the plan has no variables.
  RunVariables(const Plan& plan, std::shared_ptr<VariableStore> store);

  VariableStore* store() const { return store_.get(); }
  bool any() const { return store_ && store_->size() > 0; }
  // Before a run: a turn with whole variables that are up to date where the run reads them. Errors: cancelled, deadline_exceeded, busy,
  // hazard (one is torn), device_failed.
  Status enter(FairSharedMutex::Hold& turn, const Interruption& until);
  // In a turn: the net's own step counter, as the host knows it; `otherwise` where it has none or only devices ask for it.
  int64_t step_counter(int64_t otherwise) const { return counter_on_host_ ? read_step_counter() : otherwise; }
  // Where the steps of device `device` of the plan find the counter in that device's memory; null: they are told what the host knows.
  const void* step_counter_on(uint8_t device) const;
  // In a turn: the updates of the run were begun and not all made.
  void mark_torn();
  // In a turn: a device still works for the run, and may write those that it updates.
  void block(const std::shared_ptr<const Unanswered>& until);

 private:
  struct Use {
    uint32_t variable = 0;
    const Device* device = nullptr;  // null: on the host
    bool updated = false;
  };
  int64_t read_step_counter() const;
  void note_use(const Operand& operand, bool updated);
  Status freshen(const Interruption& until);

  const Plan& plan_;
  const std::shared_ptr<VariableStore> store_;
  std::vector<Use> uses_;
  bool counter_on_host_ = false;  // the host must know the counter before the run
};

}  // namespace heddle

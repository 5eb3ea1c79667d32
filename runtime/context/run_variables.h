// RunVariables: the session's variables in the runs of one plan: the turn that a run takes with them, where it reads and updates them, and
// their state when it fails. A run that updates shares them with runs that read, and has them alone in its update phase.
//
// Belongs to one Execution. Threads: used by the thread that runs. Without variables it does nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/threads/fair_shared_mutex.h"
#include "base/threads/interruption.h"
#include "compile/plan.h"
#include "device/outstanding_work.h"
#include "heddle/status.h"
#include "state/variables.h"

namespace heddle {

// Gives the variables of `plan` device copies on the devices whose steps use them. Errors: out_of_memory, device_failed.
Status make_homes(const Plan& plan, VariableStore* store);

class RunVariables {
 public:
  // `plan` must outlive it. `store` may be null if the plan has no variables.
  RunVariables(const Plan& plan, std::shared_ptr<VariableStore> store);

  VariableStore* store() const { return store_.get(); }
  bool any() const { return store_ && store_->size() > 0; }
  // Call it before a run: takes a turn with the variables, checks that none is torn, and brings them up to date where the run reads them.
  // Others share the turn until begin_updates(), if the plan makes its updates in an update phase. Errors: cancelled, deadline_exceeded,
  // busy, hazard (one is torn), device_failed.
  Status enter(FairSharedMutex::Hold& turn, const Interruption& until);
  // Call it before the update phase: the run has the variables alone from then on. Errors: cancelled, deadline_exceeded.
  Status begin_updates(FairSharedMutex::Hold& turn, const Interruption& until);
  // Returns the net's own step counter, as the host knows it; `otherwise` if it has none or only devices read it. REQUIRES: a turn.
  int64_t step_counter(int64_t otherwise) const { return counter_on_host_ ? read_step_counter() : otherwise; }
  // Returns where the steps of device `device` of the plan find the counter in that device's memory; null: they get the host's value.
  const void* step_counter_on(uint8_t device) const;
  // Marks the variables that the plan updates as torn: the updates of the run were begun and not all made. REQUIRES: a turn.
  void mark_torn();
  // The name of the variables that the plan updates, which outstanding work of a run may still write; nullopt: it updates none.
  std::optional<BusyName> busy_name() const;

 private:
  struct Use {
    uint32_t variable = 0;
    const Device* device = nullptr;  // null: on the host
    bool updated = false;
  };
  int64_t read_step_counter() const;
  void note_use(const Operand& operand, bool updated);
  Status freshen(const Interruption& until);
  Status note_updates(const Interruption& until);

  const Plan& plan_;
  const std::shared_ptr<VariableStore> store_;
  std::vector<Use> uses_;
  bool counter_on_host_ = false;  // the host must know the counter before the run
};

}  // namespace heddle

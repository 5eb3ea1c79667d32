// StepContexts: the steps of a plan as the scheduler calls them in one context: a function and a heddle_run_context for each.
//
// The function is the kernel's own wherever possible; some steps have a function of the runtime that calls the kernel
// (run/step_entries.h). Belongs to one Execution; its addresses last as long as it does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "context/value_views.h"
#include "heddle/abi.h"
#include "plugin/host.h"
#include "run/device/device_run.h"
#include "run/failure_log.h"
#include "run/run_scope.h"
#include "schedule/run_control.h"
#include "schedule/scheduler.h"

namespace heddle {

class LateStep;
class PendingSteps;
class StepResources;
class StepContexts;
class Subnets;

// The parts of their Execution that steps use while they run. All must outlive the steps.
struct StepServices {
  const Plan& plan;
  const ContextMemory& memory;
  RunScope& scope;
  FailureLog& failures;
  Subnets& subnets;
  PendingSteps& pending;
  StepResources& resources;
  Scheduler& scheduler;
  DeviceRun* devices;  // null: everything runs on the host
};

// A step as its kernel sees it: the host's functions for the kernel while it runs (step_host.cc).
// Kept apart from the kernel's heddle_run_context, so that data read at every call lie together: short steps cost what they touch.
struct StepContext final : heddle_call {
  StepContexts* all = nullptr;
  uint32_t step = 0;

  // Returns the step of a context, which may be a copy.
  static const StepContext& of(const heddle_run_context& context) { return *static_cast<const StepContext*>(call_of(context)); }
  const StepServices& services() const;
  const PlanStep& planned() const { return services().plan.steps[step]; }
  heddle_run_context& abi() const;

  void set_error(heddle_status code, std::string_view text) noexcept override;
  void refuse(std::string_view what) noexcept override;
  void* thread_scratch() const noexcept override;
  uint32_t thread_index() const noexcept override;
  bool cancelled() const noexcept override;
  heddle_status complete(heddle_status status, std::string_view text) noexcept override;
  heddle_status finish_step() noexcept override;
  void* allocate_output(uint32_t output, const int64_t* dims, int32_t rank) noexcept override;
  heddle_status call_own_finish() const noexcept;
  heddle_status move(uint32_t flags, void* destination, const void* source, uint64_t bytes) noexcept override;
  heddle_status run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs,
                           std::span<heddle_tensor* const> outputs) noexcept override;
};

class StepContexts {
 public:
  StepContexts(const StepServices& services, ValueViews& views);
  ~StepContexts();
  StepContexts(const StepContexts&) = delete;
  StepContexts& operator=(const StepContexts&) = delete;

  const Step* steps() const { return steps_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(steps_.size()); }
  StepContext& operator[](uint32_t step) { return contexts_[step]; }
  heddle_run_context& abi(uint32_t step) { return abi_[step]; }
  const heddle_run_context& abi(uint32_t step) const { return abi_[step]; }
  const StepServices& services() const { return services_; }
  // Returns the late step; null: the step is not late.
  LateStep* late(uint32_t step) { return late_.empty() ? nullptr : late_[step].get(); }
  // Returns the contexts of the steps of a group, in the order of DeviceWork::group. `step`: the one that launches them.
  std::span<const heddle_run_context* const> parts_of(uint32_t step) const { return parts_[step]; }
  // Call it before each run. `deadline` in ticks; 0: none.
  void begin(uint64_t deadline) {
    if (!timed_.empty()) set_deadline(deadline);
  }
  // Call it when the context's memory has moved, and scratch with it.
  void move();
  // The bytes of unplanned memory that late steps hold, on the host (0) or a device of the plan.
  int64_t unplanned_bytes(uint8_t device) const;

 private:
  // Returns how the scheduler calls the step. REQUIRES: the step's context is set up.
  Step step_for(uint32_t step);
  void set_deadline(uint64_t deadline);
  void set_faults(uint32_t step);
  void find_parts();

  const StepServices services_;
  std::vector<heddle_run_context> abi_;  // by step
  std::vector<StepContext> contexts_;    // likewise
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<LateStep>> late_;                // by step; empty when no step is late
  std::vector<std::vector<const heddle_run_context*>> parts_;  // by step, where it launches a group; empty when no step does
  std::vector<uint32_t> timed_;                                // steps whose kernels may wait, and see the run's deadline
};

inline const StepServices& StepContext::services() const {
  return all->services();
}
inline heddle_run_context& StepContext::abi() const {
  return all->abi(step);
}

}  // namespace heddle

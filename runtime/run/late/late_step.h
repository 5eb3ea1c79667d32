// LateStep: a runtime-typed step, whose extents are known only when its inputs are. One thread resolves it: infers, places, prepares. Then
// it runs like any other, on all threads: the scheduler sees a fixed number of tiles, each of which maps to a range of the kernel's.
//
// Outputs with a bound lie in the arena; dynamic outputs get memory of their own, kept from run to run and grown when needed (reported as
// unplanned). Inference and preparation are skipped while extents stay the same. There is one object per step and execution.
//
// A step on a device is also resolved on the host, when it is enqueued: the values that decide its extents are on the host by then
// (compile/fences.cc).
//
// Threads: resolve(), run_whole(), start(), enqueue() and finish() are called by one thread at a time, run() by several for disjoint
// ranges, allocate_output() by any thread while the step is under way, unplanned_bytes() between runs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/checked.h"
#include "compile/plan.h"
#include "device/growing_buffer.h"
#include "heddle/status.h"
#include "run/device/device_run.h"

namespace heddle {

struct StepContext;
struct StepServices;

class PendingSteps;

// Check that the extents of inputs, or those that a step has written for its outputs, are within their bounds. Errors: kernel_failed.
Status check_input_extents(const heddle_run_context& context);
Status check_written_extents(const heddle_run_context& context);

class LateStep {
 public:
  // `context`: that of its step, which must outlive it and is the context of its calls.
  explicit LateStep(StepContext& context);
  LateStep(const LateStep&) = delete;
  LateStep& operator=(const LateStep&) = delete;

  // Call it when the context has moved to another workspace, whose streams have resources of their own. Not while running.
  void move() { bound_ = false; }
  // Does everything between its inputs' true extents and the first tile: infers, places, prepares. The reason of a failure is noted for
  // the step. Errors: those of inference and of preparing kernels; out_of_memory.
  heddle_status resolve();
  // The number of tiles that the scheduler sees, whatever the extents: a function of the plan.
  int64_t tiles() const { return plan_.max_threads > 1 ? int64_t{4} * plan_.max_threads : 1; }
  // Runs tiles [begin, end); a call for all of them resolves the step first. The reason of a failure is noted for the step.
  heddle_status run(int64_t begin, int64_t end);
  // Runs all tiles of a kernel that can resume.
  heddle_status run_whole(bool resumed);
  // In place of run() for an asynchronous kernel: starts the step, whose completion `pending` reports. Errors: as resolve(); kernel_failed.
  Status start(PendingSteps& pending);
  // In place of run() on a device: resolves the step and enqueues it. `fenced`: as for DeviceWorker::enqueue().
  heddle_status enqueue(bool fenced);
  // Finishes the step after all tiles, or after its completion. Errors: kernel_failed.
  Status finish();
  // Allocates an output for a kernel that determines its outputs' extents itself.
  Result<void*> allocate_output(uint32_t output, const int64_t* dims, int32_t rank);
  // The scratch of executing thread `thread`, once the step is resolved.
  std::byte* thread_scratch(uint32_t thread) const {
    return thread_scratch_.data() + thread * align_up(made_.thread_scratch_bytes, arena_alignment);
  }
  // The bytes of dynamic values and scratch, on the host (0) or a device of the plan.
  int64_t unplanned_bytes(uint8_t device) const;

 private:
  struct Output {
    GrowingBuffer memory;
    Shape shape;  // true extents; the view's dims point here
  };
  Status infer_outputs();
  Status place_outputs();
  Status prepare();
  bool uses_communicator() const;
  Status bind_resources();
  bool same_extents();
  const int64_t* extent_of(uint32_t input) const;
  Status check_extents() const;
  bool launched() const;
  bool adopt_ranks();
  bool decides_shapes(uint32_t input) const;
  void hide_dynamic_outputs();
  bool has_own_extent(size_t output) const;
  void set_extents(size_t output, const Shape& shape);
  Status open_extents();
  heddle_status fetch_extents();
  Status close_extents();
  Status check_dynamic_outputs() const;
  // Fills in views of the inputs with their true extents.
  void views(std::vector<heddle_tensor>& storage, std::vector<const heddle_tensor*>& pointers) const;
  Status place_output(uint32_t output, const Shape& shape);
  Status grow_scratch();
  Status find_extents();
  Status open();
  Status close(heddle_status status);
  heddle_status call_finish() noexcept;

  StepContext& context_;
  const StepServices& services_;
  const Plan& plan_;
  const PlanStep& plan_step_;
  const DeviceWork* const work_;             // null: it runs on the host
  const std::shared_ptr<Device> device_;     // likewise
  std::unique_ptr<KernelCall> kernel_call_;  // outlives made_
  std::vector<int> ranks_;                   // the ranks in kernel_call_
  BoundResources resources_;                 // requested by the kernel; destroyed after it
  std::vector<void*> resource_pointers_;
  bool bound_ = false;  // resources are bound to streams of the context's workspace
  KernelInstance made_;
  std::vector<Shape> input_shapes_;
  std::vector<std::vector<std::byte>> operand_contents_;  // of shape operands, to detect changes
  std::vector<const std::byte*> known_;                   // by input: its content, if the plan was made for it
  std::vector<TensorType> types_;
  std::vector<Output> outputs_;
  // The extents, as the kernel writes them, of bounded outputs whose plan knew no bound; on a device both, else the second alone.
  GrowingBuffer extents_there_, extents_;
  GrowingBuffer scratch_, data_scratch_, thread_scratch_;  // data_scratch_: for kernels that only move data on a device
  int64_t thread_scratch_at_ = 0;                          // for a launch: the offset of the thread scratch in its scratch
  heddle_run_context call_ = {};                           // the context that the kernel is run with
  uint64_t resolved_in_ = 0;                               // the number of the run that it was resolved in
  std::vector<heddle_tensor> input_views_;
  std::vector<const heddle_tensor*> inputs_;
  bool ready_ = false;
};

}  // namespace heddle

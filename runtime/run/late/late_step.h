// LateStep: a step whose extents are known only when its inputs are. One thread resolves it: infers, places, prepares. Then it runs like
// any other, on all threads: over a fixed number of tiles, as the scheduler wants it, each of which stands for a range of the kernel's.
//
// Outputs with a bound lie in the arena; dynamic ones get memory of their own, kept from run to run and grown when needed (reported as
// unplanned). Inference and preparation are skipped while extents stay the same. One per step and execution.
//
// On a device it is resolved on the host just the same, when it is enqueued: what decides its extents is there by then (compile/fences.cc).
//
// resolve(), run_whole(), start(), enqueue() and finish() are called by one thread at a time, run() by several for disjoint ranges;
// allocate_output() on any while the step is under way; unplanned_bytes() between runs.
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

// Whether the inputs' extents keep to their bounds, or those that a step has written into the slots of its outputs. Errors: kernel_failed.
Status check_input_extents(const heddle_run_context& context);
Status check_written_extents(const heddle_run_context& context);

class LateStep {
 public:
  // The context of its step, which outlives it and is called with it.
  explicit LateStep(StepContext& context);
  LateStep(const LateStep&) = delete;
  LateStep& operator=(const LateStep&) = delete;

  // The context works in another workspace since, whose streams have resources of their own. Not while running.
  void move() { bound_ = false; }
  // From its inputs' true extents on, up to the first tile. Errors: those of inference and of preparing kernels; out_of_memory.
  Status resolve();
  // In which it runs, whatever the extents: a function of the plan.
  int64_t tiles() const { return plan_.max_threads > 1 ? int64_t{4} * plan_.max_threads : 1; }
  // Tiles [begin, end); all of them in one call resolve the step first. The reason of a failure is noted for the step.
  heddle_status run(int64_t begin, int64_t end);
  // All of them, of a kernel that resumes.
  heddle_status run_whole(bool resumed);
  // In place of run, of an asynchronous kernel: begins the step, which `pending` then says is done. Errors: as resolve; kernel_failed.
  Status start(PendingSteps& pending);
  // In place of run, on a device: resolves the step and enqueues it. `fenced` as DeviceRun::enqueue has it.
  heddle_status enqueue(bool fenced);
  // Behind all tiles, or the completion. Errors: kernel_failed.
  Status finish();
  // For kernels that find out their outputs' extents themselves.
  Result<void*> allocate_output(uint32_t output, const int64_t* dims, int32_t rank);
  // Of executing thread `thread`, once the step is resolved.
  std::byte* thread_scratch(uint32_t thread) const {
    return thread_scratch_.data() + thread * align_up(made_.thread_scratch_bytes, arena_alignment);
  }
  // Dynamic values and scratch, on the host (0) or a device of the plan.
  int64_t unplanned_bytes(uint8_t device) const;

 private:
  struct Output {
    GrowingBuffer memory;
    Shape shape;  // true extents; the view's dims point here
  };
  heddle_status resolve_noted();
  Status infer_outputs();
  Status place_outputs();
  Status prepare();
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
  // Views of the inputs with their true extents.
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
  std::unique_ptr<KernelCall> kernel_call_;  // outlives what is made
  std::vector<int> ranks_;                   // that it tells
  BoundResources resources_;                 // that the kernel asked for: they go after it
  std::vector<void*> resource_pointers_;
  bool bound_ = false;  // to those of the workspace that the context works in
  KernelInstance made_;
  std::vector<Shape> input_shapes_;
  std::vector<std::vector<std::byte>> operand_contents_;  // of shape operands, to see whether they changed
  std::vector<const std::byte*> known_;                   // by input: its content where the plan was made for that
  std::vector<TensorType> types_;
  std::vector<Output> outputs_;
  // The extents of bounded outputs whose plan knew no bound, as the kernel writes them; on a device both, else the second alone.
  GrowingBuffer extents_there_, extents_;
  GrowingBuffer scratch_, data_scratch_, thread_scratch_;  // that of its data: of what only moves data on a device
  int64_t thread_scratch_at_ = 0;                          // of a launch: where in its scratch that of its thread begins
  heddle_run_context call_ = {};                           // what the kernel is run with
  uint64_t resolved_in_ = 0;                               // the run
  std::vector<heddle_tensor> input_views_;
  std::vector<const heddle_tensor*> inputs_;
  bool ready_ = false;
};

}  // namespace heddle

// LateStep: a step whose extents are known only when its inputs are: it infers, prepares and runs in one go, on the calling thread.
//
// Outputs with a bound lie in the arena; dynamic ones get memory of their own, kept from run to run and grown when needed (reported as
// unplanned). Inference and preparation are skipped while extents stay the same. One per step and execution.
//
// Runs on the thread that runs the step, one at a time; unplanned_bytes() between runs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"

namespace heddle {

struct StepContext;
struct StepServices;

// Whether the inputs' extents keep to their bounds. Errors: kernel_failed.
Status check_input_extents(const heddle_run_context& context);

class LateStep {
 public:
  // The context of its step, which outlives it and is called with it.
  explicit LateStep(StepContext& context);
  LateStep(const LateStep&) = delete;
  LateStep& operator=(const LateStep&) = delete;

  // The step, from its inputs' true extents on. Errors: those of inference and of preparing kernels; kernel_failed; out_of_memory.
  Status execute();
  // For kernels that find out their outputs' extents themselves.
  void* allocate_output(uint32_t output, const int64_t* dims, int32_t rank);
  // Dynamic values and scratch.
  int64_t unplanned_bytes() const;

 private:
  struct Buffer {
    std::shared_ptr<const Blob> memory;
    std::byte* data = nullptr;
    int64_t bytes = 0;
    Shape shape;         // true extents; the view's dims point here
    int64_t extent = 0;  // of a bounded output whose plan knew no bound: written by the kernel
  };
  Status infer_outputs();
  Status place_outputs();
  Status prepare();
  bool same_extents();
  bool adopt_ranks();
  bool decides_shapes(uint32_t input) const;
  void hide_dynamic_outputs();
  bool has_own_extent(size_t output) const;
  void set_extents(size_t output, const Shape& shape);
  void open_extents();
  Status close_extents();
  Status check_dynamic_outputs() const;
  // Views of the inputs with their true extents.
  std::vector<const heddle_tensor*> views(std::vector<heddle_tensor>& storage) const;
  void grow(Buffer& buffer, int64_t bytes);

  StepContext& context_;
  const StepServices& services_;
  const Plan& plan_;
  const PlanStep& plan_step_;
  std::unique_ptr<KernelCall> call_;  // outlives what is made
  std::vector<int> ranks_;            // that it tells
  KernelInstance made_;
  std::vector<Shape> input_shapes_;
  std::vector<std::vector<std::byte>> operand_contents_;  // of shape operands, to see whether they changed
  std::vector<const std::byte*> known_;                   // by input: its content where the plan was made for that
  std::vector<TensorType> types_;
  std::vector<Buffer> buffers_;
  Buffer scratch_, thread_scratch_;
  bool ready_ = false;
};

}  // namespace heddle

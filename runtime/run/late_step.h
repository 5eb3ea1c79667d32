// LateStep: a step whose extents are known only when its inputs are: it infers, prepares and runs in one go, on the calling thread.
//
// Outputs with a bound lie in the arena; dynamic ones get memory of their own, kept from run to run and grown when needed (reported as
// unplanned). Inference and preparation are skipped while extents stay the same. Subnets are compiled for the extents they are run with,
// in memory of their own, and kept while few. One per step and execution.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"

namespace heddle {

class Execution;

// Whether the inputs' extents keep to their bounds. Errors: kernel_failed.
Status check_input_extents(const heddle_run_context& context);

class LateStep {
 public:
  LateStep(Execution& owner, uint32_t step);
  LateStep(const LateStep&) = delete;
  LateStep& operator=(const LateStep&) = delete;

  // The step's run function: `context` is the step's own.
  static heddle_status run(const heddle_run_context* context, int64_t begin, int64_t end);
  // For kernels that find out their outputs' extents themselves.
  void* allocate_output(uint32_t output, const int64_t* dims, int32_t rank);
  // A subnet of this step for inputs of these types, made when there is none; fills the types of its outputs that are asked for. Valid
  // until the next call.
  Result<Execution*> compile(const Net* subnet, std::span<const heddle_tensor* const> inputs, std::span<heddle_type* const> outputs);
  int64_t unplanned_bytes() const;

 private:
  struct Buffer {
    std::shared_ptr<const Blob> memory;
    std::byte* data = nullptr;
    int64_t bytes = 0;
    Shape shape;         // true extents; the view's dims point here
    int64_t extent = 0;  // of a bounded output whose plan knew no bound: written by the kernel
  };
  Status execute();
  Status infer_outputs();
  Status place_outputs();
  Status prepare();
  Status make_room(int64_t bytes, int64_t limit);
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

  Execution& owner_;
  const uint32_t step_;
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

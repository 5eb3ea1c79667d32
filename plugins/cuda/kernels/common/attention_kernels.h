// The two kernels of cuda::Attention. The one by cuDNN keeps no scores in memory; where cuDNN has no engine, the other one computes two
// products with a softmax between them, and keeps the scores in scratch.
#pragma once

#include <memory>
#include <vector>

#include "generate/rows/row_launches.h"
#include "kernels/common/attention_problem.h"
#include "kernels/common/gpu_kernel.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/common/pointwise_launch.h"
#include "library/cudnn_handle.h"
#include "library/matrix_product.h"

namespace heddle::cuda {

class AttentionKernel : public GpuKernel {
 protected:
  enum Port : uint32_t { query, key, value, scale };
  // Called in create.
  Status begin(const CreateContext& context);
  // Called in prepare.
  Status read_problem(PrepareContext& context);
  // Returns true if the scale is known before the run: then factor() is it.
  bool knows_factor(const PrepareContext& context) const { return !context.input(scale) || context.host_data(scale); }
  double factor(const PrepareContext& context) const;
  bool divides() const { return divides_; }
  const AttentionProblem& problem() const { return problem_; }

 private:
  int64_t heads_axis_ = 1;
  bool divides_ = false;
  AttentionProblem problem_;
};

// Runs as one operation of cuDNN's graphs, "scaled dot product attention". f16 and bf16; sums in f32.
class FusedAttention : public AttentionKernel {
 public:
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t, int64_t) const;

 private:
  Status choose_plan(const heddle_tensor& output, uint64_t max_workspace);

  Needed<cudnn::Planner> planner_;
  Needed<cudnn::StreamHandle> stream_;
  std::unique_ptr<cudnn::PlannedCall> call_;
  float factor_ = 1;  // cuDNN reads it here whenever the plan is executed
};

class ComposedAttention : public AttentionKernel {
 public:
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t, int64_t) const;

 private:
  // Elements from the beginning of an operand of one call to that of the next.
  struct Steps {
    int64_t query = 0, key = 0, value = 0, output = 0, scores = 0;
  };
  Status choose_products(heddle_dtype dtype, uint64_t budget);
  Status prepare_scaling(const heddle_tensor& scale);
  Status prepare_softmax();
  Status multiply(const RunContext& context, const MatrixProduct& product, MatrixProduct::Operands operands) const;

  Needed<ProductLibrary> library_;
  MatrixProduct scoring_, mixing_;
  int64_t calls_ = 1;  // of each product: one for each sequence, where its heads have a step of their own
  Steps steps_;
  double factor_ = 1;
  bool scales_ = false;  // by a scale that only the run knows
  PointwiseLaunch scaling_;
  AxisLaunches softmax_;
  std::shared_ptr<const Program> program_;
  std::vector<cudaKernel_t> kernels_;
  std::vector<Launch> launches_;
  // Offsets in scratch, in bytes.
  uint64_t softmax_at_ = 0, workspace_at_ = 0;
  // The scores as a tensor, without an address.
  int64_t dims_[2] = {};
  heddle_tensor scores_ = {};
};

}  // namespace heddle::cuda

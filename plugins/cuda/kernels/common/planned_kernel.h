// A kernel whose work is described by a Launches (generate/launch_plan.h): compiled and planned in prepare, launched in run.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "generate/launch_plan.h"
#include "kernels/common/gpu_kernel.h"

namespace heddle::cuda {

// [run] Starts one launch of a plan, with the addresses of the run.
Status start_launch(const GpuKernel& kernel, const RunContext& context, const Launch& launch, cudaKernel_t entry);

class PlannedKernel : public GpuKernel {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t, int64_t) const;

 protected:
  // Called in create. Inputs of fused operators follow the node's own.
  Status begin(const CreateContext& context, std::unique_ptr<Launches> launches);

 private:
  std::unique_ptr<Launches> launches_;
  uint32_t own_inputs_ = 0;
  bool varies_ = false;  // true: planned in each run
  uint64_t scratch_bytes_ = 0;
  std::vector<Launch> planned_;
  std::shared_ptr<const Program> program_;
  std::vector<cudaKernel_t> kernels_;
};

}  // namespace heddle::cuda

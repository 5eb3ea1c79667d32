// Runs a pointwise program as one launch, compiled and planned for the shapes of one output and its inputs, which broadcast.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "generate/pointwise/pointwise_source.h"
#include "kernels/common/gpu_kernel.h"
#include "shared/pointwise_region.h"

namespace heddle::cuda {

class PointwiseLaunch {
 public:
  // How numbers of other dtypes pass through the program: the dtype of the computation (none: the inputs' own), and whether results are
  // converted to the output's dtype as by Cast.
  struct Conversion {
    heddle_dtype arithmetic = HEDDLE_DTYPE_NONE;
    bool converts = false;
  };
  // [compile] Takes one tensor for each of the program's inputs. Errors: unsupported, if the program has more parameters than a launch
  // takes.
  Status prepare(const Device& device, const expression::Program& program, const heddle_tensor& output, const heddle_tensor* const* inputs,
                 const Conversion& conversion);
  Status prepare(const Device& device, const expression::Program& program, const heddle_tensor& output,
                 const heddle_tensor* const* inputs) {
    return prepare(device, program, output, inputs, {});
  }
  // [run] The output may share its memory with an input of its shape and dtype.
  Status start(const GpuKernel& kernel, const RunContext& context, void* output, const void* const* inputs) const;

 private:
  static constexpr size_t max_parameter_bytes = 4000;  // every version of CUDA takes 4 KiB
  void choose(const operators::Region& region);
  bool rows_are_groups(const operators::Region& region, int64_t inner) const;
  void fill(const operators::Region& region);

  PointwiseShape shape_;
  std::vector<int64_t> words_;  // the kernel's parameters, without addresses
  size_t count_at_ = 0;
  std::shared_ptr<const Program> program_;
  cudaKernel_t kernel_ = nullptr;
};

}  // namespace heddle::cuda

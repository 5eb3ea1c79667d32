// A pointwise program as one launch: compiled and planned for the shapes of one output and its inputs, which broadcast.
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
  // How numbers of other dtypes go through the program: what it is computed in (none: the inputs' own), and whether results become the
  // output's dtype as by Cast.
  struct Conversion {
    heddle_dtype arithmetic = HEDDLE_DTYPE_NONE;
    bool converts = false;
  };
  // [compile] One tensor for each of the program's inputs. Unsupported: a program whose parameters are more than a launch takes.
  Status prepare(const Device& device, const expression::Program& program, const heddle_tensor& output, const heddle_tensor* const* inputs,
                 const Conversion& conversion);
  Status prepare(const Device& device, const expression::Program& program, const heddle_tensor& output,
                 const heddle_tensor* const* inputs) {
    return prepare(device, program, output, inputs, {});
  }
  // [run] The output may lie where an input of its shape and dtype does.
  Status start(const GpuKernel& kernel, const RunContext& context, void* output, const void* const* inputs) const;

 private:
  static constexpr size_t max_parameter_bytes = 4000;  // CUDA takes 4 KiB everywhere
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

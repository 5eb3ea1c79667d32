// Widens the operands of a convolution of 16-bit numbers to f32, with room for its sums as f32, in scratch of the step: for a bias that
// must be added to sums that were not rounded. No engine of cuDNN 9.19 writes f32 from 16-bit operands. Letting the engine add to a bias
// already stored in the output (beta) does not work either: NVIDIA does not state that the sums are not rounded before, and engines that
// transpose the output or pad its channels ask for a workspace in which they store it as 16-bit numbers.
#pragma once

#include <cstdint>

#include "kernels/common/pointwise_launch.h"

namespace heddle::cuda {

// Returns the tensor with f32 elements, in the same order.
heddle_tensor widened(const heddle_tensor& tensor);

class WidenedConvolution {
 public:
  static constexpr uint64_t alignment = 256;  // of the scratch, and of each part

  // [compile]
  Status prepare(const Device& device, const heddle_tensor& x, const heddle_tensor& w, const heddle_tensor& y);
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // [run] Converts inputs 0 and 1 of the node.
  Status start(const GpuKernel& kernel, const RunContext& context, char* scratch) const;
  void* operand(char* scratch, uint32_t input) const { return scratch + operand_at_[input]; }
  void* sums(char* scratch) const { return scratch + sums_at_; }
  uint64_t sums_bytes() const { return sums_bytes_; }

 private:
  PointwiseLaunch conversions_[2];
  uint64_t operand_at_[2] = {}, sums_at_ = 0, sums_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace heddle::cuda

// Applies the epilogue ops that a library's call does not apply itself: one pointwise launch over the output, in place.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/pointwise_launch.h"

namespace heddle::cuda {

// One operator fused after a node, of "acc" and "operand" (heddle_epilogue_op).
struct EpilogueOp {
  std::string text;
  int32_t input = -1;  // number of the node's input that is the operand
  int32_t kind = HEDDLE_OPERAND_NONE;
};

// Returns the epilogue ops that the host fused into the node.
std::vector<EpilogueOp> epilogue_ops_of(const CreateContext& context);

class EpilogueKernel {
 public:
  static constexpr size_t max_operands = 12;

  // Returns true if the text of each epilogue op can be computed and each operand is of one of `kinds`.
  static bool takes(const CreateContext& context, std::initializer_list<int32_t> kinds);
  // [compile] Operands broadcast to the output; per-channel operands lie along its dimension 1.
  Status prepare(const Device& device, const std::vector<EpilogueOp>& epilogue_ops, const heddle_tensor& output,
                 const heddle_tensor* const* inputs);
  // [run] Does nothing if there are no epilogue ops.
  Status start(const GpuKernel& kernel, const RunContext& context) const;

 private:
  bool empty_ = true;
  std::vector<uint32_t> operands_;  // inputs of the node
  PointwiseLaunch launch_;
};

}  // namespace heddle::cuda

#include "kernels/common/combination.h"

#include <algorithm>

namespace heddle::cuda {

ElementRange share_of(const heddle_tensor& x, uint32_t member, uint32_t members) {
  constexpr uint64_t boundary_bytes = 256;
  const auto boundary = static_cast<int64_t>(boundary_bytes / byte_width(x.dtype));
  const int64_t step = blocks_of(blocks_of(x.element_count, members), boundary) * boundary;
  const int64_t first = std::min(member * step, x.element_count);
  return {first, std::min(step, x.element_count - first)};
}

Status Combination::prepare(const Device& device, Reduction reduction, const heddle_tensor& x, uint32_t member, uint32_t members,
                            const CombinedPart& part) {
  part_ = part;
  if (part.range.count == 0) return {};
  CombineLaunches launches;
  launches.reduction = reduction;
  launches.parts = members;
  launches.self = part.has_own_too ? int64_t{-1} : int64_t{member};
  heddle_tensor elements = x;
  elements.element_count = part.range.count;
  const heddle_tensor* const tensors[] = {&elements, &elements};
  const Operands operands = {tensors, tensors, 2, 1, nullptr};
  KernelSource source;
  HEDDLE_PLUGIN_CHECK(launches.choose(operands, false, &source));
  HEDDLE_PLUGIN_CHECK(Program::make(device, source.text, source.contract, &program_));
  HEDDLE_PLUGIN_CHECK(program_->kernel(source.entries[0].c_str(), &kernel_));
  const auto plan = std::make_unique<LaunchPlan>();
  HEDDLE_PLUGIN_CHECK(launches.plan(operands, plan.get()));
  HEDDLE_PLUGIN_CHECK(plan->check());
  launch_ = plan->launches[0];
  return {};
}

Status Combination::enqueue(const GpuKernel& kernel, const RunContext& context, uint32_t tensor, void* to) const {
  if (part_.range.count == 0) return {};
  heddle_tensor own = *context.inputs[tensor], others = own, y = *context.outputs[tensor];
  own.data = element_at(own, part_.range.first);
  // The kernel looks for part i at i - 1 if it comes after the own part, as all do where none is the own one.
  others.data = scratch(context) + (part_.has_own_too ? bytes_of(own, part_.range.count) : 0);
  y.data = to;
  const heddle_tensor* const inputs[] = {&own, &others};
  heddle_tensor* const outputs[] = {&y};
  RunContext launched = context;
  launched.inputs = inputs;
  launched.outputs = outputs;
  return start_launch(kernel, launched, launch_, kernel_);
}

}  // namespace heddle::cuda

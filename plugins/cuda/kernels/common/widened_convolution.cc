#include "kernels/common/widened_convolution.h"

namespace heddle::cuda {

heddle_tensor widened(const heddle_tensor& tensor) {
  heddle_tensor wide = tensor;
  wide.dtype = HEDDLE_F32;
  wide.byte_size = static_cast<uint64_t>(tensor.element_count) * sizeof(float);
  return wide;
}

Status WidenedConvolution::prepare(const Device& device, const heddle_tensor& x, const heddle_tensor& w, const heddle_tensor& y) {
  expression::Program same;
  same.input("x");
  scratch_bytes_ = 0;
  const auto place = [&](uint64_t bytes) {
    const uint64_t at = scratch_bytes_;
    scratch_bytes_ += (bytes + alignment - 1) / alignment * alignment;
    return at;
  };
  const heddle_tensor* const operands[] = {&x, &w};
  for (int i = 0; i < 2; ++i) {
    const heddle_tensor wide = widened(*operands[i]);
    operand_at_[i] = place(wide.byte_size);
    HEDDLE_PLUGIN_CHECK(conversions_[i].prepare(device, same, wide, &operands[i], {HEDDLE_F32, false}));
  }
  sums_bytes_ = widened(y).byte_size;
  sums_at_ = place(sums_bytes_);
  return {};
}

Status WidenedConvolution::start(const GpuKernel& kernel, const RunContext& context, char* scratch) const {
  for (uint32_t i = 0; i < 2; ++i) {
    const void* const from = context.inputs[i]->data;
    HEDDLE_PLUGIN_CHECK(conversions_[i].start(kernel, context, operand(scratch, i), &from));
  }
  return {};
}

}  // namespace heddle::cuda

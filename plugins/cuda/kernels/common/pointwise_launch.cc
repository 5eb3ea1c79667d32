#include "kernels/common/pointwise_launch.h"

#include <algorithm>
#include <cstring>

namespace heddle::cuda {
namespace {

using operators::Region;

int64_t address(const void* pointer) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace

Status PointwiseLaunch::prepare(const Device& device, const expression::Program& program, const heddle_tensor& output,
                                const heddle_tensor* const* inputs, const Conversion& conversion) {
  const size_t n = program.inputs.size();
  shape_ = {};
  shape_.arithmetic = conversion.arithmetic;
  shape_.converts = conversion.converts;
  shape_.output = output.dtype;
  for (size_t i = 0; i < n; ++i) shape_.inputs.push_back(inputs[i]->dtype);
  std::vector<Region::Input> storage(2 * n);
  Region region;
  HEDDLE_PLUGIN_CHECK(operators::make_region(output, inputs, static_cast<uint32_t>(n), storage.data(), &region));
  choose(region);
  fill(region);
  if (words_.size() * sizeof(int64_t) > max_parameter_bytes)
    return unsupported("a program of " + std::to_string(n) + " inputs, whose addresses and strides are more than a launch takes");
  std::string source;
  HEDDLE_PLUGIN_CHECK(pointwise_source(program, shape_, "heddle_pointwise", &source));
  HEDDLE_PLUGIN_CHECK(Program::make(device, source, false, &program_));
  return program_->kernel("heddle_pointwise", &kernel_);
}

Status PointwiseLaunch::start(const GpuKernel& kernel, const RunContext& context, void* output, const void* const* inputs) const {
  if (words_[count_at_] == 0) return {};
  int64_t words[max_parameter_bytes / sizeof(int64_t)];
  std::memcpy(words, words_.data(), words_.size() * sizeof(int64_t));
  words[0] = address(output);
  for (size_t i = 0; i < shape_.inputs.size(); ++i) words[1 + i] = address(inputs[i]);
  const int64_t groups = words_[count_at_] / shape_.width + (words_[count_at_] % shape_.width > 0 ? 1 : 0);
  return kernel.start_kernel(context, kernel_, {kernel.blocks_for(groups, pointwise_threads), pointwise_threads}, words);
}

// Chooses how inputs are read for the output, and how many elements a thread takes at once: 16 bytes of the widest, if rows are whole
// groups. Addresses that a plan assigns are aligned to 64 bytes.
void PointwiseLaunch::choose(const Region& region) {
  const size_t n = shape_.inputs.size();
  size_t widest = byte_width(shape_.output);
  for (const heddle_dtype dtype : shape_.inputs) widest = std::max(widest, byte_width(dtype));
  shape_.width = static_cast<int>(16 / widest);
  shape_.access.assign(n, Access::linear);
  shape_.rank = 0;
  const int64_t inner = region.dims[region.rank - 1];
  for (size_t i = 0; i < n; ++i) {
    const Region::Input& input = region.inputs[i];
    if (input.linear) continue;
    if (input.scalar) {
      shape_.access[i] = Access::scalar;
      continue;
    }
    const int64_t stride = input.strides[region.rank - 1];
    shape_.access[i] = stride == 0 ? Access::repeated : stride == 1 ? Access::rows : Access::strided;
    shape_.rank = region.rank;
  }
  // Each group must lie in one row, and each row of an input that is read by groups must begin at a whole one.
  while (shape_.rank > 0 && shape_.width > 1 && !rows_are_groups(region, inner)) shape_.width /= 2;
  shape_.wide_index = region.element_count > (int64_t{1} << 31) - 1;
  for (size_t i = 0; i < n; ++i)
    for (int k = 0; k < region.rank; ++k)
      shape_.wide_index = shape_.wide_index || region.inputs[i].strides[k] * region.dims[k] > (int64_t{1} << 31) - 1;
}

bool PointwiseLaunch::rows_are_groups(const Region& region, int64_t inner) const {
  if (inner % shape_.width != 0) return false;
  for (size_t i = 0; i < shape_.inputs.size(); ++i)
    for (int k = 0; k + 1 < region.rank && shape_.access[i] == Access::rows; ++k)
      if (region.inputs[i].strides[k] % shape_.width != 0) return false;
  return true;
}

void PointwiseLaunch::fill(const Region& region) {
  words_.assign(1 + shape_.inputs.size(), 0);
  count_at_ = words_.size();
  words_.push_back(region.element_count);
  for (int k = 0; k < shape_.rank; ++k) words_.push_back(region.dims[k]);
  for (size_t i = 0; i < shape_.inputs.size(); ++i)
    for (int k = 0; k < shape_.rank && shape_.access[i] >= Access::repeated; ++k) words_.push_back(region.inputs[i].strides[k]);
}

}  // namespace heddle::cuda

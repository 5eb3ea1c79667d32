// One collective of GPUs by NCCL, as one member of its group sees it: where its elements are, what it sends and receives, and the kernel
// that combines what has come.
#pragma once

#include <algorithm>
#include <memory>

#include "generate/operators/combine_launches.h"
#include "kernels/common/planned_kernel.h"
#include "shared/ranks/device_collectives.h"

namespace heddle::cuda::nccl {

using operators::DeviceCollectives;
using operators::Parts;
using operators::Reduction;

inline char* bytes_at(const void* data, uint64_t offset) {
  return static_cast<char*>(const_cast<void*>(data)) + offset;
}

// The place of a device among the participants, as it is known before NCCL connects them.
struct Place {
  uint32_t participants = 1, own = 0;
  bool sums_of_library = false;
  Place(const PrepareContext& context, const operators::DeviceLibrary& library)
      : participants(std::max<uint32_t>(context.group_size(), 1) * std::max<uint32_t>(context.rank_count(), 1)),
        own(context.rank() * context.group_size() + context.group_index()),
        sums_of_library(library.sums_of_library) {}
  Place() = default;
};

// Elements of a tensor.
struct Range {
  int64_t first = 0, count = 0;
};

// The elements of a tensor of `count` that a participant combines.
inline Range share_of(int64_t count, heddle_dtype dtype, uint32_t participant, uint32_t participants) {
  constexpr int64_t boundary_bytes = 256;
  const int64_t boundary = std::max<int64_t>(boundary_bytes / static_cast<int64_t>(byte_width(dtype)), 1);
  const int64_t step = blocks_of(blocks_of(count, participants), boundary) * boundary;
  const int64_t first = std::min(participant * step, count);
  return {first, std::min(step, count - first)};
}

// A collective of one tensor, as one member of the group sees it.
struct Exchange {
  DeviceCollectives& nccl;
  const GpuKernel& kernel;
  const RunContext& context;
  uint32_t member, tensor;
  Place place;
  const heddle_tensor& x() const { return *context.inputs[tensor]; }
  heddle_tensor& y() const { return *context.outputs[tensor]; }
  uint64_t bytes(int64_t elements) const { return static_cast<uint64_t>(elements) * byte_width(x().dtype); }
  // Sends to each participant the bytes at `from(participant)`, and receives those of each at `to(participant)`.
  template <class From, class To>
  void swap(const From& from, const To& to) const {
    for (uint32_t other = 0; other < place.participants; ++other) {
      if (other == place.own) continue;
      if (const auto [data, count] = from(other); count > 0) nccl.send(member, data, count, other);
      if (const auto [data, count] = to(other); count > 0) nccl.receive(member, data, count, other);
    }
  }
};
struct Bytes {
  void* data;
  uint64_t count;
};

// The arithmetic of one tensor: the elements of a range, of all participants.
class Combination {
 public:
  // [prepare] `gathered`: the elements of all lie one after the other in the step's scratch, from `offset` on; else this member's are in
  // its tensor, and those of the others there, in order.
  Status prepare(const Device& device, const Place& place, Reduction reduction, const heddle_tensor& x, Range range, bool gathered,
                 uint64_t offset) {
    range_ = range;
    gathered_ = gathered;
    offset_ = offset;
    if (range.count == 0) return {};
    CombineLaunches launches;
    launches.reduction = reduction;
    launches.parts = place.participants;
    launches.self = gathered ? int64_t{-1} : int64_t{place.own};
    heddle_tensor part = x;
    part.element_count = range.count;
    const heddle_tensor* const tensors[] = {&part, &part};
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
  const Range& range() const { return range_; }
  char* scratch(const Exchange& e) const { return bytes_at(e.context.scratch, offset_); }
  // [run] Writes the result of the range to `to`.
  Status enqueue(const Exchange& e, void* to) const {
    if (range_.count == 0) return {};
    heddle_tensor own = e.x(), others = e.x(), y = e.y();
    own.data = bytes_at(own.data, e.bytes(range_.first));
    // The kernel looks for part i at i - 1 if it comes after the own part, as all do that are gathered.
    others.data = scratch(e) + (gathered_ ? e.bytes(range_.count) : 0);
    y.data = to;
    const heddle_tensor* const inputs[] = {&own, &others};
    heddle_tensor* const outputs[] = {&y};
    RunContext context = e.context;
    context.inputs = inputs;
    context.outputs = outputs;
    return start_launch(e.kernel, context, launch_, kernel_);
  }

 private:
  Range range_;
  bool gathered_ = false;
  uint64_t offset_ = 0;
  Launch launch_;
  std::shared_ptr<const Program> program_;
  cudaKernel_t kernel_ = nullptr;
};

}  // namespace heddle::cuda::nccl

// One collective of GPUs by NCCL, as one member of its group sees it: where its elements are, and what it sends and receives.
#pragma once

#include <algorithm>

#include "kernels/common/combination.h"
#include "shared/ranks/device_collectives.h"

namespace heddle::cuda::nccl {

using operators::DeviceCollectives;
using operators::Parts;

// The place of a device among the participants, as it is known before NCCL connects them.
class Place {
 public:
  Place() = default;
  Place(const PrepareContext& context, const operators::DeviceLibrary& library)
      : size_(std::max<uint32_t>(context.group_size(), 1) * std::max<uint32_t>(context.rank_count(), 1)),
        index_(context.rank() * context.group_size() + context.group_index()),
        sums_of_library_(library.sums_of_library) {}
  uint32_t size() const { return size_; }
  uint32_t index() const { return index_; }
  bool sums_of_library() const { return sums_of_library_; }

 private:
  uint32_t size_ = 1, index_ = 0;
  bool sums_of_library_ = false;
};

// A collective of one tensor, as one member of the group sees it.
struct Exchange {
  DeviceCollectives& nccl;
  const GpuKernel& kernel;
  const RunContext& context;
  uint32_t member, tensor;
  Place place;
  const heddle_tensor& x() const { return *context.inputs[tensor]; }
  heddle_tensor& y() const { return *context.outputs[tensor]; }
  uint64_t bytes(int64_t elements) const { return bytes_of(x(), elements); }
  // Sends to each participant the bytes at `from(participant)`, and receives those of each at `to(participant)`.
  template <class From, class To>
  void swap(const From& from, const To& to) const {
    for (uint32_t other = 0; other < place.size(); ++other) {
      if (other == place.index()) continue;
      if (const auto [data, count] = from(other); count > 0) nccl.send(member, data, count, other);
      if (const auto [data, count] = to(other); count > 0) nccl.receive(member, data, count, other);
    }
  }
};
struct Bytes {
  void* data;
  uint64_t count;
};

}  // namespace heddle::cuda::nccl

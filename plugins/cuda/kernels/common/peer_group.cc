#include "kernels/common/peer_group.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "device/current_device.h"

namespace heddle::cuda {

using plugin::Status;

Peers::Peers(const plugin::ResourceRequest& request) {
  if (request.size() > 1)
    throw std::invalid_argument("communicator \"" + std::string(request.communicator()) + "\" has " + std::to_string(request.size()) +
                                " ranks: GPUs of several ranks need NCCL, which is not here (heddle devices says why): install it, or give "
                                "the operator the device \"cpu\"");
}

GroupMember::~GroupMember() {
  if (reached_ && !device_->loss) Api::get().cudaEventDestroy(reached_);
}

Status GroupMember::prepare(Device& device, const plugin::PrepareContext& context) {
  device_ = &device;
  size_ = std::max<uint32_t>(context.group_size(), 1);
  index_ = context.group_index();
  if (context.rank_count() > 1) return plugin::unsupported("GPUs of several ranks need NCCL, which is not here; heddle devices says why");
  if (size_ > PeerGroup::max_members) return plugin::unsupported("a group of " + std::to_string(size_) + " devices");
  if (size_ == 1 || reached_) return {};
  const CurrentDevice current(device.index);
  HEDDLE_PLUGIN_CHECK(current.status());
  HEDDLE_CUDA_CALL(cudaEventCreateWithFlags, &reached_, cudaEventDisableTiming);
  return {};
}

template <class Work>
Status PeerGroup::enqueue(uint32_t member, const Work& work) const {
  const auto stream = static_cast<cudaStream_t>(parts_[member]->stream);
  return enqueue_on(*members_[member]->device_, stream, [&] { return work(stream); });
}

Status PeerGroup::reach(uint32_t member) const {
  return enqueue(member, [&](cudaStream_t stream) -> Status {
    HEDDLE_CUDA_CALL(cudaEventRecord, members_[member]->reached_, stream);
    return {};
  });
}

Status PeerGroup::wait(uint32_t member, uint32_t other) const {
  return enqueue(member, [&](cudaStream_t stream) -> Status {
    HEDDLE_CUDA_CALL(cudaStreamWaitEvent, stream, members_[other]->reached_, 0);
    return {};
  });
}

// Member 0 waits for all others, and they for it: that takes fewer calls than if each waited for each.
Status PeerGroup::meet() const {
  for (uint32_t i = 1; i < size(); ++i) HEDDLE_PLUGIN_CHECK(reach(i));
  for (uint32_t i = 1; i < size(); ++i) HEDDLE_PLUGIN_CHECK(wait(0, i));
  if (size() > 1) HEDDLE_PLUGIN_CHECK(reach(0));
  for (uint32_t i = 1; i < size(); ++i) HEDDLE_PLUGIN_CHECK(wait(i, 0));
  return {};
}

Status PeerGroup::enter(uint32_t member) {
  own_ = member;
  return EnteredDevice::enter(members_[member]->device_->index);
}

Status PeerGroup::copy(void* to, uint32_t member, const void* from, uint64_t bytes) const {
  if (to == from || bytes == 0) return {};
  return enqueue(own_, [&](cudaStream_t stream) -> Status {
    if (member == own_)
      HEDDLE_CUDA_CALL(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    else
      HEDDLE_CUDA_CALL(cudaMemcpyPeerAsync, to, members_[own_]->device_->index, from, members_[member]->device_->index, bytes, stream);
    return {};
  });
}

}  // namespace heddle::cuda

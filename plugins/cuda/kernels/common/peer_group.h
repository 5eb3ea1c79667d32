// The members of a group (HEDDLE_KERNEL_GROUP) of this process: they read each other's memory, each on its own stream.
#pragma once

#include <array>
#include <cstdint>

#include "device/cuda_device.h"
#include "heddle/op.h"
#include "shared/collective_parts.h"

namespace heddle::cuda {

using operators::Parts;

// The object of resource "cuda.peers": a communicator of devices of this process. Throws std::invalid_argument if it has several ranks.
class Peers {
 public:
  explicit Peers(const plugin::ResourceRequest& request);
};

// A member keeps its place in the group, and its device, between runs. Each kernel has one.
class GroupMember {
 public:
  GroupMember() = default;
  ~GroupMember();
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;
  // [prepare] `device` must outlive this.
  plugin::Status prepare(Device& device, const plugin::PrepareContext& context);
  uint32_t size() const { return size_; }    // of the group
  uint32_t index() const { return index_; }  // in the group

 private:
  friend class PeerGroup;
  Device* device_ = nullptr;
  cudaEvent_t reached_ = nullptr;  // a place on its stream that others wait for; null in a group of one
  uint32_t size_ = 1, index_ = 0;
};

// The group of a run: one thread enqueues the work of all members, of one after the other.
class PeerGroup {
 public:
  static constexpr size_t max_members = 254;  // as many as a plan has devices; text/combine.cuh combines up to 255 parts

  explicit PeerGroup(Parts parts) : parts_(parts) {}
  void set_member(uint32_t index, const GroupMember& member) { members_[index] = &member; }

  uint32_t size() const { return static_cast<uint32_t>(parts_.size()); }
  const heddle_tensor& input(uint32_t member, uint32_t tensor) const { return *parts_[member]->inputs[tensor]; }
  const heddle_tensor& output(uint32_t member, uint32_t tensor) const { return *parts_[member]->outputs[tensor]; }

  // Lets each stream go on only when all have come so far. Then what members wrote before may be read, and what they read overwritten.
  plugin::Status meet() const;
  // Makes `member` the one whose work is enqueued next, on its device and stream.
  plugin::Status enter(uint32_t member);
  uint32_t own() const { return own_; }
  const plugin::RunContext& context() const { return *parts_[own_]; }
  // Copies from the memory of a member to that of the own one. Does nothing if both are the same place.
  plugin::Status copy(void* to, uint32_t member, const void* from, uint64_t bytes) const;

 private:
  plugin::Status reach(uint32_t member) const;
  plugin::Status wait(uint32_t member, uint32_t other) const;
  template <class Work>
  plugin::Status enqueue(uint32_t member, const Work& work) const;

  const Parts parts_;
  std::array<const GroupMember*, max_members> members_;
  uint32_t own_ = 0;
};

}  // namespace heddle::cuda

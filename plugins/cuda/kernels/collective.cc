// Implements the collectives on devices of this process, by copies between them: AllReduce, Reduce, ReduceScatter, Broadcast, AllGather,
// AllToAll and Barrier. A member combines the elements that it owns after it has copied those of the others; all members have the bits that
// the host's collectives give.
#include <algorithm>
#include <utility>

#include "kernels/common/combination.h"
#include "kernels/common/group_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

// The share of a member in AllReduce. A small tensor has one owner, since each copy takes some microseconds.
ElementRange owned_by(uint32_t member, uint32_t members, const heddle_tensor& x, uint32_t tensor) {
  constexpr uint64_t small_bytes = 16 << 10;
  if (bytes_of(x, x.element_count) > small_bytes) return share_of(x, member, members);
  return tensor % members == member ? ElementRange{0, x.element_count} : ElementRange{};
}

class PeerReducing : public Reducing {
 protected:
  // owned(x, tensor): what this member owns of a tensor.
  template <class Owned>
  Status prepare_owned(const GroupMember& member, const Device& device, PrepareContext& context, const Owned& owned) {
    return prepare_each(context, [&](const heddle_tensor& x, uint32_t tensor, Combination& combination, uint64_t* scratch) -> Status {
      const ElementRange range = owned(x, tensor);
      if (member.size() == 1) return {};
      *scratch = std::max(*scratch, (member.size() - 1) * bytes_of(x, range.count));
      return combination.prepare(device, reduction(), x, member.index(), member.size(), {range});
    });
  }
  // [run] Brings what the others have of the range that the own member owns, and writes the combined elements to `to`.
  Status combine(const PeerGroup& peers, const GpuKernel& kernel, uint32_t tensor, char* to) const {
    const heddle_tensor& own = peers.input(peers.own(), tensor);
    if (peers.size() == 1) return peers.copy(to, peers.own(), own.data, own.byte_size);
    const ElementRange& range = combination(tensor).range();
    if (range.count == 0) return {};
    const uint64_t bytes = bytes_of(own, range.count);
    char* place = combination(tensor).scratch(peers.context());
    for (uint32_t member = 0; member < peers.size(); ++member) {
      if (member == peers.own()) continue;
      HEDDLE_PLUGIN_CHECK(peers.copy(place, member, element_at(peers.input(member, tensor), range.first), bytes));
      place += bytes;
    }
    return combination(tensor).enqueue(kernel, peers.context(), tensor, to);
  }
};

// Phase 0 combines what the member owns, phase 1 copies what the others own.
class AllReduce : public PeerReducing {
 public:
  static constexpr uint32_t phases = 2;
  Status prepare(const GroupMember& member, const Device& device, PrepareContext& context) {
    return prepare_owned(member, device, context,
                         [&](const heddle_tensor& x, uint32_t tensor) { return owned_by(member.index(), member.size(), x, tensor); });
  }
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t phase, uint32_t tensor) const {
    const heddle_tensor& y = peers.output(peers.own(), tensor);
    if (phase == 0) return combine(peers, kernel, tensor, element_at(y, combination(tensor).range().first));
    for (uint32_t member = 0; member < peers.size(); ++member) {
      const ElementRange range = owned_by(member, peers.size(), y, tensor);
      if (member == peers.own() || range.count == 0) continue;
      HEDDLE_PLUGIN_CHECK(
          peers.copy(element_at(y, range.first), member, element_at(peers.output(member, tensor), range.first), bytes_of(y, range.count)));
    }
    return {};
  }
};

// Phase 0 combines all on the root; in phase 1 no one reads the inputs of the others any more, which may be their outputs.
class Reduce : public CombiningWith<PeerReducing, Rooted> {
 public:
  static constexpr uint32_t phases = 2;
  Status prepare(const GroupMember& member, const Device& device, PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(Rooted::prepare(member, device, context));
    return prepare_owned(member, device, context, [&](const heddle_tensor& x, uint32_t) {
      return member.index() == root() ? ElementRange{0, x.element_count} : ElementRange{};
    });
  }
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t phase, uint32_t tensor) const {
    const heddle_tensor& y = peers.output(peers.own(), tensor);
    const bool is_root = peers.own() == root();
    if (phase == 0) return is_root ? combine(peers, kernel, tensor, element_at(y, 0)) : Status();
    return is_root || y.byte_size == 0 ? Status() : kernel.fill_zero(peers.context(), y.data, y.byte_size);
  }
};

class ReduceScatter : public CombiningWith<PeerReducing, Sized> {
 public:
  static constexpr uint32_t phases = 1;
  Status prepare(const GroupMember& member, const Device& device, PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(Sized::prepare(member, device, context));
    return prepare_owned(member, device, context, [&](const heddle_tensor& x, uint32_t) {
      const int64_t block = x.element_count / member.size();
      return ElementRange{member.index() * block, block};
    });
  }
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t, uint32_t tensor) const {
    return combine(peers, kernel, tensor, element_at(peers.output(peers.own(), tensor), 0));
  }
};

// The operations below only copy.
class Broadcast : public Rooted {
 public:
  static constexpr uint32_t phases = 1;
  Status enqueue(const PeerGroup& peers, const GpuKernel&, uint32_t, uint32_t tensor) const {
    const heddle_tensor& x = peers.input(root(), tensor);
    return peers.copy(peers.output(peers.own(), tensor).data, root(), x.data, x.byte_size);
  }
};

class Barrier {
 public:
  static constexpr uint32_t phases = 1;
  static Status create(const CreateContext&) { return {}; }
  static Status prepare(const GroupMember&, const Device&, PrepareContext&) { return {}; }
  static Status enqueue(const PeerGroup& peers, const GpuKernel&, uint32_t, uint32_t tensor) {
    const heddle_tensor& x = peers.input(peers.own(), tensor);
    return peers.copy(peers.output(peers.own(), tensor).data, peers.own(), x.data, x.byte_size);
  }
};

// Each output has a block of each member, in their order: its input, or with `divided` the one of its input's blocks that is meant for the
// output's member.
template <bool divided>
class Gathering : public Sized {
 public:
  static constexpr uint32_t phases = 1;
  static Status enqueue(const PeerGroup& peers, const GpuKernel&, uint32_t, uint32_t tensor) {
    const heddle_tensor& y = peers.output(peers.own(), tensor);
    const uint64_t block = y.byte_size / peers.size();
    for (uint32_t member = 0; member < peers.size(); ++member)
      HEDDLE_PLUGIN_CHECK(peers.copy(bytes_at(y.data, member * block), member,
                                     bytes_at(peers.input(member, tensor).data, divided ? peers.own() * block : 0), block));
    return {};
  }
};

template <class Operation>
Op on_peers(const char* name) {
  return std::move(Op(name, "heddle", 1).kernels_only().kernel<GroupKernel<Operation>>("cuda"));
}

}  // namespace

void add_collective(Builder& plugin) {
  plugin.resource<Peers>("cuda.peers", HEDDLE_SCOPE_COMMUNICATOR, 1);
  plugin.add(on_peers<AllReduce>("AllReduce"));
  plugin.add(on_peers<Reduce>("Reduce"));
  plugin.add(on_peers<ReduceScatter>("ReduceScatter"));
  plugin.add(on_peers<Broadcast>("Broadcast"));
  plugin.add(on_peers<Barrier>("Barrier"));
  plugin.add(on_peers<Gathering<false>>("AllGather"));
  plugin.add(on_peers<Gathering<true>>("AllToAll"));
}

}  // namespace heddle::cuda

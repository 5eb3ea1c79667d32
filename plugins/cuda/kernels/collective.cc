// Implements the collectives on devices of this process, by copies between them: AllReduce, Reduce, ReduceScatter, Broadcast, AllGather,
// AllToAll and Barrier. A member combines the elements that it owns after it has copied those of the others; all members have the bits that
// the host's collectives give.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "generate/operators/combine_launches.h"
#include "kernels/common/group_kernel.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

char* bytes_at(const heddle_tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data) + element * static_cast<int64_t>(byte_width(tensor.dtype));
}

// Elements of a tensor that one member owns, and combines.
struct Share {
  int64_t first = 0, count = 0;
};

// Divides a tensor of AllReduce among the members. A small one has one owner, since each copy takes some microseconds.
Share share_of(const heddle_tensor& x, uint32_t tensor, uint32_t member, uint32_t members) {
  constexpr int64_t small_bytes = 16 << 10, boundary_bytes = 256;
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  if (x.element_count * width <= small_bytes) return tensor % members == member ? Share{0, x.element_count} : Share{};
  const int64_t boundary = boundary_bytes / width;
  const int64_t step = blocks_of(blocks_of(x.element_count, members), boundary) * boundary;
  const int64_t first = std::min(member * step, x.element_count);
  return {first, std::min(step, x.element_count - first)};
}

// The arithmetic of one tensor: the share of each other member is copied to scratch, in order, and combined with the own one.
class Combination {
 public:
  // [prepare] `x`: the tensor.
  Status prepare(const Device& device, const GroupMember& member, operators::Reduction reduction, const heddle_tensor& x, Share share) {
    share_ = share;
    if (share.count == 0 || member.size() == 1) return {};
    CombineLaunches launches;
    launches.reduction = reduction;
    launches.parts = member.size();
    launches.self = member.index();
    heddle_tensor part = x;
    part.element_count = share.count;
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
    scratch_bytes_ = static_cast<uint64_t>(member.size() - 1) * static_cast<uint64_t>(share.count) * byte_width(x.dtype);
    return {};
  }
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  const Share& share() const { return share_; }
  // [run] Writes the combined elements of the share to output `tensor`, from element `at` on.
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t tensor, int64_t at) const {
    if (share_.count == 0) return {};
    heddle_tensor own = peers.input(peers.own(), tensor), others = own, y = peers.output(peers.own(), tensor);
    const auto bytes = static_cast<uint64_t>(share_.count) * byte_width(own.dtype);
    own.data = bytes_at(own, share_.first);
    y.data = bytes_at(y, at);
    if (peers.size() == 1) return peers.copy(y.data, peers.own(), own.data, bytes);
    others.data = peers.context().scratch;
    auto* to = static_cast<char*>(others.data);
    for (uint32_t member = 0; member < peers.size(); ++member) {
      if (member == peers.own()) continue;
      HEDDLE_PLUGIN_CHECK(peers.copy(to, member, bytes_at(peers.input(member, tensor), share_.first), bytes));
      to += bytes;
    }
    const heddle_tensor* const inputs[] = {&own, &others};
    heddle_tensor* const outputs[] = {&y};
    RunContext context = peers.context();
    context.inputs = inputs;
    context.outputs = outputs;
    return start_launch(kernel, context, launch_, kernel_);
  }

 private:
  Share share_;
  Launch launch_;
  std::shared_ptr<const Program> program_;
  cudaKernel_t kernel_ = nullptr;
  uint64_t scratch_bytes_ = 0;
};

// The common part of the operations that combine.
class Reducing {
 public:
  Status create(const CreateContext& context) { return operators::read_reduction(context.attributes, &reduction_); }

 protected:
  // share(x, tensor): what this member owns of a tensor.
  template <class ShareOf>
  Status prepare_shares(const GroupMember& member, const Device& device, PrepareContext& context, const ShareOf& share) {
    combinations_ = std::vector<Combination>(context.input_count());
    uint64_t scratch = 0;
    for (uint32_t tensor = 0; tensor < context.input_count(); ++tensor) {
      const heddle_tensor& x = *context.input(tensor);
      HEDDLE_PLUGIN_CHECK(combinations_[tensor].prepare(device, member, reduction_, x, share(x, tensor)));
      scratch = std::max(scratch, combinations_[tensor].scratch_bytes());
    }
    if (scratch > context.scratch_budget())
      return unsupported("it needs " + std::to_string(scratch) + " bytes of scratch, of which it may have " +
                         std::to_string(context.scratch_budget()));
    context.set_scratch(scratch);
    return {};
  }
  const Combination& combination(uint32_t tensor) const { return combinations_[tensor]; }

 private:
  operators::Reduction reduction_ = operators::Reduction::sum;
  std::vector<Combination> combinations_;  // by tensor
};

// Phase 0 combines what the member owns, phase 1 copies what the others own.
class AllReduce : public Reducing {
 public:
  static constexpr uint32_t phases = 2;
  Status prepare(const GroupMember& member, const Device& device, PrepareContext& context) {
    return prepare_shares(member, device, context,
                          [&](const heddle_tensor& x, uint32_t tensor) { return share_of(x, tensor, member.index(), member.size()); });
  }
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t phase, uint32_t tensor) const {
    const heddle_tensor& y = peers.output(peers.own(), tensor);
    if (phase == 0) return combination(tensor).enqueue(peers, kernel, tensor, combination(tensor).share().first);
    for (uint32_t member = 0; member < peers.size(); ++member) {
      const Share share = share_of(y, tensor, member, peers.size());
      if (member == peers.own() || share.count == 0) continue;
      HEDDLE_PLUGIN_CHECK(peers.copy(bytes_at(y, share.first), member, bytes_at(peers.output(member, tensor), share.first),
                                     static_cast<uint64_t>(share.count) * byte_width(y.dtype)));
    }
    return {};
  }
};

// Phase 0 combines all on the root; in phase 1 no one reads the inputs of the others any more, which may be their outputs.
class Reduce : public Reducing {
 public:
  static constexpr uint32_t phases = 2;
  Status create(const CreateContext& context) {
    root_ = context.attributes.i("root");
    return Reducing::create(context);
  }
  Status prepare(const GroupMember& member, const Device& device, PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(operators::check_root(member.size(), root_));
    return prepare_shares(member, device, context, [&](const heddle_tensor& x, uint32_t) {
      return member.index() == root_ ? Share{0, x.element_count} : Share{};
    });
  }
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t phase, uint32_t tensor) const {
    const heddle_tensor& y = peers.output(peers.own(), tensor);
    const bool is_root = peers.own() == root_;
    if (phase == 0) return is_root ? combination(tensor).enqueue(peers, kernel, tensor, 0) : Status();
    return is_root || y.byte_size == 0 ? Status() : kernel.fill_zero(peers.context(), y.data, y.byte_size);
  }

 private:
  int64_t root_ = 0;
};

class ReduceScatter : public Reducing {
 public:
  static constexpr uint32_t phases = 1;
  Status create(const CreateContext& context) {
    size_ = context.attributes.i("size");
    return Reducing::create(context);
  }
  Status prepare(const GroupMember& member, const Device& device, PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(operators::check_size(member.size(), size_));
    return prepare_shares(member, device, context, [&](const heddle_tensor& x, uint32_t) {
      const int64_t block = x.element_count / member.size();
      return Share{member.index() * block, block};
    });
  }
  Status enqueue(const PeerGroup& peers, const GpuKernel& kernel, uint32_t, uint32_t tensor) const {
    return combination(tensor).enqueue(peers, kernel, tensor, 0);
  }

 private:
  int64_t size_ = 0;
};

// The operations below only copy.
class Broadcast {
 public:
  static constexpr uint32_t phases = 1;
  Status create(const CreateContext& context) { return root_ = context.attributes.i("root"), Status(); }
  Status prepare(const GroupMember& member, const Device&, PrepareContext&) const { return operators::check_root(member.size(), root_); }
  Status enqueue(const PeerGroup& peers, const GpuKernel&, uint32_t, uint32_t tensor) const {
    const auto root = static_cast<uint32_t>(root_);
    const heddle_tensor& x = peers.input(root, tensor);
    return peers.copy(peers.output(peers.own(), tensor).data, root, x.data, x.byte_size);
  }

 private:
  int64_t root_ = 0;
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
class Gathering {
 public:
  static constexpr uint32_t phases = 1;
  Status create(const CreateContext& context) { return size_ = context.attributes.i("size"), Status(); }
  Status prepare(const GroupMember& member, const Device&, PrepareContext&) const { return operators::check_size(member.size(), size_); }
  static Status enqueue(const PeerGroup& peers, const GpuKernel&, uint32_t, uint32_t tensor) {
    const heddle_tensor& y = peers.output(peers.own(), tensor);
    const uint64_t block = y.byte_size / peers.size();
    for (uint32_t member = 0; member < peers.size(); ++member)
      HEDDLE_PLUGIN_CHECK(peers.copy(static_cast<char*>(y.data) + member * block, member,
                                     static_cast<const char*>(peers.input(member, tensor).data) + (divided ? peers.own() * block : 0),
                                     block));
    return {};
  }

 private:
  int64_t size_ = 0;
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

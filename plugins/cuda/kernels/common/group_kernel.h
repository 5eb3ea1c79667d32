// The kernel of a collective on devices of this process. Its work has phases: before each, and at the end, the streams of all members meet.
#pragma once

#include <cstdint>

#include "kernels/common/gpu_kernel.h"
#include "kernels/common/peer_group.h"

namespace heddle::cuda {

// Operation has
//   static constexpr uint32_t phases;
//   Status create(const CreateContext&);
//   Status prepare(const GroupMember&, const Device&, PrepareContext&);
//   Status enqueue(const PeerGroup&, const GpuKernel&, uint32_t phase, uint32_t tensor) const;  // [run] the own member's work
template <class Operation>
class GroupKernel final : public GpuKernel {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(on(context));
    HEDDLE_PLUGIN_CHECK(operation_.create(context));
    return peers_.ask(context, "cuda.peers", 1, context.attributes.s("communicator").c_str());
  }
  Status prepare(PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(member_.prepare(device(), context));
    context.set_tiles(1);
    context.reads_on_host({});
    return operation_.prepare(member_, device(), context);
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const RunContext* const part = &context;
    return run_group(RunGroup(&part, 1));
  }
  Status run_group(const RunGroup& group) const {
    const Parts parts(group.parts(), group.size());
    if (group.size() != member_.size())
      return invalid("a group of " + std::to_string(group.size()) + " members was prepared for " + std::to_string(member_.size()));
    PeerGroup peers(parts);
    for (uint32_t i = 0; i < peers.size(); ++i) peers.set_member(i, of(group[i]).member_);
    const uint32_t tensors = group[0].input_count;  // the host makes groups of nodes whose tensors are alike
    for (uint32_t phase = 0; phase < Operation::phases; ++phase) {
      HEDDLE_PLUGIN_CHECK(peers.meet());
      for (uint32_t i = 0; i < peers.size(); ++i) {
        HEDDLE_PLUGIN_CHECK(peers.enter(i));
        for (uint32_t tensor = 0; tensor < tensors; ++tensor)
          HEDDLE_PLUGIN_CHECK(of(group[i]).operation_.enqueue(peers, of(group[i]), phase, tensor));
      }
    }
    return peers.meet();
  }

 private:
  static const GroupKernel& of(const RunContext& context) { return *static_cast<const GroupKernel*>(context.state); }

  Operation operation_;
  GroupMember member_;
  Needed<Peers> peers_;  // asked for so that no two runs share the communicator, and so that one of several ranks is refused
};

}  // namespace heddle::cuda

// The kernels that all collectives share: on the host ranks meet in the communicator; on devices that launch the host's kernels the
// parts of a group come together (HEDDLE_KERNEL_GROUP).
#pragma once

#include <string>

#include "collective/communicator.h"
#include "collective/rank_collectives.h"
#include "shared/collective_parts.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Copies the bytes of a tensor, until `poll` stops; the two may be the same.
inline void copy_bytes(void* to, const void* from, uint64_t bytes, CancellationPoll& poll) {
  if (to != from) copy_cancellable(to, from, static_cast<int64_t>(bytes), poll);
}

// The attributes that some operations have.
class RootedOperation {
 public:
  Status create(const CreateContext& context) {
    root_ = context.attributes.i("root");
    return {};
  }

 protected:
  int64_t root_ = 0;
};
class SizedOperation {
 public:
  Status create(const CreateContext& context) {
    size_ = context.attributes.i("size");
    return {};
  }

 protected:
  int64_t size_ = 0;  // the number of participants, by which shapes were inferred
};

// A kernel of a collective. Operation has `Status create(const CreateContext&)`, `Status perform(Parts, uint32_t tensor, CancellationPoll&)
// const`, which does its work for one of the tensors, until the poll stops, and `Status perform_between(Parts mine, RankCollectives&)
// const`, which does it for all tensors, where other participants are in other processes.
template <class Operation>
class Collective : public CollectiveWork {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(operation_.create(context));
    node_ = context.raw()->node_name;
    return communicator_.ask(context, "cpu.communicator", 1, context.attributes.s("communicator").c_str());
  }
  Status perform(Parts parts) const override {
    CancellationPoll poll(*parts[0]);
    for (uint32_t tensor = 0; tensor < parts[0]->input_count && !poll.stopped(); ++tensor) {
      HEDDLE_PLUGIN_CHECK(check_alike(parts, tensor));
      HEDDLE_PLUGIN_CHECK(operation_.perform(parts, tensor, poll));
    }
    return poll.status();
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const override {
    for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor) HEDDLE_PLUGIN_CHECK(check_alike(mine, tensor));
    return operation_.perform_between(mine, ranks);
  }
  const std::string& node() const override { return node_; }

 protected:
  // All objects of the resource are of this plugin.
  Communicator& communicator(const RunContext& context) const { return static_cast<Communicator&>(*communicator_(context)); }

 private:
  Operation operation_;
  std::string node_;
  Needed<operators::RankControl> communicator_;
};

template <class Operation>
class HostCollective final : public Collective<Operation> {
 public:
  Status start(const RunContext& context, const Completion&) const {
    this->communicator(context).start(*this, context);
    return {};
  }
};

template <class Operation>
class GroupCollective final : public Collective<Operation> {
 public:
  Status run(const RunContext& context, int64_t, int64_t) const {
    const RunContext* const part = &context;
    return run_group(RunGroup(&part, 1));
  }
  Status run_group(const RunGroup& group) const { return this->communicator(group[0]).perform(*this, {group.parts(), group.size()}); }
};

// Adds what all collectives have: the attribute, the trait and the kernels.
template <class Operation>
Op& collective(Op& op) {
  return op.required("communicator", HEDDLE_ATTRIBUTE_STRING)
      .traits(HEDDLE_TRAIT_COLLECTIVE)
      .template cpu<GroupCollective<Operation>>()
      .kernel_name("cpu:group")
      .template cpu<HostCollective<Operation>>()
      .kernel_name("cpu:ranks")
      .priority(1);
}

}  // namespace heddle::cpu

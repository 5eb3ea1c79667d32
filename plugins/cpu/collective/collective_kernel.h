// The kernels that all collectives share: on the host ranks meet in the communicator; on devices that launch the host's kernels the
// parts of a group come together (HEDDLE_KERNEL_GROUP).
#pragma once

#include <string>
#include <vector>

#include "collective/local_communicator.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

using Parts = std::span<const RunContext* const>;

// Copies the bytes of a tensor, until `poll` stops; the two may be the same.
inline void copy_bytes(void* to, const void* from, uint64_t bytes, CancellationPoll& poll) {
  if (to != from) copy_cancellable(to, from, static_cast<int64_t>(bytes), poll);
}

// Fails unless input `tensor` has as many elements of the same dtype on all participants.
inline Status check_alike(Parts parts, uint32_t tensor) {
  const heddle_tensor& first = *parts[0]->inputs[tensor];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (tensor >= parts[i]->input_count) return invalid("participant " + std::to_string(i) + " gives fewer tensors than participant 0");
    const heddle_tensor& other = *parts[i]->inputs[tensor];
    if (other.dtype != first.dtype || other.element_count != first.element_count)
      return invalid("input " + std::to_string(tensor) + " of participant " + std::to_string(i) + " is " + dtype_name(other.dtype) +
                     " of " + std::to_string(other.element_count) + " elements, that of participant 0 " + dtype_name(first.dtype) + " of " +
                     std::to_string(first.element_count));
  }
  return {};
}

// Fails unless the attribute `size` of the node, by which its shapes were inferred, is the number of participants.
inline Status check_size(Parts parts, int64_t size) {
  if (static_cast<size_t>(size) == parts.size()) return {};
  return invalid("size is " + std::to_string(size) + ", and the communicator has " + std::to_string(parts.size()) + " participants");
}

// Fails unless the attribute `root` of the node is the number of a participant.
inline Status check_root(Parts parts, int64_t root) {
  if (root >= 0 && static_cast<size_t>(root) < parts.size()) return {};
  return invalid("root is " + std::to_string(root) + ", and the communicator has the participants 0 to " +
                 std::to_string(parts.size() - 1));
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

// A kernel of a collective. Operation has `Status create(const CreateContext&)`, and `Status perform(Parts, uint32_t tensor,
// CancellationPoll&) const`, which does its work for one of the tensors, until the poll stops.
template <class Operation>
class Collective : public CollectiveWork {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(operation_.create(context));
    return communicator_.ask(context, "local.communicator", 1, context.attributes.s("communicator").c_str());
  }
  Status perform(Parts parts) const override {
    CancellationPoll poll(*parts[0]);
    for (uint32_t tensor = 0; tensor < parts[0]->input_count && !poll.stopped(); ++tensor) {
      HEDDLE_PLUGIN_CHECK(check_alike(parts, tensor));
      HEDDLE_PLUGIN_CHECK(operation_.perform(parts, tensor, poll));
    }
    return poll.status();
  }

 protected:
  LocalCommunicator& communicator(const RunContext& context) const { return *communicator_(context); }

 private:
  Operation operation_;
  Needed<LocalCommunicator> communicator_;
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
  Status run_group(const RunGroup& group) const {
    if (const int32_t ranks = this->communicator(group[0]).size(); ranks > 1)
      return unsupported("a collective of " + std::to_string(ranks) + " ranks runs on the host: give the operator the device \"cpu\"");
    return this->perform({group.parts(), group.size()});
  }
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

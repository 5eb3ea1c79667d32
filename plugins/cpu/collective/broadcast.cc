// Broadcast and Barrier: tensors that do not change on their way.
#include "collective/collective_kernel.h"
#include "collective/collective_rules.h"
#include "families.h"

namespace heddle::cpu {
namespace {

class Broadcast : public RootedOperation {
 public:
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    HEDDLE_PLUGIN_CHECK(check_root(parts.size(), root_));
    const heddle_tensor& x = *parts[static_cast<size_t>(root_)]->inputs[tensor];
    for (const RunContext* const part : parts) copy_bytes(part->outputs[tensor]->data, x.data, x.byte_size, poll);
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const {
    HEDDLE_PLUGIN_CHECK(check_root(ranks.participants(mine), root_));
    return ranks.broadcast(mine, root_);
  }
};

// The tensors go on once all participants have theirs.
class Barrier {
 public:
  Status create(const CreateContext&) { return {}; }
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    for (const RunContext* const part : parts)
      copy_bytes(part->outputs[tensor]->data, part->inputs[tensor]->data, part->inputs[tensor]->byte_size, poll);
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const {
    HEDDLE_PLUGIN_CHECK(ranks.barrier());
    CancellationPoll poll(*mine[0]);
    for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor) HEDDLE_PLUGIN_CHECK(perform(mine, tensor, poll));
    return poll.status();
  }
};

// The root's input is in the results of all, and no other input is in any.
Status broadcast_gradient(GradientContext& g) {
  return give_collective(g, "Reduce", {g.same("communicator"), g.same("root")});
}

Status barrier_gradient(GradientContext& g) {
  for (uint32_t i = 0; i < g.output_count(); ++i) g.give(i, g.dy(i));
  return {};
}

}  // namespace

void add_broadcast(Builder& plugin) {
  plugin.add(collective<Broadcast>(Op("Broadcast", "heddle")
                                       .doc("Gives each participant of the communicator the inputs of the participant `root`.")
                                       .shapes("each output has the dims of its input")
                                       .variadic("x")
                                       .variadic_out("y")
                                       .in_place("y", "x")
                                       .required("root", HEDDLE_ATTRIBUTE_INT)
                                       .infer(infer_same)
                                       .gradient<broadcast_gradient>())
                 .example("i64[2] = 1 9007199254740993; communicator=\"world\", root=0 -> i64[2] = 1 9007199254740993", "one participant"));
  plugin.add(collective<Barrier>(Op("Barrier", "heddle")
                                     .doc("Gives the inputs once all participants of the communicator have theirs.")
                                     .shapes("each output has the dims of its input")
                                     .variadic("x")
                                     .variadic_out("y")
                                     .in_place("y", "x")
                                     .infer(infer_same)
                                     .gradient<barrier_gradient>())
                 .example("f32[2] = 1 2; communicator=\"world\" -> f32[2] = 1 2", "one participant"));
}

}  // namespace heddle::cpu

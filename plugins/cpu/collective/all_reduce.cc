// AllReduce and Reduce: elements of all participants combined.
#include <cstring>
#include <string>

#include "collective/collective_kernel.h"
#include "collective/collective_rules.h"
#include "collective/reductions.h"
#include "families.h"

namespace heddle::cpu {
namespace {

class AllReduce {
 public:
  Status create(const CreateContext& context) { return read_reduction(context.attributes, &reduction_); }
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    const heddle_tensor& x = *parts[0]->inputs[tensor];
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    const auto write = [&](const void* elements, int64_t at, int64_t count) {
      for (const RunContext* const part : parts)
        copy_bytes(static_cast<char*>(part->outputs[tensor]->data) + at * width, elements, static_cast<uint64_t>(count * width), poll);
    };
    const TensorOfParts of = {parts, tensor};
    PartReducer(reduction_, of.elements(), x.dtype, x.dtype, static_cast<int64_t>(parts.size())).reduce(0, x.element_count, poll, write);
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const { return ranks.all_reduce(mine, reduction_); }

 private:
  Reduction reduction_ = Reduction::sum;
};

class Reduce : public RootedOperation {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(RootedOperation::create(context));
    return read_reduction(context.attributes, &reduction_);
  }
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    HEDDLE_PLUGIN_CHECK(check_root(parts.size(), root_));
    const auto root = static_cast<size_t>(root_);
    const heddle_tensor& x = *parts[0]->inputs[tensor];
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    const auto write = [&](const void* elements, int64_t at, int64_t count) {
      copy_bytes(static_cast<char*>(parts[root]->outputs[tensor]->data) + at * width, elements, static_cast<uint64_t>(count * width), poll);
    };
    const TensorOfParts of = {parts, tensor};
    PartReducer(reduction_, of.elements(), x.dtype, x.dtype, static_cast<int64_t>(parts.size())).reduce(0, x.element_count, poll, write);
    for (size_t i = 0; i < parts.size(); ++i)
      if (heddle_tensor& y = *parts[i]->outputs[tensor]; i != root && y.byte_size > 0) std::memset(y.data, 0, y.byte_size);
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const {
    HEDDLE_PLUGIN_CHECK(check_root(ranks.participants(mine), root_));
    return ranks.reduce(mine, reduction_, root_);
  }

 private:
  Reduction reduction_ = Reduction::sum;
};

// Each input is a part of the results of all participants: the gradients of these are combined in the same way.
Status all_reduce_gradient(GradientContext& g) {
  HEDDLE_PLUGIN_CHECK(check_differentiable(g, {"sum", "mean"}));
  return give_collective(g, "AllReduce", {g.same("communicator"), g.same("reduction")});
}

// Only what the root has as its result depends on the inputs.
Status reduce_gradient(GradientContext& g) {
  HEDDLE_PLUGIN_CHECK(check_differentiable(g, {"sum"}));
  return give_collective(g, "Broadcast", {g.same("communicator"), g.same("root")});
}

}  // namespace

void add_all_reduce(Builder& plugin) {
  plugin.add(collective<AllReduce>(Op("AllReduce", "heddle")
                                       .doc("Combines each input over all participants of the communicator by sum, mean, min, max or prod, "
                                            "and gives all of them the same bits. Elements are combined in a tree: those of participant 0 "
                                            "with those of 1, of 2 with those of 3, then pairs with pairs.")
                                       .shapes("each output has the dims of its input")
                                       .variadic("x", reduced_dtypes)
                                       .variadic_out("y", reduced_dtypes)
                                       .in_place("y", "x")
                                       .attribute("reduction", "sum")
                                       .infer(infer_same)
                                       .gradient<all_reduce_gradient>())
                 .example("f32[3] = 1 2 3, f32[] = 4; communicator=\"world\" -> f32[3] = 1 2 3, f32[] = 4", "one participant")
                 .example("f64[2] = 1 2; communicator=\"world\", reduction=\"mean\" -> f64[2] = 1 2", "one participant"));
  plugin.add(collective<Reduce>(Op("Reduce", "heddle")
                                    .doc("Combines each input over all participants of the communicator by sum, mean, min, max or prod. "
                                         "The participant `root` gets the result, and the others zeros.")
                                    .shapes("each output has the dims of its input")
                                    .variadic("x", reduced_dtypes)
                                    .variadic_out("y", reduced_dtypes)
                                    .in_place("y", "x")
                                    .attribute("reduction", "sum")
                                    .required("root", HEDDLE_ATTRIBUTE_INT)
                                    .infer(infer_same)
                                    .gradient<reduce_gradient>())
                 .example("i32[2] = 1 2; communicator=\"world\", root=0 -> i32[2] = 1 2", "one participant")
                 .example("i32[2] = 1 2; communicator=\"world\", root=0, reduction=\"max\" -> i32[2] = 1 2", "one participant"));
}

}  // namespace heddle::cpu

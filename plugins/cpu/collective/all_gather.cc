// AllGather, ReduceScatter and AllToAll: blocks of rows that participants give and get, as many as there are participants. Shapes depend on
// their number, which the attribute `size` says before the communicator is known; a step fails if it has another.
#include <string>
#include <vector>

#include "collective/collective_kernel.h"
#include "collective/collective_rules.h"
#include "collective/reductions.h"
#include "families.h"
#include "shared/dims.h"

namespace heddle::cpu {
namespace {

// Gives each output the dims of its input, after change(number of rows, number of participants, name of the input), which may fail.
template <class Change>
Status infer_rows(InferContext& context, const Change& change) {
  const int64_t size = context.attributes.i("size");
  if (size < 1) return invalid("size is " + std::to_string(size) + ", expected the number of participants");
  for (uint32_t i = 0; i < context.output_count(); ++i) {
    std::vector<int64_t> dims = vector_of(context.dims(i));
    const std::string input = "input " + std::to_string(i);
    if (dims.empty()) return invalid(input + " is a scalar, expected rows for each participant");
    HEDDLE_PLUGIN_CHECK(change(dims[0], size, input));
    context.set_dims(i, dims);
  }
  return {};
}
Status check_blocks(int64_t rows, int64_t size, const std::string& input) {
  if (size > 0 && rows % size == 0) return {};
  return invalid(input + " has " + std::to_string(rows) + " rows, which are not " + std::to_string(size) + " equal blocks");
}

Status infer_all_gather(InferContext& context) {
  return infer_rows(context, [](int64_t& rows, int64_t size, const std::string&) -> Status {
    return __builtin_mul_overflow(rows, size, &rows) ? invalid("the number of rows overflows") : Status();
  });
}
Status infer_reduce_scatter(InferContext& context) {
  return infer_rows(context, [](int64_t& rows, int64_t size, const std::string& input) {
    Status status = check_blocks(rows, size, input);
    if (status.ok()) rows /= size;
    return status;
  });
}
Status infer_all_to_all(InferContext& context) {
  return infer_rows(context, check_blocks);
}

class AllGather : public SizedOperation {
 public:
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    HEDDLE_PLUGIN_CHECK(check_size(parts.size(), size_));
    const uint64_t bytes = parts[0]->inputs[tensor]->byte_size;
    for (const RunContext* const to : parts)
      for (size_t i = 0; i < parts.size(); ++i)
        copy_bytes(static_cast<char*>(to->outputs[tensor]->data) + i * bytes, parts[i]->inputs[tensor]->data, bytes, poll);
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const {
    HEDDLE_PLUGIN_CHECK(check_size(ranks.participants(mine), size_));
    return ranks.all_gather(mine);
  }
};

class ReduceScatter : public SizedOperation {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(SizedOperation::create(context));
    return read_reduction(context.attributes, &reduction_);
  }
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    HEDDLE_PLUGIN_CHECK(check_size(parts.size(), size_));
    const heddle_tensor& x = *parts[0]->inputs[tensor];
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    const int64_t block = x.element_count / size_;
    const TensorOfParts of = {parts, tensor};
    const PartReducer reducer(reduction_, of.elements(), x.dtype, x.dtype, size_);
    for (int64_t i = 0; i < size_; ++i) {
      char* const y = static_cast<char*>(parts[static_cast<size_t>(i)]->outputs[tensor]->data);
      reducer.reduce(i * block, block, poll, [&](const void* elements, int64_t at, int64_t count) {
        copy_bytes(y + (at - i * block) * width, elements, static_cast<uint64_t>(count * width), poll);
      });
    }
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const {
    HEDDLE_PLUGIN_CHECK(check_size(ranks.participants(mine), size_));
    return ranks.reduce_scatter(mine, reduction_);
  }

 private:
  Reduction reduction_ = Reduction::sum;
};

class AllToAll : public SizedOperation {
 public:
  Status perform(Parts parts, uint32_t tensor, CancellationPoll& poll) const {
    HEDDLE_PLUGIN_CHECK(check_size(parts.size(), size_));
    const uint64_t block = parts[0]->inputs[tensor]->byte_size / parts.size();
    for (size_t to = 0; to < parts.size(); ++to)
      for (size_t from = 0; from < parts.size(); ++from)
        copy_bytes(static_cast<char*>(parts[to]->outputs[tensor]->data) + from * block,
                   static_cast<const char*>(parts[from]->inputs[tensor]->data) + to * block, block, poll);
    return {};
  }
  Status perform_between(Parts mine, RankCollectives& ranks) const {
    HEDDLE_PLUGIN_CHECK(check_size(ranks.participants(mine), size_));
    return ranks.all_to_all(mine);
  }
};

// Each participant's rows are in the results of all.
Status all_gather_gradient(GradientContext& g) {
  return give_collective(g, "ReduceScatter", {g.same("communicator"), g.same("size")});
}

Status reduce_scatter_gradient(GradientContext& g) {
  HEDDLE_PLUGIN_CHECK(check_differentiable(g, {"sum", "mean"}));
  const bool is_mean = g.attributes().s("reduction") == "mean";
  return give_collective(g, "AllGather", {g.same("communicator"), g.same("size")},
                         is_mean ? "x0 / " + std::to_string(g.attributes().i("size")) : std::string());
}

// The gradient of each block goes back to the participant that sent it.
Status all_to_all_gradient(GradientContext& g) {
  return give_collective(g, "AllToAll", {g.same("communicator"), g.same("size")});
}

}  // namespace

void add_all_gather(Builder& plugin) {
  plugin.add(
      collective<AllGather>(
          Op("AllGather", "heddle")
              .doc("Gives each participant of the communicator the rows of all, in the order of participants. `size` is their number.")
              .shapes("each output has the dims of its input, with `size` times the rows")
              .variadic("x")
              .variadic_out("y")
              .required("size", HEDDLE_ATTRIBUTE_INT)
              .infer(infer_all_gather)
              .gradient<all_gather_gradient>())
          .example("f32[2,1] = 1 2; communicator=\"world\", size=1 -> f32[2,1] = 1 2", "one participant"));
  plugin.add(collective<ReduceScatter>(Op("ReduceScatter", "heddle")
                                           .doc("Combines each input over all participants of the communicator by sum, mean, min, max or "
                                                "prod, and gives each participant one of `size` equal blocks of rows, in their order.")
                                           .shapes("each output has the dims of its input, with the rows divided by `size`")
                                           .variadic("x", reduced_dtypes)
                                           .variadic_out("y", reduced_dtypes)
                                           .attribute("reduction", "sum")
                                           .required("size", HEDDLE_ATTRIBUTE_INT)
                                           .infer(infer_reduce_scatter)
                                           .gradient<reduce_scatter_gradient>())
                 .example("f32[2,1] = 1 2; communicator=\"world\", size=1 -> f32[2,1] = 1 2", "one participant")
                 .example("f64[2] = 1 2; communicator=\"world\", size=1, reduction=\"mean\" -> f64[2] = 1 2", "one participant"));
  plugin.add(collective<AllToAll>(Op("AllToAll", "heddle")
                                      .doc("Sends one of `size` equal blocks of each input's rows to each participant of the communicator. "
                                           "Each output has the blocks that came, in the order of participants.")
                                      .shapes("each output has the dims of its input")
                                      .variadic("x")
                                      .variadic_out("y")
                                      .required("size", HEDDLE_ATTRIBUTE_INT)
                                      .infer(infer_all_to_all)
                                      .gradient<all_to_all_gradient>())
                 .example("f32[2,1] = 1 2; communicator=\"world\", size=1 -> f32[2,1] = 1 2", "one participant"));
}

}  // namespace heddle::cpu

// fuse_pointwise: pointwise operators absorb preceding ones whose results only they read, and become one heddle::Pointwise. An operator
// without a kernel of its own becomes one in any case, so whatever runs without fusion runs with it.
#include <fmt/format.h>

#include <algorithm>

#include "edit/editor.h"
#include "heddle/expression.h"
#include "place/place.h"
#include "plugin/kernel_call.h"
#include "plugin/pointwise_lowering.h"
#include "transform/fusible_program.h"
#include "transform/transform.h"

namespace heddle {
namespace {

using expression::Program;

// The bounds of one fused program, including everything it absorbed. A single operator's program may exceed them: it is not refused here.
constexpr size_t max_inputs = 8;
constexpr size_t max_instructions = 64;

// A program and the values of its inputs, each once.
struct FusedExpression {
  Program program;
  std::vector<ValueId> inputs;
  bool fusible = false;  // other operators may absorb it, and it may absorb others

  int input(ValueId id) {
    const auto it = std::find(inputs.begin(), inputs.end(), id);
    const size_t index = static_cast<size_t>(it - inputs.begin());
    if (it == inputs.end()) inputs.push_back(id);
    return program.input(fmt::format("x{}", index));
  }
  // Appends `own`, whose inputs are the instructions `bind`, as the end of the program.
  void end_with(const Program& own, const std::vector<int>& bind) {
    const int result = expression::append(program, own, bind);
    if (result != static_cast<int>(program.code.size()) - 1) program.code.push_back(program.code[static_cast<size_t>(result)]);
  }
  bool is_within_bounds() const { return inputs.size() <= max_inputs && program.code.size() <= max_instructions; }
};

Shape broadcast_shape(const TypedNet& net, const std::vector<ValueId>& values) {
  Shape result;
  for (const ValueId id : values) {
    const Shape& shape = net.type(id).shape;
    if (shape.rank() > result.rank()) {
      Shape longer;
      for (int i = 0; i < shape.rank() - result.rank(); ++i) longer.push_back(1);
      for (const int64_t dim : result) longer.push_back(dim);
      result = longer;
    }
    for (int i = 0; i < shape.rank(); ++i) {
      int64_t& dim = result[result.rank() - shape.rank() + i];
      if (dim == 1) dim = shape[i];
    }
  }
  return result;
}

// True if the program ends with a power whose exponent is a number, and does nothing else.
bool is_power_of_number(const FusedExpression& fused) {
  if (!fused.fusible || fused.inputs.size() != 1) return false;
  const std::vector<expression::Instruction>& code = fused.program.code;
  return code.back().op == expression::Opcode::pow && code[static_cast<size_t>(code.back().a)].op == expression::Opcode::input &&
         code[static_cast<size_t>(code.back().b)].op == expression::Opcode::constant;
}

// Visits nodes in program order, so that producers have their fused expressions before readers look for them.
class PointwiseFusion {
 public:
  PointwiseFusion(Editor& editor, const OperatorSchema& pointwise, bool joins)
      : editor_(editor), pointwise_(pointwise), joins_(joins), found_(editor.graph().nodes.size()) {}
  void visit(NodeId id);

 private:
  // Returns the node's program with the programs of `taken` (by input; invalid: none) in place of those inputs.
  FusedExpression joined(const Node& node, const Program& own, const std::vector<char>& literal, const std::vector<NodeId>& taken) const;
  // Returns the node's program unchanged, over those of its inputs that are present.
  FusedExpression as_it_is(const Node& node) const;
  // Returns the producer of input `i` if the node may absorb it; does not check whether both fit into one program.
  NodeId producer_to_take(const Node& node, size_t i) const;
  // Returns the node's expression with all that it absorbs, listed in `taken`: one producer after the other, as long as the whole is within
  // bounds.
  FusedExpression grown(NodeId id, std::vector<NodeId>& taken) const;
  // True if fusing `producer` would keep its inputs longer, at the cost of more memory than its result: it is the last reader of two values
  // or more that were computed, and the node waits for something that is computed after the producer.
  bool prolongs_lives(NodeId producer, const Node& node) const;
  bool is_pinned(const Node& node) const { return reads_updated_variable(editor_.graph(), node); }
  void make_pointwise(NodeId id, const FusedExpression& fused);

  Editor& editor_;
  const OperatorSchema& pointwise_;
  const SharedText domain_ = "heddle", type_ = "Pointwise";
  const bool joins_;
  std::vector<FusedExpression> found_;  // by node; not fusible: must not be absorbed
};

FusedExpression PointwiseFusion::joined(const Node& node, const Program& own, const std::vector<char>& literal,
                                        const std::vector<NodeId>& taken) const {
  FusedExpression fused;
  std::vector<int> bind(node.inputs.size(), -1);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (literal[i]) continue;
    if (!taken[i].valid()) {
      bind[i] = fused.input(node.inputs[i]);
      continue;
    }
    const FusedExpression& inner = found_[taken[i].index];
    std::vector<int> inner_bind;
    for (const ValueId v : inner.inputs) inner_bind.push_back(fused.input(v));
    bind[i] = expression::append(fused.program, inner.program, inner_bind);
  }
  fused.end_with(own, bind);
  // A program without inputs has no shape, and a constant that became a literal may have been what gave the result its rank.
  fused.fusible = !fused.inputs.empty() && broadcast_shape(editor_.net(), fused.inputs) == editor_.net().type(node.outputs[0]).shape;
  return fused;
}

FusedExpression PointwiseFusion::as_it_is(const Node& node) const {
  Program own;
  FusedExpression fused;
  if (!program_of(node, own)) return fused;
  std::vector<int> bind(node.inputs.size(), -1);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i].valid()) bind[i] = fused.input(node.inputs[i]);
  fused.end_with(own, bind);
  return fused;
}

NodeId PointwiseFusion::producer_to_take(const Node& node, size_t i) const {
  const ValueId id = node.inputs[i];
  const NodeId producer = editor_.graph()[id].producer;
  if (!producer.valid() || producer.index >= found_.size() || !found_[producer.index].fusible) return {};
  const bool alone = editor_.only_reader(id).valid() && std::count(node.inputs.begin(), node.inputs.end(), id) == 1;
  const bool same_elements = editor_.net().type(id).shape == editor_.net().type(node.outputs[0]).shape;
  if (!alone || !same_elements || editor_.node(producer).placed != node.placed) return {};
  return prolongs_lives(producer, node) ? NodeId() : producer;
}

// The typical case is a running sum whose terms are computed one after the other: if its additions were joined, all terms would be kept at
// once.
bool PointwiseFusion::prolongs_lives(NodeId producer, const Node& node) const {
  const Net& graph = editor_.graph();
  const ValueId made = editor_.node(producer).outputs[0];
  int ending = 0;
  for (const ValueId id : found_[producer.index].inputs)
    if (graph[id].producer.valid() && editor_.only_reader(id) == producer && editor_.net().type(id).shape == editor_.net().type(made).shape)
      ++ending;
  if (ending < 2) return false;
  // A producer that may be fused runs at the node's own place, which then waits for that producer's inputs.
  const auto is_computed_later = [&](ValueId id) {
    const NodeId from = id.valid() ? graph[id].producer : NodeId();
    return from.valid() && from.index > producer.index;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    const NodeId from = id.valid() ? graph[id].producer : NodeId();
    if (!from.valid() || from == producer) return false;
    const bool may_join = from.index < found_.size() && found_[from.index].fusible && editor_.only_reader(id).valid();
    if (!may_join) return is_computed_later(id);
    const std::vector<ValueId>& read = found_[from.index].inputs;
    return std::any_of(read.begin(), read.end(), is_computed_later);
  });
}

FusedExpression PointwiseFusion::grown(NodeId id, std::vector<NodeId>& taken) const {
  const Node& node = editor_.node(id);
  const TensorType& type = editor_.net().type(node.outputs[0]);
  Program own;
  if (!is_fused(type.dtype) || type.late() || !node.epilogue->empty() || !program_of(node, own) || !one_dtype(editor_.net(), node))
    return {};
  Program with_literals = own;
  std::vector<char> literal;
  inline_scalars(editor_, node.inputs, with_literals, literal);
  std::vector<NodeId> by_input(node.inputs.size());
  FusedExpression fused = joined(node, with_literals, literal, by_input);
  if (fused.fusible) {
    own = std::move(with_literals);
  } else {
    literal.assign(node.inputs.size(), 0);
    fused = joined(node, own, literal, by_input);
  }
  if (!joins_ || is_pinned(node)) return fused;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!literal[i]) by_input[i] = producer_to_take(node, i);
    if (!by_input[i].valid()) continue;
    FusedExpression larger = joined(node, own, literal, by_input);
    if (larger.fusible && larger.is_within_bounds()) {
      taken.push_back(by_input[i]);
      fused = std::move(larger);
    } else {
      by_input[i] = NodeId();
    }
  }
  return fused;
}

void PointwiseFusion::make_pointwise(NodeId id, const FusedExpression& fused) {
  Node& target = editor_.mutable_node(id);
  target.domain = domain_;
  target.type = type_;
  target.version = pointwise_.version;
  target.schema = &pointwise_;
  target.attributes = {{"program", expression::print(fused.program)}};
  editor_.set_inputs(id, fused.inputs);
}

void PointwiseFusion::visit(NodeId id) {
  const Node& node = editor_.node(id);
  if (editor_.dead(id) || !has_pointwise_form(node) || node.schema->updates_variable()) return;
  if (node.placed != host_device && !runs_pointwise(editor_.net(), editor_.net().device_of(node))) return;
  // A pinned node stays where it is and is not absorbed: a value that it reads is overwritten later.
  const bool pinned = is_pinned(node);
  std::vector<NodeId> taken;
  FusedExpression fused = grown(id, taken);
  if (!taken.empty()) {
    make_pointwise(id, fused);
    for (const NodeId producer : taken) editor_.remove(producer);
  } else if (joins_ && is_power_of_number(fused)) {
    make_pointwise(id, fused);  // whose compiler knows the exponent
  } else if (!KernelCall(editor_.net(), node, editor_.net().device_of(node), 1).find()) {
    if (!is_pointwise_node(node) && !becomes_pointwise(editor_.net(), node)) return;
    if (!fused.fusible) fused = as_it_is(node);
    if (fused.inputs.empty()) return;
    make_pointwise(id, fused);
  }
  if (!pinned) found_[id.index] = std::move(fused);
}

}  // namespace

Result<TypedNet> fuse_pointwise(TypedNet net, bool chains) {
  if (!has_pointwise(net)) return net;
  Editor editor(std::move(net));
  const OperatorSchema* pointwise = editor.net().registry->find_operator("heddle", "Pointwise");
  if (!pointwise) return editor.finish();
  PointwiseFusion fusion(editor, *pointwise, chains);
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) fusion.visit(NodeId(i));
  return editor.finish();
}

}  // namespace heddle

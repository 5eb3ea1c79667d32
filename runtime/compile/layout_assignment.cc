// Layout assignment: decides which physical order each value has, and where explicit Reorder steps convert.
//
// Only kernels that answer formats() have a choice; layout-transparent operators take the layout of their inputs; all others are row-major,
// and so are the net's inputs, outputs, variables and constants. The choice minimises kernel costs plus the cost of reorders: dynamic
// programming over chains, exact where a net is one, then sweeps over the nodes in plan order, in which each takes its best choice given
// its neighbours', for values that chains share. Ties go to the lowest index.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text/text.h"
#include "compile/draft.h"
#include "edit/editor.h"
#include "net/layout_order.h"

namespace heddle {

bool same_bytes(const heddle_layout& a, const heddle_layout& b, const Shape& shape) {
  if (a.block_count || b.block_count || a.opaque_owner || b.opaque_owner) return std::memcmp(&a, &b, sizeof(a)) == 0;
  const auto wide = [&](const heddle_layout& layout) {
    std::vector<int> order;
    for (int i = 0; i < shape.rank(); ++i) {
      const int dim = layout.rank ? layout.order[i] : i;
      if (shape[dim] != 1) order.push_back(dim);
    }
    return order;
  };
  return wide(a) == wide(b);
}

namespace compiling {
namespace {

constexpr double reorder_ns_per_byte = 0.25;  // read and write at about 8 GB/s: one core, not in cache
constexpr double reorder_ns = 2000;
constexpr int sweeps = 6;

struct Choice {
  double cost_ns = 0;
  std::vector<heddle_layout> inputs, outputs;
};

class Assignment {
 public:
  explicit Assignment(Draft& draft) : draft_(draft), net_(draft.typed.net) {}
  Status run();

 private:
  Status collect();
  NodeId before(NodeId id, size_t* input) const;
  void offer_what_comes(NodeId id);
  void solve_chains();
  void settle(size_t node);
  bool improve();
  double cost(NodeId id, size_t choice) const;
  double reorder_cost(ValueId value, const heddle_layout& from, const heddle_layout& to) const;
  heddle_layout produced(ValueId value) const;
  Status insert_reorders();
  Result<ValueId> reordered(ValueId value, const heddle_layout& layout, std::vector<NodeId>& order);

  Draft& draft_;
  Net& net_;
  std::vector<std::vector<Choice>> choices_;  // by node
  std::vector<size_t> chosen_;
  std::vector<char> transparent_;
  std::vector<char> leaves_;                                     // by value: an output of the net
  std::vector<std::vector<std::pair<NodeId, size_t>>> readers_;  // by value: node, input index
  struct Reordered {
    ValueId value;
    heddle_layout layout;
    ValueId result;
  };
  std::vector<Reordered> reordered_;
};

// True if the value has the shape of the node's output. A transparent node reads what has another shape, which is broadcast, row-major.
bool has_output_shape(const TypedNet& typed, const Node& node, ValueId id) {
  return id.valid() && typed.type(id).shape == typed.type(node.outputs[0]).shape;
}

Status Assignment::collect() {
  choices_.resize(net_.nodes.size());
  chosen_.assign(net_.nodes.size(), 0);
  transparent_.assign(net_.nodes.size(), 0);
  readers_.resize(net_.values.size());
  leaves_.assign(net_.values.size(), 0);
  for (const ValueId id : net_.outputs) leaves_[id.index] = 1;
  draft_.layouts.assign(net_.values.size(), heddle_layout{});
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const Node& node = net_.nodes[i];
    NodeDraft& d = draft_.nodes[i];
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k].valid()) readers_[node.inputs[k].index].emplace_back(NodeId(i), k);
    Choice plain;
    plain.inputs.resize(node.inputs.size(), heddle_layout{});
    plain.outputs.resize(node.outputs.size(), heddle_layout{});
    if (d.kernel && !d.view && !d.late && draft_.options.assign_layouts) {
      auto formats = d.call->formats(*d.kernel);
      if (!formats.ok()) return draft_.at(NodeId(i), std::move(formats).status());
      for (const heddle_format& format : *formats) {
        Choice choice = plain;
        choice.cost_ns = format.cost_ns;
        for (size_t k = 0; k < std::min<size_t>(node.inputs.size(), HEDDLE_FORMAT_PORTS); ++k) choice.inputs[k] = format.inputs[k];
        for (size_t k = 0; k < std::min<size_t>(node.outputs.size(), HEDDLE_FORMAT_PORTS); ++k) choice.outputs[k] = format.outputs[k];
        // A same-shape operand of an epilogue is read in the order in which the output is written.
        for (const EpilogueOp& epilogue_op : *node.epilogue)
          if (epilogue_op.operand_input >= 0 && epilogue_op.operand_kind == HEDDLE_OPERAND_SAME_SHAPE)
            choice.inputs[static_cast<size_t>(epilogue_op.operand_input)] = choice.outputs[0];
        choices_[i].push_back(std::move(choice));
      }
      transparent_[i] = choices_[i].empty() && node.schema->has_trait(HEDDLE_TRAIT_LAYOUT_TRANSPARENT) && node.outputs.size() == 1;
    }
    if (choices_[i].empty()) choices_[i].push_back(std::move(plain));
  }
  return {};
}

double Assignment::reorder_cost(ValueId value, const heddle_layout& from, const heddle_layout& to) const {
  const TensorType& type = draft_.typed.type(value);
  if (same_bytes(from, to, type.shape)) return 0;
  return reorder_ns + reorder_ns_per_byte * static_cast<double>(type.byte_size());
}

heddle_layout Assignment::produced(ValueId value) const {
  return draft_.layouts[value.index];
}

// Returns the producer of the first input of which this node is the first reader, so that every node is in one chain.
NodeId Assignment::before(NodeId id, size_t* input) const {
  for (size_t k = 0; k < net_[id].inputs.size(); ++k) {
    const ValueId value = net_[id].inputs[k];
    if (!value.valid() || !net_[value].producer.valid() || readers_[value.index].front() != std::pair(id, k)) continue;
    *input = k;
    return net_[value].producer;
  }
  return {};
}

// A transparent node may pass on any layout that its inputs may have. This includes inputs that other nodes read first: in a net with its
// gradients, most of the values that a node of the backward pass reads.
void Assignment::offer_what_comes(NodeId id) {
  std::vector<Choice>& own = choices_[id.index];
  for (const ValueId value : net_[id].inputs) {
    if (!has_output_shape(draft_.typed, net_[id], value) || !net_[value].producer.valid()) continue;
    for (const Choice& c : choices_[net_[value].producer.index]) {
      const heddle_layout& layout = c.outputs[net_[value].output];
      if (std::any_of(own.begin(), own.end(), [&](const Choice& o) { return std::memcmp(&o.outputs[0], &layout, sizeof(layout)) == 0; }))
        continue;
      Choice choice = own[0];
      for (size_t k = 0; k < choice.inputs.size(); ++k)
        if (has_output_shape(draft_.typed, net_[id], net_[id].inputs[k])) choice.inputs[k] = layout;
      choice.outputs[0] = layout;
      own.push_back(std::move(choice));
    }
  }
}

// Finds the cheapest way to reach each choice of each node along its chain, then goes from each chain's end backwards.
void Assignment::solve_chains() {
  std::vector<std::vector<double>> reached(net_.nodes.size());
  std::vector<std::vector<size_t>> by(net_.nodes.size());  // the choice before
  std::vector<char> goes_on(net_.nodes.size(), 0);
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const NodeId id(i);
    const Node& node = net_.nodes[i];
    if (transparent_[i]) offer_what_comes(id);
    size_t input = 0;
    const NodeId from = before(id, &input);
    if (from.valid()) goes_on[from.index] = 1;
    by[i].assign(choices_[i].size(), 0);
    for (size_t c = 0; c < choices_[i].size(); ++c) {
      const Choice& choice = choices_[i][c];
      double total = choice.cost_ns;
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k].valid() && !net_[node.inputs[k]].producer.valid()) total += reorder_cost(node.inputs[k], {}, choice.inputs[k]);
      for (size_t k = 0; k < node.outputs.size(); ++k)
        if (node.outputs[k].valid() && leaves_[node.outputs[k].index]) total += reorder_cost(node.outputs[k], choice.outputs[k], {});
      if (from.valid()) {
        const ValueId value = node.inputs[input];
        double best = 0;
        for (size_t p = 0; p < choices_[from.index].size(); ++p) {
          const double way =
              reached[from.index][p] + reorder_cost(value, choices_[from.index][p].outputs[net_[value].output], choice.inputs[input]);
          if (p == 0 || way < best) best = way, by[i][c] = p;
        }
        total += best;
      }
      reached[i].push_back(total);
    }
  }
  for (size_t i = net_.nodes.size(); i-- > 0;) {
    if (!goes_on[i]) chosen_[i] = static_cast<size_t>(std::min_element(reached[i].begin(), reached[i].end()) - reached[i].begin());
    size_t input = 0;
    const NodeId from = before(NodeId(i), &input);
    if (from.valid()) chosen_[from.index] = by[i][chosen_[i]];
  }
}

void Assignment::settle(size_t node) {
  for (size_t k = 0; k < net_.nodes[node].outputs.size(); ++k)
    if (const ValueId value = net_.nodes[node].outputs[k]; value.valid())
      draft_.layouts[value.index] = choices_[node][chosen_[node]].outputs[k];
}

double Assignment::cost(NodeId id, size_t choice) const {
  const Node& node = net_[id];
  const Choice& c = choices_[id.index][choice];
  double total = c.cost_ns;
  for (size_t k = 0; k < node.inputs.size(); ++k)
    if (node.inputs[k].valid()) total += reorder_cost(node.inputs[k], produced(node.inputs[k]), c.inputs[k]);
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (!node.outputs[k].valid()) continue;
    double readers = 0;
    for (const auto& [reader, input] : readers_[node.outputs[k].index])
      readers = std::max(readers, reorder_cost(node.outputs[k], c.outputs[k], choices_[reader.index][chosen_[reader.index]].inputs[input]));
    if (leaves_[node.outputs[k].index]) readers = std::max(readers, reorder_cost(node.outputs[k], c.outputs[k], heddle_layout{}));
    total += readers;
  }
  return total;
}

bool Assignment::improve() {
  bool changed = false;
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    if (choices_[i].size() < 2) continue;
    size_t best = chosen_[i];
    double best_cost = cost(NodeId(i), best);
    for (size_t c = 0; c < choices_[i].size(); ++c) {
      const double other = cost(NodeId(i), c);
      if (other < best_cost) best = c, best_cost = other;
    }
    changed = changed || best != chosen_[i];
    chosen_[i] = best;
    settle(i);
  }
  return changed;
}

// Returns `value` in `layout`: itself, an earlier Reorder's result, or a new Reorder node, which runs where the value is.
Result<ValueId> Assignment::reordered(ValueId value, const heddle_layout& layout, std::vector<NodeId>& order) {
  const Shape& shape = draft_.typed.type(value).shape;
  if (same_bytes(draft_.layouts[value.index], layout, shape)) return value;
  for (const Reordered& r : reordered_)
    if (r.value == value && same_bytes(r.layout, layout, shape)) return r.result;
  if (!draft_.typed.registry->find_operator("heddle", "Reorder"))
    return Status(Code::unknown_operator, "layouts need operator heddle::Reorder, which no loaded plugin has", "load the cpu plugin");
  Node node;
  node.name = net_[value].name + "/reorder";
  node.domain = "heddle";
  node.type = "Reorder";
  node.placed = draft_.locations ? draft_.locations->of(value) : host_device;
  node.inputs = {value};
  HEDDLE_TRY(const ValueId result_id, append_node(draft_.typed, std::move(node)));
  const NodeId id = net_[result_id].producer;
  // It is the same value in another order, also for bounded extents, which inference takes for the operator's own.
  const TensorType type = draft_.typed.type(value);
  draft_.typed.types[result_id.index] = type;
  draft_.layouts.push_back(layout);
  if (draft_.locations) draft_.locations->add(id);
  NodeDraft& d = draft_.nodes.emplace_back();
  d.call = std::make_unique<KernelCall>(draft_.typed, net_[id], draft_.device(id), draft_.target.max_threads);
  if (const std::shared_ptr<Device> opened = draft_.opened(id)) d.call->set_device_handle(opened->handle());
  d.device = draft_.device_of(result_id);
  d.kernel = d.call->find();
  if (!d.kernel) return draft_.at(id, {Code::no_kernel, fmt::format("no kernel reorders {}", to_string(type.dtype))});
  d.input_layouts = {draft_.layouts[value.index]};
  d.output_layouts = {layout};
  order.push_back(id);
  draft_.plan.reorders.push_back({net_[value].name, layout_text(draft_.layouts[value.index]), layout_text(layout), type.byte_size()});
  reordered_.push_back({value, layout, result_id});
  return result_id;
}

Status Assignment::insert_reorders() {
  std::vector<NodeId> order;
  const size_t count = net_.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId id(i);
    const Choice& choice = choices_[i][chosen_[i]];
    for (size_t k = 0; k < net_[id].inputs.size(); ++k) {
      if (!net_[id].inputs[k].valid()) continue;
      HEDDLE_TRY(const ValueId value, reordered(net_[id].inputs[k], choice.inputs[k], order));
      net_[id].inputs[k] = value;
    }
    draft_.nodes[i].input_layouts = choice.inputs;
    draft_.nodes[i].output_layouts = choice.outputs;
    order.push_back(id);
  }
  for (size_t i = 0; i < net_.outputs.size(); ++i) {
    const ValueId before = net_.outputs[i];
    HEDDLE_TRY(const ValueId value, reordered(before, heddle_layout{}, order));
    if (value == before) continue;
    net_.outputs[i] = value;
    net_[value].name = net_[before].name;
  }
  draft_.order = std::move(order);
  return {};
}

Status Assignment::run() {
  HEDDLE_CHECK(collect());
  solve_chains();
  for (size_t i = 0; i < net_.nodes.size(); ++i) settle(i);
  for (int i = 0; i < sweeps; ++i)
    if (!improve()) break;
  return insert_reorders();
}

}  // namespace

Status assign_layouts(Draft& draft) {
  return Assignment(draft).run();
}

}  // namespace compiling
}  // namespace heddle

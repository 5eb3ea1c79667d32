// Layout assignment: which physical order each value has, and where explicit Reorder steps convert.
//
// Only kernels that answer formats() have a choice; layout-transparent operators take what comes; everybody else is row-major, and so are
// the net's inputs, outputs, variables and constants. The choice minimises kernel costs plus the cost of reorders by repeated sweeps over
// the nodes in plan order (each node takes its best choice given its neighbours'; ties go to the lowest index), which is exact on chains
// after as many sweeps as the chain's choices take to settle and deterministic everywhere.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "compile/draft.h"

namespace heddle {

std::string layout_text(const heddle_layout& layout) {
  if (layout.rank == 0) return "row-major";
  bool last = layout.rank >= 3 && layout.order[0] == 0 && layout.order[layout.rank - 1] == 1;
  for (int i = 1; last && i + 1 < layout.rank; ++i) last = layout.order[i] == i + 1;
  if (last) return "channels-last";
  std::vector<std::string> order;
  for (int i = 0; i < layout.rank; ++i) order.push_back(std::to_string(layout.order[i]));
  return "(" + join(order, " ") + ")";
}

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
  void collect();
  void seed();
  bool improve();
  double cost(NodeId id, size_t choice) const;
  double reorder_cost(ValueId value, const heddle_layout& from, const heddle_layout& to) const;
  heddle_layout produced(ValueId value) const;
  heddle_layout transparent_layout(const Node& node) const;
  Status insert_reorders();
  Result<ValueId> reordered(ValueId value, const heddle_layout& layout, const std::string& device, std::vector<NodeId>& order);

  Draft& draft_;
  Net& net_;
  std::vector<std::vector<Choice>> choices_;  // by node
  std::vector<size_t> chosen_;
  std::vector<char> transparent_;
  std::vector<std::vector<std::pair<NodeId, size_t>>> readers_;  // by value: node, input index
  struct Reordered {
    ValueId value;
    heddle_layout layout;
    ValueId result;
  };
  std::vector<Reordered> reordered_;
};

bool all_same_shape(const TypedNet& typed, const Node& node) {
  const Shape& shape = typed.type(node.outputs[0]).shape;
  for (const ValueId id : node.inputs)
    if (id.valid() && typed.type(id).shape != shape) return false;
  return true;
}

void Assignment::collect() {
  choices_.resize(net_.nodes.size());
  chosen_.assign(net_.nodes.size(), 0);
  transparent_.assign(net_.nodes.size(), 0);
  readers_.resize(net_.values.size());
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const Node& node = net_.nodes[i];
    NodeDraft& d = draft_.nodes[i];
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k].valid()) readers_[node.inputs[k].index].emplace_back(NodeId(i), k);
    Choice plain;
    plain.inputs.resize(node.inputs.size(), heddle_layout{});
    plain.outputs.resize(node.outputs.size(), heddle_layout{});
    if (d.kernel && !d.view && !d.late && draft_.options.assign_layouts) {
      for (const heddle_format& format : d.call->formats(*d.kernel)) {
        Choice choice = plain;
        choice.cost_ns = format.cost_ns;
        for (size_t k = 0; k < std::min<size_t>(node.inputs.size(), HEDDLE_FORMAT_PORTS); ++k) choice.inputs[k] = format.inputs[k];
        for (size_t k = 0; k < std::min<size_t>(node.outputs.size(), HEDDLE_FORMAT_PORTS); ++k) choice.outputs[k] = format.outputs[k];
        // A same-shape operand of an epilogue is read in the order in which the output is written.
        for (const EpilogueStage& stage : node.epilogue)
          if (stage.operand_input >= 0 && stage.operand_kind == HEDDLE_OPERAND_SAME_SHAPE)
            choice.inputs[static_cast<size_t>(stage.operand_input)] = choice.outputs[0];
        choices_[i].push_back(std::move(choice));
      }
      transparent_[i] = choices_[i].empty() && node.schema->has_trait(HEDDLE_TRAIT_LAYOUT_TRANSPARENT) && node.outputs.size() == 1 &&
                        all_same_shape(draft_.typed, node);
    }
    if (choices_[i].empty()) choices_[i].push_back(std::move(plain));
  }
}

double Assignment::reorder_cost(ValueId value, const heddle_layout& from, const heddle_layout& to) const {
  const TensorType& type = draft_.typed.type(value);
  if (same_bytes(from, to, type.shape)) return 0;
  return reorder_ns + reorder_ns_per_byte * static_cast<double>(type.byte_size());
}

heddle_layout Assignment::produced(ValueId value) const {
  return draft_.layouts[value.index];
}

// What a transparent node hands on: the layout of its widest non-row-major input.
heddle_layout Assignment::transparent_layout(const Node& node) const {
  for (const ValueId id : node.inputs)
    if (id.valid() && draft_.layouts[id.index].rank != 0) return draft_.layouts[id.index];
  return {};
}

void Assignment::seed() {
  draft_.layouts.assign(net_.values.size(), heddle_layout{});
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    // Start from each kernel's favourite.
    for (size_t c = 1; c < choices_[i].size(); ++c)
      if (choices_[i][c].cost_ns < choices_[i][chosen_[i]].cost_ns) chosen_[i] = c;
  }
}

double Assignment::cost(NodeId id, size_t choice) const {
  const Node& node = net_[id];
  const Choice& c = choices_[id.index][choice];
  double total = c.cost_ns;
  for (size_t k = 0; k < node.inputs.size(); ++k)
    if (node.inputs[k].valid()) total += reorder_cost(node.inputs[k], produced(node.inputs[k]), c.inputs[k]);
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (!node.outputs[k].valid()) continue;
    bool plain_reader = std::find(net_.outputs.begin(), net_.outputs.end(), node.outputs[k]) != net_.outputs.end();
    double readers = 0;
    for (const auto& [reader, input] : readers_[node.outputs[k].index]) {
      if (transparent_[reader.index]) continue;  // takes it as it comes
      readers = std::max(readers, reorder_cost(node.outputs[k], c.outputs[k], choices_[reader.index][chosen_[reader.index]].inputs[input]));
    }
    if (plain_reader) readers = std::max(readers, reorder_cost(node.outputs[k], c.outputs[k], heddle_layout{}));
    total += readers;
  }
  return total;
}

bool Assignment::improve() {
  bool changed = false;
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const Node& node = net_.nodes[i];
    if (transparent_[i]) {
      const heddle_layout layout = transparent_layout(node);
      for (heddle_layout& l : choices_[i][0].inputs) l = layout;
      choices_[i][0].outputs[0] = layout;
    } else if (choices_[i].size() > 1) {
      size_t best = chosen_[i];
      double best_cost = cost(NodeId(i), best);
      for (size_t c = 0; c < choices_[i].size(); ++c) {
        const double other = cost(NodeId(i), c);
        if (other < best_cost) best = c, best_cost = other;
      }
      changed = changed || best != chosen_[i];
      chosen_[i] = best;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k)
      if (node.outputs[k].valid()) draft_.layouts[node.outputs[k].index] = choices_[i][chosen_[i]].outputs[k];
  }
  return changed;
}

// `value` in `layout`: itself, an earlier Reorder's result, or a new Reorder node.
Result<ValueId> Assignment::reordered(ValueId value, const heddle_layout& layout, const std::string& device, std::vector<NodeId>& order) {
  const Shape& shape = draft_.typed.type(value).shape;
  if (same_bytes(draft_.layouts[value.index], layout, shape)) return value;
  for (const Reordered& r : reordered_)
    if (r.value == value && same_bytes(r.layout, layout, shape)) return r.result;
  const OperatorSchema* schema = draft_.typed.registry->find_operator("heddle", "Reorder");
  if (!schema)
    return Status(Code::unknown_operator, "layouts need operator heddle::Reorder, which no loaded plugin has", "load the cpu plugin");
  Node node;
  node.name = net_[value].name + "/reorder";
  node.domain = "heddle";
  node.type = "Reorder";
  node.version = schema->version;
  node.schema = schema;
  node.device = device;
  node.inputs = {value};
  const NodeId id(net_.nodes.size());
  Value result;
  result.name = node.name;
  result.producer = id;
  const ValueId result_id(net_.values.size());
  node.outputs = {result_id};
  const TensorType type = draft_.typed.type(value);
  net_.values.push_back(std::move(result));
  draft_.typed.types.push_back(type);
  draft_.typed.known.emplace_back();
  draft_.layouts.push_back(layout);
  net_.nodes.push_back(std::move(node));
  NodeDraft& d = draft_.nodes.emplace_back();
  d.call = std::make_unique<KernelCall>(draft_.typed, net_[id], draft_.device(id), draft_.options.max_threads);
  d.kernel = d.call->find();
  if (!d.kernel) return draft_.at(id, {Code::no_kernel, std::string("no kernel reorders ") + to_string(type.dtype)});
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
      HEDDLE_TRY(const ValueId value, reordered(net_[id].inputs[k], choice.inputs[k], net_[id].device, order));
      net_[id].inputs[k] = value;
    }
    draft_.nodes[i].input_layouts = choice.inputs;
    draft_.nodes[i].output_layouts = choice.outputs;
    order.push_back(id);
  }
  for (size_t i = 0; i < net_.outputs.size(); ++i) {
    const ValueId before = net_.outputs[i];
    HEDDLE_TRY(const ValueId value, reordered(before, heddle_layout{}, "cpu:0", order));
    if (value == before) continue;
    net_.outputs[i] = value;
    net_[value].name = net_[before].name;
  }
  draft_.order = std::move(order);
  return {};
}

Status Assignment::run() {
  collect();
  seed();
  for (int i = 0; i < sweeps; ++i)
    if (!improve() && i > 0) break;
  return insert_reorders();
}

}  // namespace

Status assign_layouts(Draft& draft) {
  return Assignment(draft).run();
}

}  // namespace compiling
}  // namespace heddle

// Storage: which values share one buffer because one is a view of the other, updates it, or takes it over in place.
#include <algorithm>

#include "base/text/text.h"
#include "compile/draft.h"
#include "resolve/updates.h"

namespace heddle::compiling {
namespace {

class Builder {
 public:
  explicit Builder(Draft& draft) : draft_(draft), net_(draft.typed.net) {}
  Status run();

 private:
  uint32_t add(MemoryPlace::Kind kind, uint8_t device, uint32_t index, int64_t bytes) {
    draft_.storages.push_back({{kind, device, index, 0}, bytes});
    open_reads_.push_back(0);
    pinned_.push_back(0);
    return static_cast<uint32_t>(draft_.storages.size() - 1);
  }
  void join(ValueId value, uint32_t storage) {
    draft_.storage_of[value.index] = storage;
    open_reads_[storage] += reads_[value.index];
    if (output_[value.index]) pinned_[storage] = 1;
  }
  void count_reads();
  void place_sources();
  void place_output(NodeId id, size_t output);
  int in_place_input(NodeId id, size_t output) const;
  int in_place_operand(NodeId id, ValueId output, const heddle_layout& layout) const;
  bool may_take(const Node& node, size_t input, ValueId output, const heddle_layout& layout) const;

  Draft& draft_;
  const Net& net_;
  std::vector<uint32_t> reads_;       // by value, by running nodes
  std::vector<char> output_;          // by value: leaves the net
  std::vector<uint32_t> open_reads_;  // by storage: reads by nodes that do not pass the storage on
  std::vector<char> pinned_;          // by storage: must survive to the end of the run
};

void Builder::count_reads() {
  reads_.assign(net_.values.size(), 0);
  output_.assign(net_.values.size(), 0);
  for (const NodeId id : draft_.order)
    for (const ValueId v : net_[id].inputs)
      if (v.valid()) ++reads_[v.index];
  for (const ValueId v : net_.outputs) output_[v.index] = 1;
}

void Builder::place_sources() {
  for (size_t i = 0; i < net_.inputs.size(); ++i)
    join(net_.inputs[i], add(MemoryPlace::Kind::input, draft_.device_of(net_.inputs[i]), static_cast<uint32_t>(i),
                             draft_.typed.type(net_.inputs[i]).byte_size()));
  for (size_t i = 0; i < net_.variables.size(); ++i) {
    if (draft_.is_input(net_.variables[i])) continue;
    join(net_.variables[i].first, add(MemoryPlace::Kind::variable, draft_.device_of(net_.variables[i].first), draft_.slot_of(VariableId(i)),
                                      draft_.typed.type(net_.variables[i].first).byte_size()));
  }
  for (size_t i = 0; i < net_.values.size(); ++i) {
    if (net_.values[i].kind != Value::Kind::constant || (reads_[i] == 0 && !output_[i])) continue;
    const auto index = static_cast<uint32_t>(draft_.plan.constants.size());
    draft_.plan.constants.push_back(draft_.typed.known[i]);
    join(ValueId(i), add(MemoryPlace::Kind::constant, 0, index, draft_.typed.types[i].byte_size()));
  }
}

bool Builder::may_take(const Node& node, size_t input, ValueId output, const heddle_layout& layout) const {
  const TensorType& type = draft_.typed.type(output);
  const ValueId id = node.inputs[input];
  if (!id.valid() || std::count(node.inputs.begin(), node.inputs.end(), id) != 1) return false;
  const TensorType& in = draft_.typed.type(id);
  const uint32_t storage = draft_.storage_of[id.index];
  if (storage == UINT32_MAX || !draft_.storages[storage].planned() || pinned_[storage]) return false;
  if (draft_.device_of(id) != draft_.device_of(output)) return false;
  if (in.late() || type.late() || in.byte_size() != type.byte_size() || byte_width(in.dtype) != byte_width(type.dtype)) return false;
  if (draft_.storages[storage].bytes != type.byte_size()) return false;
  if (in.shape != type.shape && !(layout.rank == 0 && draft_.layouts[id.index].rank == 0)) return false;
  if (!same_bytes(draft_.layouts[id.index], layout, type.shape)) return false;
  // Exactly one read of the storage is still open: this node's. Reads by nodes that passed it on were closed then.
  return open_reads_[storage] == 1;
}

// Returns a fused residual whose bytes the output may take; -1: none.
int Builder::in_place_operand(NodeId id, ValueId output, const heddle_layout& layout) const {
  const Node& node = net_[id];
  const NodeDraft& d = draft_.nodes[id.index];
  if (!d.kernel || !(d.kernel->kernel->flags & HEDDLE_KERNEL_EPILOGUE_IN_PLACE)) return -1;
  for (const EpilogueOp& epilogue_op : *node.epilogue)
    if (epilogue_op.operand_kind == HEDDLE_OPERAND_SAME_SHAPE &&
        may_take(node, static_cast<size_t>(epilogue_op.operand_input), output, layout))
      return epilogue_op.operand_input;
  return -1;
}

int Builder::in_place_input(NodeId id, size_t output) const {
  const Node& node = net_[id];
  const int alias = node.schema->alias_input(output);
  if (!draft_.options.share_memory) return -1;
  const heddle_layout& layout = draft_.layouts[node.outputs[output].index];
  if (!node.epilogue->empty()) return output == 0 ? in_place_operand(id, node.outputs[output], layout) : -1;
  if (alias == -1) return -1;
  const auto taken = [&](size_t input) {  // by an earlier output
    const auto same = [&](ValueId other) {
      return other.valid() && draft_.storage_of[other.index] == draft_.storage_of[node.inputs[input].index];
    };
    return std::any_of(node.outputs.begin(), node.outputs.begin() + static_cast<std::ptrdiff_t>(output), same);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if ((alias == HEDDLE_ALIAS_ANY || alias == static_cast<int>(i)) && may_take(node, i, node.outputs[output], layout) && !taken(i))
      return static_cast<int>(i);
  return -1;
}

void Builder::place_output(NodeId id, size_t output) {
  const Node& node = net_[id];
  const NodeDraft& d = draft_.nodes[id.index];
  const ValueId value = node.outputs[output];
  int source = -1;
  if (d.view)
    source = 0;
  else if (const int updated = updated_input(net_, node, output); updated >= 0)
    source = updated;
  else
    source = in_place_input(id, output);
  if (source >= 0) {
    const uint32_t storage = draft_.storage_of[node.inputs[static_cast<size_t>(source)].index];
    --open_reads_[storage];  // this node passes it on
    join(value, storage);
    return;
  }
  const TensorType& type = draft_.typed.type(value);
  const uint8_t device = draft_.device_of(value);
  if (d.uploaded) {
    std::vector<std::shared_ptr<const DeviceMemory>>& constants = draft_.plan.devices[device - 1].constants;
    constants.emplace_back();
    join(value, add(MemoryPlace::Kind::constant, device, static_cast<uint32_t>(constants.size() - 1), type.byte_size()));
    return;
  }
  const MemoryPlace::Kind kind = type.dynamic ? MemoryPlace::Kind::unplanned : MemoryPlace::Kind::arena;
  join(value, add(kind, device, static_cast<uint32_t>(value.index), type.byte_size()));
}

Status Builder::run() {
  draft_.storage_of.assign(net_.values.size(), UINT32_MAX);
  for (const NodeId id : draft_.order)
    draft_.nodes[id.index].uploaded =
        is_copy(net_[id]) && net_[net_[id].inputs[0]].kind == Value::Kind::constant && draft_.device_of(net_[id].outputs[0]) != 0;
  count_reads();
  place_sources();
  std::vector<NodeId> running;
  for (const NodeId id : draft_.order) {
    for (size_t k = 0; k < net_[id].outputs.size(); ++k)
      if (net_[id].outputs[k].valid()) place_output(id, k);
    if (!draft_.nodes[id.index].view && !draft_.nodes[id.index].uploaded) running.push_back(id);
  }
  draft_.order = std::move(running);
  return {};
}

}  // namespace

Status assign_storage(Draft& draft) {
  return Builder(draft).run();
}

}  // namespace heddle::compiling

// Editor: how placement and transforms change a TypedNet. Nodes are added with their types inferred at once; replaced values are
// redirected; dead nodes are dropped at the end, together, in one pass.
#pragma once

#include <string>
#include <vector>

#include "heddle/status.h"
#include "net/typed_net.h"

namespace heddle {

// Appends `node`, of which name, domain, type, inputs, attributes and device count, with one output, and infers its type. For callers that
// keep nodes in order themselves; others use Editor::add_node. Errors: unknown_operator; those of inference.
Result<ValueId> append_node(TypedNet& net, Node node);

// Not synchronised; the net belongs to the editor until finish().
class Editor {
 public:
  explicit Editor(TypedNet net);

  const TypedNet& net() const { return net_; }
  const Net& graph() const { return net_.net; }
  const Node& node(NodeId id) const { return net_.net[id]; }
  Node& mutable_node(NodeId id) {
    changed_ = true;
    return net_.net[id];
  }
  // Returns the id of the device of that full name, a new one when none has it; every name of kind cpu is the host's.
  DeviceId device(const std::string& name);
  // Places the node on `device`. The net counts as unchanged.
  void set_device(NodeId id, DeviceId device) { net_.net[id].placed = device; }
  // Returns the number of live reads of a value, net outputs and the variables' last versions included.
  uint32_t uses(ValueId id) const { return uses_[id.index]; }
  bool is_output(ValueId id) const { return output_[id.index] != 0; }
  // Returns the only live node that reads `id`; invalid when there are several readers, it leaves the net, or the reader or the producer
  // waits for other nodes or is waited for: such nodes are not changed.
  NodeId only_reader(ValueId id) const;
  // Returns content that is the same in every run; null when it is not a constant.
  std::shared_ptr<const Blob> constant(ValueId id) const;
  bool is_constant(ValueId id) const { return id.valid() && graph()[id].kind == Value::Kind::constant && net_.known[id.index]; }
  bool dead(NodeId id) const { return dead_[id.index] != 0; }

  ValueId add_constant(const std::string& name, std::shared_ptr<const Blob> blob);
  // Adds a node that runs right before `before`, on the same device; if `before` is invalid, after all others. Otherwise as append_node.
  Result<ValueId> add_node(NodeId before, const std::string& type, const std::string& name, std::vector<ValueId> inputs,
                           std::vector<Attribute> attributes = {}, const std::string& domain = {});
  // Makes `node` read `inputs` instead of its present ones.
  void set_inputs(NodeId node, std::vector<ValueId> inputs);
  // Makes all readers of `from` read `to` instead; `from`'s name moves along when it is a net output.
  void replace(ValueId from, ValueId to);
  // Makes `to` output `index` of the net, under the same name.
  void set_output(size_t index, ValueId to);
  // Makes the value a constant; its producer dies when it has no other output.
  void make_constant(ValueId id, std::shared_ptr<const Blob> blob);
  // Infers the types of the node's outputs again from those that its inputs have now.
  Status infer_again(NodeId node);
  // Makes `node` produce output 0 of `swallowed`, which dies: fusion of a node with its only reader.
  void take_over_output(NodeId node, NodeId swallowed);
  void remove(NodeId node);

  // Drops dead nodes and values that no node reads or writes, and puts added nodes into place. A net that was not changed stays as it is.
  TypedNet finish();
  // Counts the net as changed.
  void touch() { changed_ = true; }

 private:
  void count_uses();
  bool ordered(NodeId id) const { return id.valid() && id.index < ordered_.size() && ordered_[id.index]; }
  void inherit_control();
  std::vector<NodeId> final_order() const;
  void add_uses(const std::vector<ValueId>& values, int delta, NodeId reader);

  TypedNet net_;
  bool changed_ = false;
  std::vector<uint32_t> uses_;
  std::vector<char> output_;
  std::vector<char> dead_;
  std::vector<char> ordered_;  // has control inputs, or is one
  std::vector<std::vector<NodeId>> readers_;
  std::vector<std::vector<NodeId>> inserted_;  // by node: the nodes that run right before it
};

}  // namespace heddle

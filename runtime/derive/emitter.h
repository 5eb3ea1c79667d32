// Emitter: adds operators to a net that is derived, behind all others.
//
// Names are those of the operator that they are derived from and what they are, made different from all others. Nothing is inferred: what
// is emitted is judged when the net is whole.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle {

class Emitter {
 public:
  Emitter(Net& net, const RegistrySnapshot& registry);

  // What is emitted from now on belongs to that operator: it has its device, and names that begin with its own. `purpose`: "gradient".
  void derive_from(NodeId node, const std::string& purpose);
  // It belongs to none of them.
  void derive_from(const std::string& name, const std::string& device);

  // One node of the newest operator of that name. Errors: unknown_operator.
  Result<std::vector<ValueId>> emit(const std::string& domain, const std::string& type, std::vector<ValueId> inputs, size_t outputs,
                                    std::vector<Attribute> attributes = {});
  Result<ValueId> emit1(const std::string& domain, const std::string& type, std::vector<ValueId> inputs,
                        std::vector<Attribute> attributes = {});
  // Elements of that dtype instead.
  Result<ValueId> emit_cast(ValueId value, DType dtype);
  // Whether nothing was emitted after `value`, the only output of the node that was emitted last.
  bool is_last(ValueId value) const;
  // Removes that node, whose output is read by nothing, with its output.
  void take_back();
  // An output of a node that was there, which it has from now on. Errors: plugin_invalid, where its operator has no such output.
  Result<ValueId> output_of(NodeId node, uint32_t index);
  // Gives an attribute of a node another value; one that it did not have is added.
  void set_attribute(NodeId node, const std::string& name, AttributeValue value);
  // An input of the net, behind its others.
  ValueId add_input(const std::string& wanted);
  // A further output of a node that was there.
  ValueId add_output(NodeId node, const std::string& wanted);
  ValueId constant_ints(const std::vector<int64_t>& values);
  ValueId constant(std::shared_ptr<const Blob> blob);
  // The operator that emit() takes; null: there is none.
  const OperatorSchema* find(const std::string& domain, const std::string& type) const { return registry_.find_operator(domain, type); }
  // A name that nothing has.
  std::string unused_name(const std::string& wanted);
  // Renames a value made here.
  void rename(ValueId value, const std::string& wanted);
  bool is_emitted(NodeId node) const { return node.valid() && node.index >= first_node_; }
  // Of what is emitted now.
  const std::string& device() const { return device_; }
  // Of an emitted node: the one that it belongs to; invalid: to none.
  NodeId origin(NodeId node) const { return origins_[node.index - first_node_]; }
  // Emitted nodes are those from here on.
  size_t first_node() const { return first_node_; }

 private:
  ValueId add_value(const std::string& name, Value::Kind kind);
  ValueId make_output(NodeId node, uint32_t index, const std::string& wanted);

  Net& net_;
  const RegistrySnapshot& registry_;
  const size_t first_node_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, int> next_number_;
  std::string prefix_, device_;
  NodeId origin_;
  std::vector<NodeId> origins_;  // by emitted node
  uint32_t next_stream_ = 0;     // of random numbers: none that the net has
};

}  // namespace heddle

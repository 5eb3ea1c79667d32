// Emitter: appends operators to a net that is derived, after all others.
//
// Names are made of the operator that they are derived from and their purpose, and are made unique. Nothing is inferred here: the emitted
// operators are checked when the net is whole.
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

  // Makes the following nodes derive from `node`: they have its device, and names that begin with its name. `purpose`: "gradient".
  void derive_from(NodeId node, const std::string& purpose);
  // Makes the following nodes derive from no node.
  void derive_from(const std::string& name, const std::string& device);

  // Emits one node of the newest operator of that name. Errors: unknown_operator.
  Result<std::vector<ValueId>> emit(const std::string& domain, const std::string& type, std::vector<ValueId> inputs, size_t outputs,
                                    std::vector<Attribute> attributes = {});
  Result<ValueId> emit1(const std::string& domain, const std::string& type, std::vector<ValueId> inputs,
                        std::vector<Attribute> attributes = {});
  // Emits a cast of the elements to that dtype.
  Result<ValueId> emit_cast(ValueId value, DType dtype);
  // Whether nothing was emitted after `value`, the only output of the node that was emitted last.
  bool is_last(ValueId value) const;
  // Removes the node that was emitted last, with its output, which nothing may read.
  void take_back();
  // Returns an output of an existing node, which is added if the node had none there. Errors: plugin_invalid, where its operator has no
  // such output.
  Result<ValueId> output_of(NodeId node, uint32_t index);
  // Sets an attribute of a node; adds it if the node did not have it.
  void set_attribute(NodeId node, const std::string& name, AttributeValue value);
  // Adds an input of the net, after its others.
  ValueId add_input(const std::string& wanted);
  // Adds a further output of an existing node.
  ValueId add_output(NodeId node, const std::string& wanted);
  ValueId constant_ints(const std::vector<int64_t>& values);
  ValueId constant(std::shared_ptr<const Blob> blob);
  // Returns the operator that emit() would use; null: there is none.
  const OperatorSchema* find(const std::string& domain, const std::string& type) const { return registry_.find_operator(domain, type); }
  // Returns a name that is not used yet.
  std::string unused_name(const std::string& wanted);
  // Renames a value made here.
  void rename(ValueId value, const std::string& wanted);
  bool is_emitted(NodeId node) const { return node.valid() && node.index >= first_node_; }
  // The device of the nodes that are emitted now.
  const std::string& device() const { return device_; }
  // Returns the node that an emitted node derives from; invalid: none.
  NodeId origin(NodeId node) const { return origins_[node.index - first_node_]; }
  // The index of the first emitted node.
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
  uint32_t next_stream_ = 0;     // for random numbers: a stream that the net does not have
};

}  // namespace heddle

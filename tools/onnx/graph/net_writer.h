// One net that the importer is building: values and nodes with unique names, and a hint beside each value. Owns the net until take(); not
// synchronised.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "net/net.h"
#include "onnx/graph/hints.h"

namespace heddle::importer {

// Makes names unique by a numbered ending.
class NameTable {
 public:
  // Returns false when the name is taken already.
  bool take(const std::string& name) { return taken_.insert(name).second; }
  // `wanted`, or the first of wanted_2, wanted_3, ... that is free.
  std::string unique(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> next_;
};

// A node to be written, in the newest semantics of its operator.
struct NodeSpec {
  std::string name;
  std::string domain;
  std::string type;
  int32_t version = 0;
  std::vector<ValueId> inputs;       // invalid: absent
  std::vector<std::string> outputs;  // value names; empty: not wanted
  std::vector<Attribute> attributes;
};

class NetWriter {
 public:
  explicit NetWriter(std::string name) { net_.name = std::move(name); }
  // Names used by the file: taken before any generated one, so that those of the file are unchanged.
  NameTable& value_names() { return value_names_; }
  NameTable& node_names() { return node_names_; }

  // `name` must be unique by value_names(); the caller must ensure it.
  ValueId input(std::string name, DeclaredType type);
  ValueId constant(std::string name, std::shared_ptr<const Blob> blob);
  // Writes a node; absent inputs and unwanted outputs at the end of the lists are dropped. Returns invalid ids for unwanted outputs.
  std::vector<ValueId> node(NodeSpec spec);

  Hint hint(ValueId id) const { return id.valid() ? hints_[id.index] : Hint{}; }
  void set_hint(ValueId id, Hint hint) { hints_[id.index] = hint; }
  // The bytes of a constant; null for every other value.
  const Blob* content(ValueId id) const;
  Net& net() { return net_; }
  const Net& net() const { return net_; }
  Net take() { return std::move(net_); }

 private:
  ValueId add_value(Value value, Hint hint);

  Net net_;
  std::vector<Hint> hints_;  // by ValueId
  NameTable value_names_;
  NameTable node_names_;
};

}  // namespace heddle::importer

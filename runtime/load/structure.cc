#include "load/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "base/text/name_index.h"
#include "base/text/text.h"
#include "load/structure_parts.h"

namespace heddle {
namespace {

// Checks a net before any other code trusts its ids. Checks continue after a finding, so that all mistakes of a file are reported together;
// each check therefore tests the ids that it uses, although an earlier check may have refused them.
class StructureCheck {
 public:
  StructureCheck(const Net& net, bool top, const Limits& limits, Findings& findings)
      : net_(net), top_(top), limits_(limits), findings_(findings), defined_(net.values.size()), reported_(net.values.size()) {
    links_.origins.resize(net.values.size());
    links_.first_version.resize(net.variables.size());
    links_.last_version.resize(net.variables.size());
  }

  NetLinks run() {
    check_header();
    check_names(net_.values, "a value");
    check_names(net_.nodes, "an operator");
    check_names(net_.variables, "a variable");
    // Origins are found first: the kinds of values, and the order of readers, are checked against them.
    find_origins();
    for (size_t i = 0; i < net_.values.size(); ++i) check_value(ValueId(i));
    check_variables();
    for (size_t i = 0; i < net_.nodes.size(); ++i) check_node(NodeId(i));
    check_inputs();
    check_outputs();
    for (const SparseLink& link : net_.sparse_links) check_sparse_link(link);
    if (net_.step_counter.valid() && net_.step_counter.index >= net_.variables.size())
      fail(Code::file_corrupt, fmt::format("the step counter is variable {}, which does not exist", net_.step_counter.index));
    else if (net_.step_counter.valid())
      check_step_counter(net_[net_.step_counter]);
    check_undefined();
    return std::move(links_);
  }

 private:
  void add(Status status, const Node* node = nullptr) {
    if (status.ok()) return;
    if (node != nullptr) status = std::move(status).at(node->name, node->type);
    findings_.add(std::move(status).in_net(net_.name));
  }
  void fail(Code code, std::string message, std::string hint = {}, const Node* node = nullptr) {
    add(Status(code, std::move(message), std::move(hint)), node);
  }
  // Adds "value "x": ..." or the like.
  void add_about(Status status, const char* what, const std::string& name) {
    if (status.ok()) return;
    status.diagnostic().message = fmt::format("{} {}: {}", what, quoted(name), status.diagnostic().message);
    add(std::move(status));
  }
  std::string name_of(ValueId id) const { return quoted(net_[id].name); }
  bool exists(ValueId id) const { return id.index < net_.values.size(); }

  void check_step_counter(const Variable& counter) {
    if (counter.type.dtype != DType::i64 || !counter.type.ranked || !counter.type.dims.empty())
      fail(Code::dtype_mismatch, fmt::format("the step counter {} is no i64 scalar", quoted(counter.name)),
           "declare it as i64 with dims []");
  }

  void check_header() {
    add(check_text(net_.name, "the name of a net", limits_));
    if (!is_utf8(net_.doc)) fail(Code::syntax, "the doc of the net is not UTF-8");
    std::vector<std::string_view> domains;
    for (const OperatorSetVersion& set : net_.operator_sets) {
      add(check_text(set.domain, "the domain of an operator set", limits_));
      if (set.version < 0) fail(Code::file_corrupt, fmt::format("the operator set {} has a negative version", quoted(set.domain)));
      domains.emplace_back(set.domain);
    }
    check_unique(std::move(domains), "an operator set");
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : net_.metadata) {
      add(check_name(key, "a metadata entry", limits_));
      if (!is_utf8(value)) fail(Code::syntax, fmt::format("the metadata {} is not UTF-8", quoted(key)));
      keys.emplace_back(key);
    }
    check_unique(std::move(keys), "a metadata entry");
  }
  void check_unique(std::vector<std::string_view> names, const char* what) {
    const std::vector<std::string_view> kept = names;
    const NameIndex index(std::move(names));
    for (const auto& [first, again] : index.duplicates()) duplicate(what, kept[again], first, again);
  }
  void duplicate(const char* what, std::string_view name, uint32_t first, uint32_t again) {
    fail(Code::duplicate_name, fmt::format("{} called {} occurs again, as number {} after number {}", what, quoted(name), again, first),
         "rename one of them");
  }
  template <class T>
  void check_names(const std::vector<T>& things, const char* what) {
    std::vector<std::string_view> names;
    names.reserve(things.size());
    for (const T& thing : things) {
      add(check_name(thing.name, what, limits_));
      names.emplace_back(thing.name);
    }
    // Names that are missing were reported one by one.
    const NameIndex index(std::move(names));
    for (const auto& [first, again] : index.duplicates()) {
      if (!things[again].name.empty()) duplicate(what, things[again].name, first, again);
    }
  }

  void find_origins() {
    for (size_t n = 0; n < net_.nodes.size(); ++n) {
      const Node& node = net_.nodes[n];
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId id = node.outputs[i];
        if (!id.valid()) continue;
        if (!exists(id)) {
          fail(Code::file_corrupt, fmt::format("output {} is value {}, which does not exist", i, id.index), {}, &node);
          continue;
        }
        Origin& origin = links_.origins[id.index];
        if (origin.producer.valid()) {
          fail(Code::duplicate_name,
               fmt::format("output {} defines {}, which operator {} defines already", i, name_of(id), quoted(net_[origin.producer].name)),
               "give each output a value of its own", &node);
          continue;
        }
        origin = {NodeId(n), static_cast<uint32_t>(i)};
      }
    }
  }

  void check_value(ValueId id) {
    const Value& value = net_[id];
    const bool produced = links_.origins[id.index].producer.valid();
    defined_[id.index] = true;
    switch (value.kind) {
      case Value::Kind::node_output:
        defined_[id.index] = produced;
        break;
      case Value::Kind::variable:
        defined_[id.index] = value.version == 0 || produced;
        break;
      case Value::Kind::input:
      case Value::Kind::constant:
        break;
      default:  // a number that stood in the file
        fail(Code::file_corrupt, fmt::format("value {} has the kind {}, which does not exist", name_of(id), static_cast<int>(value.kind)));
        return;
    }
    // Two writers of one value would make its content depend on the order of a run.
    const bool external = value.kind == Value::Kind::input || value.kind == Value::Kind::constant ||
                          (value.kind == Value::Kind::variable && value.version == 0);
    if (external && produced)
      fail(Code::duplicate_name, fmt::format("value {} is an input, constant or variable, and yet the output of an operator", name_of(id)),
           "give the output another name", &net_[links_.origins[id.index].producer]);
    if (value.kind != Value::Kind::variable && (value.variable.valid() || value.version != 0))
      fail(Code::file_corrupt, fmt::format("value {} is no variable but has a version", name_of(id)));
    if (value.kind == Value::Kind::constant)
      add_about(check_content(value.content, value.type, limits_), "constant", value.name);
    else if (value.content.blob != nullptr || !value.content.reference->file.empty())
      fail(Code::file_corrupt, fmt::format("value {} is no constant but has content", name_of(id)));
    if (value.kind == Value::Kind::input || value.kind == Value::Kind::node_output)
      add_about(check_type(value.type, limits_), "value", value.name);
  }

  void check_variables() {
    for (const Variable& variable : net_.variables) add_about(check_variable(variable, limits_), "variable", variable.name);
    check_replicas();
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> versions;  // variable, version, value
    for (uint32_t i = 0; i < net_.values.size(); ++i) {
      const Value& value = net_.values[i];
      if (value.kind != Value::Kind::variable) continue;
      if (value.variable.index >= net_.variables.size()) {
        fail(Code::file_corrupt,
             fmt::format("value {} is a version of variable {}, which does not exist", quoted(value.name), value.variable.index));
        continue;
      }
      const DeclaredType& type = net_[value.variable].type;
      if (value.type != DeclaredType{} && value.type != type)
        fail(Code::shape_mismatch,
             fmt::format("value {} is not of the type of its variable {}", quoted(value.name), quoted(net_[value.variable].name)));
      versions.emplace_back(value.variable.index, value.version, i);
    }
    // After sorting, the versions of a variable are neighbours, which shows gaps and repetitions without a table for each variable.
    std::sort(versions.begin(), versions.end());
    for (size_t i = 0; i < versions.size(); ++i) check_version(versions, i);
    for (size_t v = 0; v < net_.variables.size(); ++v)
      if (!links_.first_version[v].valid())
        fail(Code::file_corrupt, fmt::format("variable {} has no version 0", quoted(net_.variables[v].name)),
             "each variable needs a value of version 0");
  }
  void check_replicas() {
    std::map<std::string_view, const Variable*> by_name;
    for (const Variable& variable : net_.variables) by_name.emplace(variable.name, &variable);
    for (const Variable& variable : net_.variables) {
      if (variable.replica_of.empty()) continue;
      const auto found = by_name.find(variable.replica_of);
      const char* wrong = nullptr;
      if (found == by_name.end())
        wrong = "which does not exist";
      else if (!found->second->replica_of.empty())
        wrong = "which is a replica itself";
      else if (found->second->type != variable.type)
        wrong = "which has another type";
      if (wrong)
        fail(Code::invalid_argument,
             fmt::format("variable {} is a replica of {}, {}", quoted(variable.name), quoted(variable.replica_of), wrong),
             "name the variable that files and snapshots know, of the same dtype and dims");
    }
  }
  void check_version(const std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>& versions, size_t i) {
    const auto [variable, version, value] = versions[i];
    const bool first = i == 0 || std::get<0>(versions[i - 1]) != variable;
    const uint32_t expected = first ? 0 : std::get<1>(versions[i - 1]) + 1;
    if (version != expected) {
      fail(Code::file_corrupt,
           fmt::format("value {} is version {} of variable {} where version {} is due", quoted(net_.values[value].name), version,
                       quoted(net_.variables[variable].name), expected),
           "number the versions 0, 1, 2 ...");
      return;
    }
    if (first) links_.first_version[variable] = ValueId(value);
    links_.last_version[variable] = ValueId(value);
    if (version < 2) return;  // version 0 has no writer that version 1 could overtake
    const NodeId before = links_.origins[std::get<2>(versions[i - 1])].producer;
    const NodeId now = links_.origins[value].producer;
    if (before.valid() && now.valid() && before.index >= now.index)
      fail(Code::hazard,
           fmt::format("it writes {}, version {} of variable {}, before the version that it replaces", quoted(net_.values[value].name),
                       version, quoted(net_.variables[variable].name)),
           "write versions in program order", &net_[now]);
  }

  void check_node(NodeId id) {
    const Node& node = net_[id];
    add(check_name(node.type, "the type of an operator", limits_), &node);
    add(check_text(node.domain, "the domain of an operator", limits_), &node);
    add(check_text(node.device, "the device of an operator", limits_), &node);
    if (node.version < 0) fail(Code::file_corrupt, fmt::format("it asks for version {}", node.version), {}, &node);
    if (!node.epilogue->empty())
      fail(Code::unsupported, "it has a fused epilogue, which files do not hold", "save the net before it is fused", &node);
    for (size_t i = 0; i < node.inputs.size(); ++i) check_input(id, node, i);
    for (const NodeId before : node.control) {
      if (before.index >= net_.nodes.size())
        fail(Code::dangling_input, fmt::format("it waits for operator {}, which does not exist", before.index), {}, &node);
      else if (before.index >= id.index)
        fail(Code::cycle, fmt::format("it waits for operator {}, which does not come before it", quoted(net_[before].name)),
             "list operators in the order in which they run", &node);
    }
    for (const Attribute& attribute : node.attributes) add(check_attribute(attribute, limits_), &node);
    check_attribute_names(node);
  }
  void check_input(NodeId id, const Node& node, size_t i) {
    const ValueId input = node.inputs[i];
    if (!input.valid()) return;
    if (!exists(input)) {
      fail(Code::dangling_input, fmt::format("input {} is value {}, which does not exist", i, input.index), {}, &node);
    } else if (!defined_[input.index]) {
      reported_[input.index] = true;
      fail(Code::dangling_input, fmt::format("input {} is {}, which no operator defines", i, name_of(input)),
           "add the operator or make it an input of the net", &node);
    } else if (const NodeId producer = links_.origins[input.index].producer; producer.valid() && producer.index >= id.index) {
      if (producer.index == id.index)
        fail(Code::cycle, fmt::format("input {} is {}, which it defines itself", i, name_of(input)),
             "an operator can't read its own output", &node);
      else
        fail(Code::cycle, fmt::format("input {} is {}, which operator {} defines later", i, name_of(input), quoted(net_[producer].name)),
             "break the cycle, or list operators in the order in which they run", &node);
    }
  }
  void check_attribute_names(const Node& node) {
    if (node.attributes.size() < 2) return;
    std::vector<std::string_view> names;
    names.reserve(node.attributes.size());
    for (const Attribute& attribute : node.attributes) names.emplace_back(attribute.name);
    std::sort(names.begin(), names.end());
    for (size_t i = 1; i < names.size(); ++i)
      if (names[i] == names[i - 1])
        fail(Code::duplicate_name, fmt::format("attribute {} is given twice", quoted(names[i])), "remove one", &node);
  }

  void check_inputs() {
    std::vector<bool> listed(net_.values.size());
    for (const ValueId id : net_.inputs) {
      if (!exists(id))
        fail(Code::file_corrupt, fmt::format("an input of the net is value {}, which does not exist", id.index));
      else if (net_[id].kind != Value::Kind::input)
        fail(Code::file_corrupt, fmt::format("value {} is listed as an input of the net but is none", name_of(id)));
      else if (listed[id.index])
        fail(Code::duplicate_name, fmt::format("input {} of the net is listed twice", name_of(id)));
      else
        listed[id.index] = true;
    }
    for (size_t i = 0; i < net_.values.size(); ++i)
      if (net_.values[i].kind == Value::Kind::input && !listed[i])
        fail(Code::file_corrupt,
             fmt::format("value {} is an input but not listed among the inputs of the net", quoted(net_.values[i].name)));
  }
  void check_outputs() {
    std::vector<bool> listed(net_.values.size());
    for (const ValueId id : net_.outputs) {
      if (!exists(id)) {
        fail(Code::dangling_input, fmt::format("an output of the net is value {}, which does not exist", id.index));
        continue;
      }
      if (!defined_[id.index]) {
        reported_[id.index] = true;
        fail(Code::dangling_input, fmt::format("output {} of the net is defined by no operator", name_of(id)));
      }
      // Callers identify outputs by name; a branch or loop body may give one value twice, as its outputs go by position.
      if (top_ && listed[id.index]) fail(Code::duplicate_name, fmt::format("output {} of the net is listed twice", name_of(id)));
      listed[id.index] = true;
    }
  }
  void check_sparse_link(const SparseLink& link) {
    add(check_name(link.kind, "the kind of a sparse link", limits_));
    if (!exists(link.of) || !exists(link.indices) || !exists(link.values))
      fail(Code::dangling_input, "a sparse link names a value that does not exist");
    else if (!defined_[link.of.index] || !defined_[link.indices.index] || !defined_[link.values.index])
      fail(Code::dangling_input, fmt::format("a sparse link of {} names a value that no operator defines", name_of(link.of)));
    if (link.rows < 0) fail(Code::file_corrupt, fmt::format("a sparse link has {} rows", link.rows));
  }
  // The checks of readers find undefined values only where they are read; this finds those without a reader.
  void check_undefined() {
    for (size_t i = 0; i < net_.values.size(); ++i)
      if (!defined_[i] && !reported_[i])
        fail(Code::dangling_input, fmt::format("value {} is defined by no operator", quoted(net_.values[i].name)),
             "remove it, or add the operator");
  }

  const Net& net_;
  const bool top_;
  const Limits& limits_;
  Findings& findings_;
  NetLinks links_;
  std::vector<bool> defined_;   // by value
  std::vector<bool> reported_;  // by value: that it is undefined was reported
};

}  // namespace

NetLinks check_structure(const Net& net, bool top, const Limits& limits, Findings& findings) {
  return StructureCheck(net, top, limits, findings).run();
}

void link_net(Net& net, bool top, const Limits& limits, Findings& findings) {
  const size_t before = findings.count();
  const NetLinks links = check_structure(net, top, limits, findings);
  // After a finding an id may not exist: no id may be used from here on.
  if (findings.count() != before) return;
  for (size_t i = 0; i < net.values.size(); ++i) {
    Value& value = net.values[i];
    value.producer = links.origins[i].producer;
    value.output = links.origins[i].output;
    if (value.kind == Value::Kind::variable) value.type = net[value.variable].type;
  }
  for (size_t i = 0; i < net.variables.size(); ++i) {
    net.variables[i].first = links.first_version[i];
    net.variables[i].last = links.last_version[i];
  }
}

}  // namespace heddle

#include "resolve/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/text/findings.h"
#include "base/text/option_names.h"
#include "base/text/suggestions.h"
#include "base/text/text.h"
#include "net/batch_parts.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"
#include "resolve/subnet_ports.h"
#include "resolve/updates.h"

namespace heddle {
namespace {

class Resolver {
 public:
  Resolver(const std::shared_ptr<const RegistrySnapshot>& registry, const Limits& limits) : registry_(*registry), limits_(limits) {}

  // `adopted`: the variables of a subnet.
  void run(Net& net, int64_t depth, const Adopted& adopted = {});
  const Findings& findings() const { return findings_; }
  // Counts, after the outermost run, how often each operator that no plugin has is used.
  void count_uses();

 private:
  void report(const Net& net, const Node& node, Status status) {
    findings_.add(std::move(status).at(node.name, display_name(node.domain, node.type)).in_net(net.name));
  }
  const OperatorSchema* schema_of(const Net& net, const Node& node);
  void report_unknown(const Net& net, const Node& node, int32_t version);
  void check_order(const Net& net, const Node& node, size_t position, const std::vector<char>& defined);
  void check_arity(const Net& net, const Node& node);
  void check_attributes(const Net& net, Node& node, int64_t depth);
  void resolve_subnet(const Net& net, const Node& node, const heddle_subnet_ports& ports, std::shared_ptr<const Net>& subnet,
                      int64_t depth);
  void check_versions(const Net& net, const Node& node);
  void apply_updates(Net& net, Node& node);

  const RegistrySnapshot& registry_;
  const Limits& limits_;
  Findings findings_;
  Suggestions suggestions_;
  int64_t nodes_ = 0;
  struct Known {
    const OperatorSchema* schema = nullptr;
    int64_t uses = 0;
    size_t finding = SIZE_MAX;  // in findings_, of an operator that is not known; SIZE_MAX: there is none
  };
  std::unordered_map<std::string, Known> known_;  // by domain, type and version: a net has few distinct operators
};

// A node's own version takes precedence over that of its domain's operator set; 0: the newest that is loaded.
int32_t wanted_version(const Net& net, const Node& node) {
  if (node.version > 0) return node.version;
  for (const OperatorSetVersion& set : net.operator_sets)
    if (set.domain == node.domain) return set.version;
  return 0;
}

// A net of a thousand unknown nodes of one type has one mistake: only the first is reported.
const OperatorSchema* Resolver::schema_of(const Net& net, const Node& node) {
  const int32_t version = wanted_version(net, node);
  const auto [it, is_new] = known_.try_emplace(fmt::format("{}\n{}\n{}", node.domain, node.type, version));
  Known& known = it->second;
  ++known.uses;
  if (!is_new) return known.schema;
  known.schema = registry_.find_operator(node.domain, node.type, version);
  if (known.schema) return known.schema;
  const size_t kept = findings_.all().size();
  report_unknown(net, node, version);
  if (findings_.all().size() > kept) known.finding = kept;
  return nullptr;
}

void Resolver::report_unknown(const Net& net, const Node& node, int32_t version) {
  // An operator that only lacks the version is reported apart from an unknown one: the fix is another import, not another plugin.
  if (const OperatorSchema* newest = registry_.find_operator(node.domain, node.type)) {
    report(net, node,
           {Code::unknown_operator,
            fmt::format("version {} of the operator is not known; the loaded plugins have version {}", version, newest->version),
            "import the model again, which brings its operators to the newest semantics"});
    return;
  }
  const std::vector<std::string> names = registry_.operator_names(node.domain);
  Hint hint = suggestions_.of(node.type, [&] { return names; });
  // The plugins that come with Heddle hold all the operators of ONNX's own domain that it has: no other plugin will provide more.
  if (hint.text.empty() && node.domain.empty() && !names.empty())
    hint = Hint("express it by other operators, or use one of a plugin's own domain");
  if (hint.text.empty()) hint = hint_with("load a plugin that has it with ", option_names::plugins);
  report(net, node, {Code::unknown_operator, "no loaded plugin has this operator", std::move(hint)});
}

void Resolver::count_uses() {
  for (const auto& [key, known] : known_)
    if (known.finding != SIZE_MAX && known.uses > 1) findings_.append(known.finding, fmt::format(", used {} times", known.uses));
}

void Resolver::check_order(const Net& net, const Node& node, size_t position, const std::vector<char>& defined) {
  for (const ValueId id : node.inputs) {
    if (!id.valid() || defined[id.index]) continue;
    const Value& value = net[id];
    const bool later = value.producer.valid() && value.producer.index >= position;
    report(net, node,
           later ? Status(Code::cycle,
                          fmt::format("reads {}, which {} produces later or from it", quoted(value.name), quoted(net[value.producer].name)),
                          "order the operators so that each reads what earlier ones produced")
                 : Status(Code::dangling_input, fmt::format("reads {}, which nothing produces", quoted(value.name)),
                          "add its producer or make it a net input"));
  }
  for (const NodeId before : node.control)
    if (before.index >= position)
      report(net, node,
             {Code::cycle, fmt::format("has a control input from {}, which runs later", quoted(net[before].name)), "order the operators"});
}

void Resolver::check_arity(const Net& net, const Node& node) {
  const heddle_operator& op = *node.schema->op;
  const auto too_many = [&](const char* what, size_t n, uint32_t most) {
    report(net, node, {Code::arity_mismatch, fmt::format("has {} {}, the operator has at most {}", n, what, most)});
  };
  if (!node.inputs.empty() && !node.schema->input_port(node.inputs.size() - 1)) too_many("inputs", node.inputs.size(), op.input_count);
  if (!node.outputs.empty() && !node.schema->output_port(node.outputs.size() - 1))
    too_many("outputs", node.outputs.size(), op.output_count);
  for (uint32_t i = 0; i < op.input_count; ++i) {
    const bool given = i < node.inputs.size() && node.inputs[i].valid();
    if (!given && !(op.inputs[i]->flags & HEDDLE_PORT_OPTIONAL))
      report(net, node,
             {Code::arity_mismatch, fmt::format("input {} is missing", quoted(op.inputs[i]->name)),
              fmt::format("give {} inputs or more", i + 1)});
  }
}

void Resolver::check_attributes(const Net& net, Node& node, int64_t depth) {
  const OperatorSchema& schema = *node.schema;
  std::vector<char> given(schema.op->attribute_count, 0);
  for (Attribute& attribute : node.attributes) {
    const int index = schema.attribute_index(attribute.name);
    if (index < 0) {
      std::vector<std::string> known;
      for (uint32_t i = 0; i < schema.op->attribute_count; ++i) known.emplace_back(schema.op->attributes[i]->name);
      std::string hint = suggestions_.of(attribute.name, [&] { return known; });
      if (hint.empty()) hint = known.empty() ? "the operator has no attributes" : fmt::format("it has: {}", join(known, ", "));
      report(net, node, {Code::unknown_attribute, fmt::format("attribute {} is unknown", quoted(attribute.name)), hint});
      continue;
    }
    if (given[static_cast<size_t>(index)]++)
      report(net, node, {Code::duplicate_name, fmt::format("attribute {} is given twice", quoted(attribute.name)), "keep one of the two"});
    const heddle_attribute_type wanted = schema.op->attributes[index]->type;
    const heddle_attribute_type type = attribute_type(attribute.value);
    if (!fit_attribute(wanted, &attribute.value))
      report(net, node,
             {Code::attribute_mismatch, fmt::format("attribute {} is {}, must be {}", quoted(attribute.name), attribute_type_name(type),
                                                    attribute_type_name(wanted))});
    auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    if (subnet && wanted == HEDDLE_ATTRIBUTE_SUBNET) resolve_subnet(net, node, *schema.op->attributes[index]->ports, *subnet, depth);
  }
  for (uint32_t i = 0; i < schema.op->attribute_count; ++i)
    if (schema.op->attributes[i]->required && !given[i])
      report(net, node,
             {Code::attribute_mismatch, fmt::format("attribute {} is missing and has no default", quoted(schema.op->attributes[i]->name))});
}

void Resolver::resolve_subnet(const Net& net, const Node& node, const heddle_subnet_ports& ports, std::shared_ptr<const Net>& subnet,
                              int64_t depth) {
  // Other copies of the net share the subnet: a copy of it is resolved.
  auto inner = std::make_shared<Net>(*subnet);
  std::unordered_set<uint32_t> handed;
  if (!inner->variables.empty())
    for (const ValueId input : inner->inputs) handed.insert(input.index);
  for (const Variable& variable : inner->variables)
    if (handed.count(variable.first.index) == 0) {
      report(net, node,
             {Code::subnet_mismatch,
              fmt::format("subnet {} has variable {}, and subnets have no memory of their own", quoted(inner->name), quoted(variable.name)),
              "declare it in the outermost net and hand its value to the subnet"});
      break;
    }
  Adopted adopted;
  const Status fits = check_subnet_ports(node, ports, *inner);
  if (!fits.ok())
    findings_.add(from_subnet(fits, inner->name, net.name, node.name, display_name(node.domain, node.type)));
  else if (Status status = adopt_variables(net, node, ports, *inner, adopted); !status.ok())
    report(net, node, std::move(status));
  // A subnet that names no operator sets uses those of the net around it.
  if (inner->operator_sets.empty()) inner->operator_sets = net.operator_sets;
  const auto known = [&](const Node& each) { return registry_.find_operator(each.domain, each.type, wanted_version(*inner, each)); };
  trace_updates(*inner, known, adopted);
  run(*inner, depth + 1, adopted);
  subnet = std::move(inner);
}

// Only an operator that updates a variable makes a version of it.
void Resolver::check_versions(const Net& net, const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].valid() || net[node.outputs[i]].kind != Value::Kind::variable || updated_input(net, node, i) >= 0) continue;
    const Value& value = net[node.outputs[i]];
    report(net, node,
           {Code::hazard,
            fmt::format("produces version {} of variable {}, but the operator updates nothing", value.version,
                        quoted(net[value.variable].name)),
            "use an operator that updates its input, or give the result a name of its own"});
  }
}

// Makes the outputs of updates versions of their variables. A file may already number the versions itself: then they are only checked.
void Resolver::apply_updates(Net& net, Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const heddle_port* port = node.schema->output_port(i);
    if (node.schema->updated_input(i) < 0 || !node.outputs[i].valid()) continue;
    const auto index = static_cast<size_t>(node.schema->updated_input(i));
    const ValueId before = index < node.inputs.size() ? node.inputs[index] : ValueId();
    if (!before.valid() || net[before].kind != Value::Kind::variable) {
      report(net, node,
             {Code::hazard,
              fmt::format("output {} updates input {}, which is not a variable", quoted(port->name),
                          quoted(node.schema->input_port(index)->name)),
              "feed it a variable"});
      continue;
    }
    Value& after = net[node.outputs[i]];
    Variable& variable = net[net[before].variable];
    if (after.kind == Value::Kind::variable) {
      if (after.variable != net[before].variable || after.version != net[before].version + 1)
        report(net, node,
               {Code::hazard,
                fmt::format("updates version {} of variable {}, but output {} is version {} of {}", net[before].version,
                            quoted(variable.name), quoted(after.name), after.version, quoted(net[after.variable].name)),
                "let it be the next version of the variable it updates"});
      continue;
    }
    // With two updates of one version it would be undefined which of them is written last.
    if (variable.last != before) {
      report(net, node,
             {Code::hazard,
              fmt::format("updates version {} of variable {}, which has been updated already", net[before].version, quoted(variable.name)),
              "update the newest version"});
      continue;
    }
    after.kind = Value::Kind::variable;
    after.variable = net[before].variable;
    after.version = net[before].version + 1;
    variable.last = node.outputs[i];
  }
}

// Random operators never share a stream, nor do the subnets of operators: equal or missing ids in a file do not mean sharing. Those that
// work on different parts of one batch do, since each draws the numbers of its rows; but not subnets, which do not know their rows.
void separate_streams(Net& net) {
  const auto draws = [](const Node& node) { return node.schema && (node.schema->has_trait(HEDDLE_TRAIT_RANDOM) || node.has_subnet()); };
  uint32_t next = 0;
  for (const Node& node : net.nodes) next = std::max(next, node.random_stream);
  const std::vector<NodeId> parts = batch_parts(net);
  std::set<std::pair<uint32_t, int64_t>> taken;
  for (size_t n = 0; n < net.nodes.size(); ++n) {
    Node& node = net.nodes[n];
    const bool by_rows = !parts.empty() && parts[n].valid() && !node.has_subnet();
    const int64_t part = by_rows ? net[parts[n]].int_attribute("part", 0) : -1;
    if (draws(node) && !taken.emplace(node.random_stream, part).second) node.random_stream = ++next;
  }
}

void Resolver::run(Net& net, int64_t depth, const Adopted& adopted) {
  if (depth > limits_.subnet_depth) {
    findings_.add(over_limit(limits_, &Limits::subnet_depth, "subnets nest too deep").in_net(net.name));
    return;
  }
  // Counted over all depths: nested nets may each be within the limit and exceed it together.
  nodes_ += static_cast<int64_t>(net.nodes.size());
  if (nodes_ > limits_.nodes) {
    findings_.add(over_limit(limits_, &Limits::nodes, "the net has too many operators").in_net(net.name));
    return;
  }
  std::vector<char> defined(net.values.size(), 0);
  for (size_t i = 0; i < net.values.size(); ++i) {
    const Value& v = net.values[i];
    defined[i] =
        v.kind == Value::Kind::input || v.kind == Value::Kind::constant || (v.kind == Value::Kind::variable && !v.producer.valid());
  }
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    Node& node = net.nodes[i];
    check_order(net, node, i, defined);
    // Done even if the operator turns out to be wrong: one mistake must not be reported again by all readers of its outputs.
    for (const ValueId id : node.outputs)
      if (id.valid()) defined[id.index] = 1;
    node.schema = schema_of(net, node);
    if (!node.schema) continue;
    check_arity(net, node);
    mark_updates(net, node, adopted);
    check_attributes(net, node, depth);
    if (!net.variables.empty()) check_versions(net, node);
    if (node.schema->updates_variable()) apply_updates(net, node);
  }
  separate_streams(net);
  for (const ValueId id : net.outputs)
    if (!defined[id.index])
      findings_.add(
          Status(Code::dangling_input, fmt::format("output {} of the net is produced by nothing", quoted(net[id].name)), "add its producer")
              .in_net(net.name));
}

}  // namespace

Result<Net> resolve(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const Limits& limits) {
  Resolver resolver(registry, limits);
  resolver.run(net, 0);
  resolver.count_uses();
  if (resolver.findings().failed()) return resolver.findings().status();
  // Schemas are in the plugins' memory: the net keeps the snapshot and so the libraries.
  net.keep_alive.push_back(registry);
  return net;
}

}  // namespace heddle

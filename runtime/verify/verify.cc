#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/device_name.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "device/device_manager.h"
#include "device/locations.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "resolve/collectives.h"
#include "resolve/updates.h"
#include "verify/visit_subnets.h"

namespace heddle {
namespace {

class Verifier {
 public:
  Verifier(const TypedNet& typed, const CompilationTarget& target, const VerifyOptions& options, Findings& findings)
      : typed_(typed),
        net_(typed.net),
        target_(target),
        options_(options),
        findings_(findings),
        devices_(typed.devices.size()),
        locations_(typed) {}

  void run() {
    if (!options_.subnet) {
      check_devices();
      check_devices_inside();
    }
    if (!locations_.all_on_host() && !options_.subnet)
      for (size_t i = 0; i < net_.nodes.size(); ++i) check_placement(NodeId(i));
    check_variables();
    check_links();
    check_outputs();
    check_collectives();
    check_unused();
    if (options_.nets_inside) check_subnets();
  }

 private:
  void report(const Node& node, Status status) {
    findings_.add(std::move(status).at(node.name, display_name(node.domain, node.type)).in_net(net_.name));
  }
  bool typed(ValueId id) const { return typed_.type(id).dtype != DType::none; }

  void check_devices() {
    std::vector<char> seen(typed_.devices.size(), 0);
    // The default device must exist even when no node of the net has a kernel there.
    if (const std::string& name = target_.default_device; !is_host(name)) {
      findings_.add(std::move(check_device(*typed_.registry, name)).in_net(net_.name));
      const auto it = std::find(typed_.devices.begin(), typed_.devices.end(), name);
      if (it != typed_.devices.end()) seen[static_cast<size_t>(it - typed_.devices.begin())] = 1;  // reported once, not by every operator
    }
    for (const Node& node : net_.nodes) {
      if (node.placed == host_device) {
        check_host_name(node);
        continue;
      }
      Status& status = devices_[node.placed.index];
      if (!std::exchange(seen[node.placed.index], 1)) status = check_device(*typed_.registry, typed_.device_of(node));
      if (!status.ok()) report(node, needed_there(node, status));
    }
  }
  // Adds to `status`, about the operator's device, which values of the net were to be there.
  Status needed_there(const Node& node, Status status) const {
    std::string what;
    for (const ValueId v : node.inputs)
      if (v.valid() && what.empty())
        what = fmt::format(" (it would read {} of {} there)", quoted(net_[v].name),
                           quoted(locations_.all_on_host() ? host_name : typed_.devices[locations_.of(v).index]));
    for (const ValueId v : node.outputs)
      if (v.valid() && net_[v].variable.valid())
        what = fmt::format(" (it would update variable {} there)", quoted(net_[net_[v].variable].name));
    status.diagnostic().message += what;
    return status;
  }
  void check_host_name(const Node& node) {
    const std::string device = full_device_name(node.device, target_.default_device);
    if (is_host(device) && device != host_name)
      report(node, needed_there(
                       node, {Code::no_such_device, fmt::format("device {} does not exist", quoted(device)), "there is one cpu: cpu:0"}));
  }
  // Checks the devices that nets inside name, so that mistakes are found too where only the run knows the types.
  void check_devices_inside() {
    for (const Node& node : net_.nodes) check_inside(net_.name, node, typed_.device_of(node), findings_);
  }
  // `device`: of the operator, where its subnets run; nodes that they place on the host may stay there.
  static void check_inside(const std::string& net, const Node& node, const std::string& device, Findings& findings) {
    std::set<std::string> said;  // branches may be copies of one net
    for (const Attribute& attribute : node.attributes) {
      const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
      if (!subnet) continue;
      Findings inside;
      for (const Node& inner : (*subnet)->nodes) {
        const std::string there = full_device_name(inner.device, device);
        if (there != device && there != host_name)
          inside.add(Status(Code::unsupported, fmt::format("is put on {}, but its subnet runs on {}", quoted(there), quoted(device)),
                            "leave its device out")
                         .at(inner.name, display_name(inner.domain, inner.type))
                         .in_net((*subnet)->name));
        check_inside((*subnet)->name, inner, there == host_name ? there : device, inside);
      }
      for (const Diagnostic& d : inside.all()) {
        Status outside = from_subnet(Status(d), (*subnet)->name, net, node.name, display_name(node.domain, node.type));
        if (said.insert(outside.text()).second) findings.add(std::move(outside));
      }
    }
  }
  void check_subnets() {
    const CompilationTarget host = target_.for_subnets();
    VerifyOptions inner;
    inner.evaluator = options_.evaluator;
    inner.subnet = true;
    for (size_t i = 0; i < net_.nodes.size(); ++i)
      visit_subnets(typed_, NodeId(i), options_.evaluator, findings_,
                    [&](const TypedNet& subnet, bool, Findings& inside) { verify(subnet, host, inner, inside); });
  }

  bool updates_elsewhere(NodeId id, VariableId variable) const {
    return variable.valid() && std::any_of(net_[id].outputs.begin(), net_[id].outputs.end(), [&](ValueId v) {
             return v.valid() && net_[v].variable == variable && locations_.of(v) != locations_.of(id);
           });
  }

  // Copies needed for the net's inputs, outputs and constants are always made; known values become constants. A crossing from or to a
  // device that does not exist is reported once that is corrected, and an update of a variable that lives elsewhere is reported once.
  void check_placement(NodeId id) {
    const Node& node = net_[id];
    const auto known = [&](ValueId v) { return !v.valid() || typed_.known[v.index]; };
    const bool folded = !node.outputs.empty() && std::all_of(node.outputs.begin(), node.outputs.end(), known);
    for (size_t i = 0; i < node.inputs.size() && !folded; ++i) {
      if (!node.inputs[i].valid()) continue;
      const Value& value = net_[node.inputs[i]];
      const DeviceId there = locations_.of(node.inputs[i]), here = locations_.wanted(id, i);
      if (there == here || (!value.producer.valid() && !value.variable.valid()) || typed_.known[node.inputs[i].index]) continue;
      if (target_.copies == Copies::automatic || !devices_[there.index].ok() || !devices_[here.index].ok()) continue;
      if (value.variable.valid() && updates_elsewhere(id, value.variable)) continue;
      // An operator on the device itself may have host ports: above all for an operand that decides shapes.
      const heddle_port* const port = node.schema->input_port(i);
      const bool on_host = here != locations_.of(id);
      const char* const role = !on_host                                            ? "but input"
                               : port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND) ? "and needs on the host what decides shapes: input"
                                                                                   : "and reads on the host: input";
      const bool warns = target_.copies == Copies::warn;
      const char* const mend =
          on_host ? (warns ? "compute it on the host, or say " : "compute it on the host, or let copies be inserted with ")
                  : (warns ? "put both on one device, or say " : "put both on one device, or let copies be inserted with ");
      Status crossing(Code::wrong_device,
                      fmt::format("runs on {} {} {} is on {}, where {}{}", quoted(typed_.devices[locations_.of(id).index]), role,
                                  quoted(value.name), quoted(typed_.devices[there.index]),
                                  value.producer.valid() ? fmt::format("{} runs", quoted(net_[value.producer].name)) : "the variable lives",
                                  warns ? ": it is copied in each run" : ""),
                      hint_with(mend, option_names::automatic_copies));
      if (target_.copies == Copies::warn) crossing.diagnostic().severity = Severity::warning;
      report(node, std::move(crossing));
    }
    for (const ValueId v : node.outputs)
      if (v.valid() && updates_elsewhere(id, net_[v].variable))
        report(node,
               {Code::wrong_device,
                fmt::format("runs on {} but updates variable {}, which is updated on {}", quoted(typed_.devices[locations_.of(id).index]),
                            quoted(net_[net_[v].variable].name), quoted(typed_.devices[locations_.of(v).index])),
                "put all operators that update one variable on one device"});
  }

  // An update must write where the version before lies.
  void check_versions() {
    for (size_t i = 0; i < net_.values.size(); ++i) {
      const Value& value = net_.values[i];
      if (value.kind != Value::Kind::variable || !typed(ValueId(i))) continue;
      const Variable& variable = net_[value.variable];
      if (variable.last == ValueId(i) || !typed(variable.first)) continue;  // reported below
      const TensorType &first = typed_.type(variable.first), &now = typed_.types[i];
      if (first.dtype != now.dtype || first.shape != now.shape)
        findings_.add(Status(Code::shape_mismatch,
                             fmt::format("version {} of variable {} is {}{}, and {}{} before", value.version, quoted(variable.name),
                                         to_string(now.dtype), now.shape.text(), to_string(first.dtype), first.shape.text()),
                             "its updates must keep dtype and shape")
                          .in_net(net_.name));
    }
  }

  void check_variables() {
    if (!net_.variables.empty()) check_versions();
    for (const Variable& variable : net_.variables) {
      if (!typed(variable.first) || !typed(variable.last)) continue;
      const TensorType& first = typed_.type(variable.first);
      const TensorType& last = typed_.type(variable.last);
      if (first.dtype != last.dtype || first.shape != last.shape)
        findings_.add(Status(Code::shape_mismatch,
                             fmt::format("variable {} is {}{} before the run and {}{} after it", quoted(variable.name),
                                         to_string(first.dtype), first.shape.text(), to_string(last.dtype), last.shape.text()),
                             "its updates must keep dtype and shape")
                          .in_net(net_.name));
    }
    std::set<std::string> names;
    for (const Variable& variable : net_.variables)
      if (!names.insert(variable.name).second)
        findings_.add(Status(Code::duplicate_name, fmt::format("variable {} is declared twice", quoted(variable.name)), "rename one")
                          .in_net(net_.name));
  }

  void check_links() {
    for (const SparseLink& link : net_.sparse_links) {
      if (!typed(link.indices) || !typed(link.values)) continue;
      const TensorType& indices = typed_.type(link.indices);
      const TensorType& values = typed_.type(link.values);
      const bool integers = indices.dtype == DType::i32 || indices.dtype == DType::i64;
      const bool rows = indices.shape.rank() >= 1 && values.shape.rank() >= 1 && indices.shape.element_count() == values.shape[0];
      if (!integers || !rows)
        findings_.add(
            Status(Code::shape_mismatch,
                   fmt::format("sparse slice of {}: indices {} are {}{}, values are {}", quoted(net_[link.of].name),
                               quoted(net_[link.indices].name), to_string(indices.dtype), indices.shape.text(), values.shape.text()),
                   "give one i32 or i64 index for each row of the values")
                .in_net(net_.name));
    }
  }

  void check_outputs() {
    for (const ValueId id : net_.outputs)
      if (const Value& value = net_[id]; value.kind == Value::Kind::variable && net_[value.variable].last != id)
        findings_.add(Status(Code::hazard,
                             fmt::format("output {} is version {} of variable {}, which is overwritten in the same run", quoted(value.name),
                                         value.version, quoted(net_[value.variable].name)),
                             "make an Identity of it the output, or the newest version")
                          .in_net(net_.name));
    for (const ValueId id : net_.outputs)
      if (net_[id].kind == Value::Kind::constant && !options_.subnet) {
        Diagnostic d;
        d.severity = Severity::note;
        d.code = Code::ok;
        d.net = net_.name;
        d.message = fmt::format("output {} is a constant", quoted(net_[id].name));
        findings_.add(Status(std::move(d)));
      }
  }

  // Refuses collectives that depend on an update of a variable, or are inside an operator that makes one. Updates are made last, and cannot
  // be taken back: once they have begun, a peer that is lost could not end the run any more.
  void check_collectives() {
    if (net_.variables.empty()) return;
    std::vector<NodeId> after(net_.nodes.size());  // by node: an update that comes before it
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      const Node& node = net_.nodes[i];
      const auto follow = [&](NodeId before) {
        if (before.valid() && !after[i].valid()) after[i] = updates_variable(net_, net_[before]) ? before : after[before.index];
      };
      for (const ValueId v : node.inputs)
        if (v.valid()) follow(net_[v].producer);
      for (const NodeId before : node.control) follow(before);
      if (!has_collectives(node)) continue;
      if (updates_variable(net_, node))
        report(node, {Code::hazard, "updates a variable and works with peers inside: a run that fails then could not be undone",
                      "let the peers work in an operator of its own before it, and update with its result"});
      if (!after[i].valid()) continue;
      const Node& update = net_[after[i]];
      report(node, {Code::hazard,
                    fmt::format("works with peers after {} ({}) has updated a variable: a run that fails then could not be undone",
                                quoted(update.name), display_name(update.domain, update.type)),
                    "let it work with what the update reads, and update with its result"});
    }
  }

  // Warns of the operators that pruning will drop. An operator that others wait for, or that has side effects, is not among them.
  void check_unused() {
    std::vector<bool> read(net_.values.size(), false), waited_for(net_.nodes.size(), false);
    const auto reads = [&](const std::vector<ValueId>& ids) {
      for (const ValueId id : ids)
        if (id.valid()) read[id.index] = true;
    };
    reads(net_.outputs);
    for (const SparseLink& link : net_.sparse_links) reads({link.of, link.indices, link.values});
    for (const Node& node : net_.nodes) {
      reads(node.inputs);
      for (const NodeId before : node.control) waited_for[before.index] = true;
    }
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      const Node& node = net_.nodes[i];
      bool used = waited_for[i] || node.schema->has_trait(HEDDLE_TRAIT_IMPURE) || node.schema->has_trait(HEDDLE_TRAIT_COLLECTIVE);
      for (const ValueId id : node.outputs) used = used || (id.valid() && (read[id.index] || net_[id].kind == Value::Kind::variable));
      if (used) continue;
      Diagnostic d;
      d.severity = Severity::warning;
      d.code = Code::unused_operator;
      d.message = "nobody reads what it makes: it is left out of the plan";
      d.hint = "remove it, or make its output one of the net's";
      report(node, Status(std::move(d)));
    }
  }

  const TypedNet& typed_;
  const Net& net_;
  const CompilationTarget& target_;
  const VerifyOptions& options_;
  Findings& findings_;
  std::vector<Status> devices_;  // the error of each device, except the default one
  const Locations locations_;
};

}  // namespace

Findings verify(const TypedNet& net, const CompilationTarget& target, const VerifyOptions& options) {
  Findings findings;
  verify(net, target, options, findings);
  return findings;
}

void verify(const TypedNet& net, const CompilationTarget& target, const VerifyOptions& options, Findings& findings) {
  Verifier(net, target, options, findings).run();
}

}  // namespace heddle

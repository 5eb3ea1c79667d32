#include "verify/verify.h"

#include <set>

#include "base/text.h"
#include "plugin/kernel_call.h"
#include "plugin/registry.h"

namespace heddle {
namespace {

class Verifier {
 public:
  Verifier(const TypedNet& typed, const VerifyOptions& options, Findings& findings)
      : typed_(typed), net_(typed.net), options_(options), findings_(findings) {}

  void run() {
    for (const Node& node : net_.nodes) {
      check_device(node);
      check_placement(node);
    }
    check_variables();
    check_links();
    check_outputs();
    check_unused();
  }

 private:
  void report(const Node& node, Status status) {
    findings_.add(std::move(status).at(node.name, display_name(node.domain, node.type)).in_net(net_.name));
  }
  std::string device_of(const Node& node) const {
    const std::string& device = node.device.empty() ? options_.default_device : node.device;
    return device.find(':') == std::string::npos ? device + ":0" : device;
  }

  void check_device(const Node& node) {
    const std::string device = device_of(node), kind = device_kind(device);
    if (kind == "cpu") {
      if (device != "cpu:0")
        report(node, {Code::no_such_device, "device " + quoted(device) + " does not exist", "there is one cpu: cpu:0"});
      return;
    }
    std::shared_ptr<const LoadedPlugin> owner;
    if (!typed_.registry->find_device(kind, &owner))
      report(node,
             {Code::no_such_device, "device " + quoted(device) + " does not exist: no loaded plugin brings devices of kind " + quoted(kind),
              "load its plugin with --plugin, or choose cpu"});
  }

  // A value is where its producer runs; host ports and constants may be read from anywhere.
  void check_placement(const Node& node) {
    const std::string here = device_of(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const Value& value = net_[node.inputs[i]];
      const heddle_port* port = node.schema->input_port(i);
      if (!value.producer.valid() || (port && (port->flags & HEDDLE_PORT_HOST))) continue;
      const std::string there = device_of(net_[value.producer]);
      if (there != here)
        report(node, {Code::wrong_device,
                      "runs on " + quoted(here) + " but input " + quoted(value.name) + " is on " + quoted(there) + ", where " +
                          quoted(net_[value.producer].name) + " runs",
                      "put both on one device, or let copies be inserted with --copies auto"});
    }
  }

  void check_variables() {
    for (const Variable& variable : net_.variables) {
      const TensorType& first = typed_.type(variable.first);
      const TensorType& last = typed_.type(variable.last);
      if (first.dtype != last.dtype || first.shape != last.shape)
        findings_.add(Status(Code::shape_mismatch,
                             "variable " + quoted(variable.name) + " is " + to_string(first.dtype) + first.shape.text() +
                                 " before the run and " + to_string(last.dtype) + last.shape.text() + " after it",
                             "its updates must keep dtype and shape")
                          .in_net(net_.name));
    }
    std::set<std::string> names;
    for (const Variable& variable : net_.variables)
      if (!names.insert(variable.name).second)
        findings_.add(
            Status(Code::duplicate_name, "variable " + quoted(variable.name) + " is declared twice", "rename one").in_net(net_.name));
  }

  void check_links() {
    for (const SparseLink& link : net_.sparse_links) {
      const TensorType& indices = typed_.type(link.indices);
      const TensorType& values = typed_.type(link.values);
      const bool integers = indices.dtype == DType::i32 || indices.dtype == DType::i64;
      const bool rows = indices.shape.rank() >= 1 && values.shape.rank() >= 1 && indices.shape.element_count() == values.shape[0];
      if (!integers || !rows)
        findings_.add(Status(Code::shape_mismatch,
                             "sparse slice of " + quoted(net_[link.of].name) + ": indices " + quoted(net_[link.indices].name) + " are " +
                                 to_string(indices.dtype) + indices.shape.text() + ", values are " + values.shape.text(),
                             "give one i32 or i64 index for each row of the values")
                          .in_net(net_.name));
    }
  }

  void check_outputs() {
    for (const ValueId id : net_.outputs)
      if (net_[id].kind == Value::Kind::constant) {
        Diagnostic d;
        d.severity = Severity::note;
        d.code = Code::ok;
        d.net = net_.name;
        d.message = "output " + quoted(net_[id].name) + " is a constant";
        findings_.add(Status(std::move(d)));
      }
  }

  // What pruning is about to leave out. An operator that others wait for, or that does something beside its outputs, is not among it.
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
  const VerifyOptions& options_;
  Findings& findings_;
};

}  // namespace

Findings verify(const TypedNet& net, const VerifyOptions& options) {
  Findings findings;
  Verifier(net, options, findings).run();
  return findings;
}

}  // namespace heddle

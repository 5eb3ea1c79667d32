#include "place/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/device_name.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "device/device_manager.h"
#include "device/locations.h"
#include "edit/editor.h"
#include "place/host_regions.h"
#include "plugin/kernel_call.h"
#include "plugin/pointwise_lowering.h"

namespace heddle {
namespace {

// Bounded results of values known before the run have a place; subnets whose extents are known only while they run go to the host.
bool has_late_value(const TypedNet& net, const Node& node) {
  const auto late = [&](ValueId id) { return id.valid() && net.type(id).late(); };
  const auto unplaced = [&](ValueId id) { return id.valid() && (net.type(id).dynamic || net.type(id).follows_bounded); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), late) || std::any_of(node.outputs.begin(), node.outputs.end(), unplaced);
}

// Returns the types of a node's operands, for a message: f32, i64.
std::string types_of(const TypedNet& net, const Node& node) {
  std::vector<std::string> types;
  for (const std::vector<ValueId>* side : {&node.inputs, &node.outputs})
    for (const ValueId v : *side) {
      const std::string type = v.valid() ? to_string(net.type(v).dtype) : "";
      if (!type.empty() && std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
    }
  return join(types, ", ");
}

std::string because(const TypedNet& net, const Node& node, Obstacle obstacle, const std::string& device) {
  switch (obstacle) {
    case Obstacle::other_types:
      return fmt::format("its kernels for {} do not take these types: {}", quoted(device), types_of(net, node));
    case Obstacle::late_subnets:
      return "its subnets have extents that are known only while they run";
    case Obstacle::updating_subnets:
      return "its subnets update variables";
    case Obstacle::late_outputs:
      return fmt::format("the extents of its outputs are found on the host, and {} runs the host's kernel for it", quoted(device));
    default:
      return fmt::format("no kernel for it on {}", quoted(device));
  }
}

Status fallen_back(const TypedNet& net, const Node& node, Obstacle obstacle, const std::string& device, Copies copies) {
  const bool asked_for = copies == Copies::automatic;  // but not done silently
  Status status(
      Code::no_kernel, fmt::format("runs on {}: {}", quoted(host_name), because(net, node, obstacle, device)),
      asked_for ? "load a plugin that has one" : hint_with("load a plugin that has one, or say ", option_names::automatic_copies));
  status.diagnostic().severity = asked_for ? Severity::note : Severity::warning;
  return std::move(status).at(node.name, display_name(node.domain, node.type));
}

Status moved(const Net& net, const HostRegion& region, const std::string& device, Copies copies) {
  constexpr size_t max_names = 3;
  std::vector<std::string> others;
  for (size_t i = 1; i < region.nodes.size() && i <= max_names; ++i) others.push_back(quoted(net[region.nodes[i]].name));
  if (region.nodes.size() > max_names + 1) others.push_back(fmt::format("{} more", region.nodes.size() - max_names - 1));
  const std::string there = quoted(device);
  const std::string keep = fmt::format("give it the device {} to keep it there", there);
  const bool asked_for = copies == Copies::automatic;
  Status status(Code::wrong_device,
                fmt::format("runs on {}{}{}: {} bytes fewer are copied in each run than with it on {}", quoted(host_name),
                            others.empty() ? "" : " together with ", join(others, ", "), region.saved_bytes, there),
                asked_for ? Hint(keep) : hint_with(fmt::format("{}, or say ", keep), option_names::automatic_copies));
  status.diagnostic().severity = asked_for ? Severity::note : Severity::warning;
  const Node& first = net[region.nodes[0]];
  return std::move(status).at(first.name, display_name(first.domain, first.type)).in_net(net.name);
}

}  // namespace

Obstacle obstacle(const TypedNet& net, const Node& node, const std::string& device, bool has_pointwise) {
  const auto untyped = [&](ValueId id) { return id.valid() && net.type(id).dtype == DType::none; };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), untyped) || std::any_of(node.outputs.begin(), node.outputs.end(), untyped))
    return Obstacle::none;
  if (node.has_subnet() && has_late_value(net, node)) return Obstacle::late_subnets;
  const auto updates = [&](ValueId v) { return v.valid() && net.net[v].variable.valid(); };
  if (node.has_subnet() && std::any_of(node.outputs.begin(), node.outputs.end(), updates)) return Obstacle::updating_subnets;
  if (is_copy(node) || node.schema->has_trait(HEDDLE_TRAIT_VIEW) || (has_pointwise && becomes_pointwise(net, node))) return Obstacle::none;
  const KernelEntry* const kernel = KernelCall(net, node, device, 1).find();
  if (!kernel) return net.registry->has_kernel(*node.schema, device_kind(device)) ? Obstacle::other_types : Obstacle::no_kernel;
  if (!has_late_value(net, node)) return Obstacle::none;
  const bool finds_extents = (kernel->kernel->flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS) != 0;
  return finds_extents && is_launched(*kernel->kernel, device) ? Obstacle::late_outputs : Obstacle::none;
}

bool is_known(const TypedNet& net, const Node& node) {
  return !node.outputs.empty() &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return !v.valid() || net.known[v.index]; });
}

namespace {

DeviceId device_id(TypedNet& net, const std::string& name) {
  const auto at = static_cast<size_t>(std::find(net.devices.begin(), net.devices.end(), name) - net.devices.begin());
  if (at == net.devices.size()) net.devices.push_back(name);
  return DeviceId(at);
}

// Places the net's inputs and outputs: where the caller, or the operator whose subnet this is, puts them.
void place_ports(TypedNet& net, const CompilationTarget& target, Findings& findings) {
  net.input_places.assign(net.net.inputs.size(), host_device);
  net.output_places.assign(net.net.outputs.size(), host_device);
  if (target.own_ports) {
    const DeviceId there = device_id(net, target.default_device);
    for (size_t i = target.own_ports->inputs; i < net.input_places.size(); ++i) net.input_places[i] = there;
    for (size_t o = target.own_ports->outputs; o < net.output_places.size(); ++o) net.output_places[o] = there;
  }
  for (const auto& port : target.placed_ports) {
    const std::string& name = port.first;
    const std::string full = full_device_name(port.second, host_name);
    bool found = false;
    const auto place = [&](const std::vector<ValueId>& ports, std::vector<DeviceId>& places) {
      for (size_t i = 0; i < ports.size(); ++i) {
        if (net.net[ports[i]].name != name) continue;
        found = true;
        places[i] = is_host(full) ? host_device : device_id(net, full);
      }
    };
    place(net.net.inputs, net.input_places);
    place(net.net.outputs, net.output_places);
    Status status = is_host(full) ? Status() : check_device(*net.registry, full);
    if (!found)
      status = Status(Code::unknown_name, fmt::format("the net has no input or output {} to be on {}", quoted(name), quoted(full)));
    for (const ValueId input : net.shape_inputs)
      if (status.ok() && net.net[input].name == name && !is_host(full))
        status = Status(Code::wrong_device, fmt::format("input {} decides shapes and is to be on {}", quoted(name), quoted(full)),
                        "leave it on the host");
    for (const ValueId output : net.net.outputs)
      if (status.ok() && net.net[output].name == name && !is_host(full) && net.type(output).late())
        status =
            Status(Code::unsupported,
                   fmt::format("output {} has extents that are known only while it runs, and is to be on {}", quoted(name), quoted(full)),
                   "leave it on the host");
    findings.add(std::move(status).in_net(net.net.name));
  }
}

}  // namespace

bool runs_pointwise(const TypedNet& net, const std::string& device) {
  const OperatorSchema* pointwise = net.registry->find_operator("heddle", "Pointwise");
  const DType f32[] = {DType::f32};
  return pointwise && net.registry->find_kernel(*pointwise, device_kind(device), f32, f32);
}

bool runs_where_it_is(const TypedNet& net, const Node& node) {
  const std::string& device = net.device_of(node);
  return runs_on(net, node, device, runs_pointwise(net, device));
}

namespace {

// Places the operators of a net whose ports are placed.
class Placement {
 public:
  Placement(TypedNet net, const CompilationTarget& target, Findings& findings)
      : target_(target), findings_(findings), editor_(std::move(net)) {}

  TypedNet run() {
    for (size_t i = 0; i < editor_.graph().nodes.size(); ++i) place(NodeId(i));
    for (const auto& [device, left] : left_) {
      if (!left.id.valid()) continue;
      for (const HostRegion& region : host_regions(editor_.net(), left.id, left.on_host)) {
        findings_.add(moved(editor_.graph(), region, device, target_.copies));
        for (const NodeId id : region.nodes) editor_.set_device(id, host_device);
      }
    }
    return editor_.finish();
  }

 private:
  // A device that operators may be on, or on the host instead.
  struct Left {
    bool exists = false, has_pointwise = false;
    DeviceId id;                  // invalid: no operator that may be on the host is on it
    std::vector<NodeId> on_host;  // those that do not run on it
  };

  void place(NodeId id) {
    const Node& node = editor_.node(id);
    const std::string wanted = full_device_name(node.device, target_.default_device);
    // A collective stays with the others of its communicator.
    const bool is_free = node.device.empty() || (allows_host(node.device) && !node.schema->has_trait(HEDDLE_TRAIT_COLLECTIVE));
    if (is_free && is_known(editor_.net(), node)) return editor_.set_device(id, host_device);
    if (!is_free || is_host(wanted)) return editor_.set_device(id, editor_.device(wanted));
    Left& left = left_of(wanted);
    if (const Obstacle why = left.exists ? obstacle(editor_.net(), node, wanted, left.has_pointwise) : Obstacle::none;
        why != Obstacle::none) {
      findings_.add(fallen_back(editor_.net(), node, why, wanted, target_.copies).in_net(editor_.graph().name));
      left.on_host.push_back(id);
      return editor_.set_device(id, host_device);
    }
    left.id = editor_.device(wanted);
    editor_.set_device(id, left.id);
  }
  Left& left_of(const std::string& device) {
    const auto [at, fresh] = left_.try_emplace(device);
    if (!fresh || target_.copies == Copies::strict) return at->second;
    at->second.exists = check_device(*editor_.net().registry, device).ok();
    at->second.has_pointwise = at->second.exists && runs_pointwise(editor_.net(), device);
    return at->second;
  }

  const CompilationTarget& target_;
  Findings& findings_;
  Editor editor_;
  std::map<std::string, Left> left_;
};

}  // namespace

TypedNet place(TypedNet net, const CompilationTarget& target, Findings& findings) {
  const bool elsewhere = !is_host(target.default_device);
  const auto on_host = [&](const Node& node) { return node.device.empty() ? !elsewhere : is_host(node.device); };
  const bool places_ports = target.own_ports || !target.placed_ports.empty();
  if (!places_ports && std::all_of(net.net.nodes.begin(), net.net.nodes.end(), on_host)) return net;  // nothing to do
  if (places_ports) place_ports(net, target, findings);
  return Placement(std::move(net), target, findings).run();
}

void drop_unused_devices(TypedNet& net) {
  std::vector<DeviceId> kept(net.devices.size());
  std::vector<std::string> devices = {net.devices[host_device.index]};
  kept[host_device.index] = host_device;
  const auto keep = [&](DeviceId& place) {
    DeviceId& id = kept[place.index];
    if (!id.valid()) {
      id = DeviceId(devices.size());
      devices.push_back(net.devices[place.index]);
    }
    place = id;
  };
  for (Node& node : net.net.nodes) keep(node.placed);
  for (DeviceId& place : net.input_places) keep(place);
  for (DeviceId& place : net.output_places) keep(place);
  net.devices = std::move(devices);
}

}  // namespace heddle

// Placement: operators that name no device run on the default device; those that cannot, on the host.
#include <algorithm>

#include "base/device_name.h"
#include "base/text.h"
#include "device/locations.h"
#include "plugin/kernel_call.h"
#include "transform/transform.h"

namespace heddle {
namespace {

bool has_late_value(const TypedNet& net, const Node& node) {
  const auto late = [&](ValueId id) { return id.valid() && net.type(id).late(); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), late) || std::any_of(node.outputs.begin(), node.outputs.end(), late);
}

// Whether `node` runs on devices of that kind: it has a kernel there, becomes part of a Pointwise that has one, or runs nothing.
bool runs_on(const TypedNet& net, const Node& node, const std::string& device, bool has_pointwise) {
  // Of what is behind a mistake nothing is known, nor said.
  const auto untyped = [&](ValueId id) { return id.valid() && net.type(id).dtype == DType::none; };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), untyped) || std::any_of(node.outputs.begin(), node.outputs.end(), untyped))
    return true;
  if (has_late_value(net, node)) return false;
  if (is_copy(node) || node.schema->has_trait(HEDDLE_TRAIT_VIEW) || (has_pointwise && node.schema->op->pointwise)) return true;
  return KernelCall(net, node, device, 1).find() != nullptr;
}

}  // namespace

bool runs_pointwise(const TypedNet& net, const std::string& device) {
  const OperatorSchema* pointwise = net.registry->find_operator("heddle", "Pointwise");
  const DType f32[] = {DType::f32};
  return pointwise && net.registry->find_kernel(*pointwise, device_kind(device), f32, f32);
}

TypedNet place(TypedNet net, const std::string& default_device, bool fall_back, Findings& findings) {
  const std::string everywhere = full_device_name({}, default_device);
  const bool elsewhere = !is_host(everywhere);
  const bool has_pointwise = elsewhere && runs_pointwise(net, everywhere);
  for (Node& node : net.net.nodes) {
    if (!node.device.empty()) {
      // One spelling: fusions compare names.
      node.device = full_device_name(node.device, {});
      if (node.device == everywhere) node.device.clear();
    } else if (elsewhere && fall_back && !runs_on(net, node, everywhere, has_pointwise)) {
      node.device = "cpu:0";
      Diagnostic d;
      d.severity = Severity::warning;
      d.code = Code::no_kernel;
      d.message = "runs on " + quoted(node.device) + ": no kernel for it on " + quoted(everywhere);
      d.hint = "load a plugin that has one, or say --copies auto";
      findings.add(Status(std::move(d)).at(node.name, display_name(node.domain, node.type)).in_net(net.net.name));
    }
  }
  return net;
}

}  // namespace heddle

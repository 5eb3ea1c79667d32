// The collectives of a plan and their communicators: what a run needs before its first step, and what ranks compare with each other.
//
// The order is that of the net's operators, so that it depends neither on threads nor on where operators run. Ranks compare a hash of what
// each collective of a communicator is: its type, the dtypes and numbers of elements of its inputs, and its attributes, but no name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "base/checksum.h"
#include "base/device_name.h"
#include "base/text/text.h"
#include "compile/draft.h"
#include "plugin/abi_attributes.h"
#include "resolve/collectives.h"

namespace heddle::compiling {
namespace {

std::string content_text(const Blob& blob) {
  const std::span<const std::byte> bytes(blob.data, static_cast<size_t>(blob.bytes));
  return fmt::format("{}{}#{:016x}", to_string(blob.dtype), blob.shape.text(), checksum(bytes));
}

// `type_text(value)` is an input's dtype and number of elements.
template <class TypeText>
std::string signature(const Node& node, const TypeText& type_text) {
  std::string inputs, attributes;
  for (const ValueId v : node.inputs) inputs += (inputs.empty() ? "" : ", ") + (v.valid() ? type_text(v) : std::string("-"));
  const AttributeTable table(*node.schema, node.attributes);  // with defaults: a file need not have them
  for (uint32_t i = 0; i < table.size(); ++i) {
    const heddle_attribute* const given = table.data()[i];
    const std::optional<AttributeValue> value = given ? attribute_from_abi(*given) : std::nullopt;
    if (!value) continue;
    const auto* const tensor = std::get_if<std::shared_ptr<const Blob>>(&*value);
    attributes += fmt::format(" {}={}", given->name, tensor ? content_text(**tensor) : exact_text(*value));
  }
  return fmt::format("{}({}){}", display_name(node.domain, node.type), inputs, attributes);
}

using Planned = std::map<const Net*, const Plan*>;

// The plans of subnets that were made before the run.
Planned planned_in(const Plan& plan) {
  Planned planned;
  for (const PlanStep& step : plan.steps)
    for (const NestedPlan& nested : *step.nested) planned.emplace(nested.subnet.get(), nested.plan.get());
  return planned;
}

// Adds the collectives of a net inside a node. Where its plan is made during the run, the types of its values are left out.
void add_inside(const Node& node, const std::string& name, const std::string& device, const Planned& planned,
                std::vector<PlanCollective>& all) {
  for (const Attribute& attribute : node.attributes) {
    const auto* const inside = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    if (!inside) continue;
    if (const auto known = planned.find(inside->get()); known != planned.end()) {
      for (const PlanCollective& c : known->second->collectives)
        all.push_back({name + '/' + c.name, device, c.communicator, c.signature, c.tensors, c.bytes});
      continue;
    }
    for (const Node& n : (*inside)->nodes) {
      const std::string called = name + '/' + n.name;
      if (is_collective(n))
        all.push_back({called, device, communicator_of(n), signature(n, [](ValueId) { return std::string("?"); }),
                       static_cast<int64_t>(n.inputs.size()), 0});
      add_inside(n, called, device, planned, all);
    }
  }
}

// Returns what is added to a signature: nothing for a kernel of the host, also where a device launches it (sim), since these meet in one
// communicator; else the kind of the device and the library of the kernel, which all ranks need alike: " on cuda by nccl".
std::string kernels_kind(const Draft& draft, NodeId id) {
  const NodeDraft& d = draft.nodes[id.index];
  if (d.device == 0 || !d.kernel || draft.launched(id)) return {};
  const std::string& name = d.kernel->name;
  return fmt::format(" on {} by {}", device_kind(draft.device(id)), name.substr(0, name.find(':')));
}

std::vector<PlanCollective> collectives_of(const Draft& draft, const Planned& planned) {
  const TypedNet& typed = draft.typed;
  std::vector<PlanCollective> all;
  for (size_t n = 0; n < typed.net.nodes.size(); ++n) {
    const Node& node = typed.net.nodes[n];
    const std::string& device = typed.device_of(node);
    if (is_collective(node)) {
      PlanCollective& collective = all.emplace_back(
          PlanCollective{node.name, device, communicator_of(node), collective_signature(typed, node) + kernels_kind(draft, NodeId(n))});
      for (const ValueId input : node.inputs) {
        if (!input.valid()) continue;
        ++collective.tensors;
        collective.bytes += byte_width(typed.type(input).dtype) * typed.type(input).shape.element_count();
      }
    }
    add_inside(node, node.name, device, planned, all);
  }
  return all;
}

void add_need(Plan& plan, const CommunicatorNeed& need) {
  const auto known = [&](const CommunicatorNeed& other) { return other.key == need.key; };
  if (std::none_of(plan.communicator_needs.begin(), plan.communicator_needs.end(), known)) plan.communicator_needs.push_back(need);
}

}  // namespace

std::string communicator_of(const Node& node) {
  const AttributeValue* const value = node.find("communicator");
  const auto* const name = value ? std::get_if<std::string>(value) : nullptr;
  return name ? *name : std::string();
}

std::string collective_signature(const TypedNet& typed, const Node& node) {
  return signature(node, [&](ValueId v) {
    const TensorType& type = typed.type(v);
    const std::string count = type.late() ? type.shape.text() : fmt::format("[{}]", type.shape.element_count());
    return fmt::format("{}{}", to_string(type.dtype), count);
  });
}

void lay_out_collectives(Draft& draft) {
  Plan& plan = draft.plan;
  plan.collectives = collectives_of(draft, planned_in(plan));
  std::map<std::string, PlanCommunicator> by_name;
  std::map<std::string, std::string> signatures, lines;  // of the collectives, by communicator
  for (uint32_t i = 0; i < plan.collectives.size(); ++i) {
    const PlanCollective& collective = plan.collectives[i];
    by_name[collective.communicator].at.push_back(i);
    signatures[collective.communicator] += collective.signature + '\n';
    lines[collective.communicator] += fmt::format("{}\t{}\n", collective.signature, quoted(collective.name));
  }
  // Kernels may need a communicator whose operator is no collective.
  for (const PlanStep& step : plan.steps) {
    for (size_t i = 0; step.resources && i < step.resources->size(); ++i)
      if (const ResourceSlot& slot = (*step.resources)[i]; slot.of_communicator())
        add_need(plan, {slot.need, slot.need->key(), plan.place_of(step)});
    for (const NestedPlan& nested : *step.nested)
      for (const CommunicatorNeed& need : nested.plan->communicator_needs) add_need(plan, need);
  }
  // Ranks make the objects in one order, wherever their steps run.
  std::sort(plan.communicator_needs.begin(), plan.communicator_needs.end(), [](const CommunicatorNeed& a, const CommunicatorNeed& b) {
    return std::tie(a.need->communicator, a.key) < std::tie(b.need->communicator, b.key);
  });
  for (const CommunicatorNeed& need : plan.communicator_needs) by_name[need.need->communicator];
  for (auto& [name, communicator] : by_name) {
    communicator.name = name;
    communicator.hash = checksum(std::as_bytes(std::span(signatures[name])));
    communicator.collectives = std::move(lines[name]);
    for (const std::vector<NodeId>& group : draft.groups)
      if (communicator.devices.empty() && communicator_of(draft.node(group[0])) == name)
        for (const NodeId member : group) communicator.devices.push_back(draft.device(member));
    std::sort(communicator.devices.begin(), communicator.devices.end(),
              [](const std::string& a, const std::string& b) { return device_order(a) < device_order(b); });
    for (const auto& [key, text] : draft.typed.net.metadata)
      if (key == buckets_key(name))
        communicator.buckets = text;
      else if (key == ranks_key(name))
        communicator.net = draft.options.net_text;
    plan.communicators.push_back(std::move(communicator));
  }
}

}  // namespace heddle::compiling

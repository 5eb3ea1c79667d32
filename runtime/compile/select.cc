#include <algorithm>

#include "base/text/findings.h"
#include "base/text/text.h"
#include "compile/draft.h"

namespace heddle::compiling {

Status Draft::at(NodeId id, Status status) const {
  return std::move(status).at(node(id).name, display_name(node(id).domain, node(id).type)).in_net(typed.net.name);
}

bool Draft::launched(NodeId id) const {
  const NodeDraft& d = nodes[id.index];
  return d.device != 0 && d.kernel && is_launched(*d.kernel->kernel, device(id));
}

bool Draft::suspends(NodeId id) const {
  const NodeDraft& d = nodes[id.index];
  if (!d.kernel || d.device != 0 || (d.kernel->kernel->flags & HEDDLE_KERNEL_RESUMES) == 0) return false;
  // The plans of the subnets of a late step are not known before it runs.
  if (d.late) return node(id).has_subnet() && typed.registry->has_asynchronous_kernels();
  return std::any_of(d.nested.begin(), d.nested.end(), [](const NestedPlan& nested) { return nested.plan->has_asynchronous_steps; });
}

namespace {

bool is_late(const Draft& draft, const Node& node) {
  for (const ValueId id : node.inputs)
    if (id.valid() && draft.typed.type(id).late()) return true;
  for (const ValueId id : node.outputs)
    if (id.valid() && draft.typed.type(id).dynamic) return true;
  return false;
}

// True if the kernel reads the extents of bounded inputs itself: its step is planned at the bounds like any other. Where extents depend on
// bounded ones in another way the step is still late.
bool reads_extents(const Draft& draft, const Node& node, const KernelEntry& kernel) {
  if (!(kernel.kernel->flags & HEDDLE_KERNEL_READS_EXTENTS)) return false;
  for (const ValueId id : node.inputs)
    if (id.valid() && (draft.typed.type(id).dynamic || draft.typed.type(id).follows_bounded)) return false;
  for (const ValueId id : node.outputs)
    if (id.valid() && draft.typed.type(id).dynamic) return false;
  return true;
}

// True for a reshape-like operator that runs nothing, because its output may simply be its input's bytes.
bool is_view(const Draft& draft, const Node& node) {
  if (!node.schema->has_trait(HEDDLE_TRAIT_VIEW) || !node.epilogue->empty() || !node.inputs[0].valid() || !node.outputs[0].valid())
    return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i].valid()) return false;
  const TensorType& in = draft.typed.type(node.inputs[0]);
  const TensorType& out = draft.typed.type(node.outputs[0]);
  return in.dtype == out.dtype && !in.late() && !out.late() && in.byte_size() == out.byte_size();
}

// True if `value` is, through views, the bytes of a variable that is overwritten later in the run.
bool shows_old_version(const Draft& draft, ValueId value) {
  const Net& net = draft.typed.net;
  while (net[value].producer.valid() && net[value].kind != Value::Kind::variable && draft.nodes[net[value].producer.index].view)
    value = net[net[value].producer].inputs[0];
  return net[value].kind == Value::Kind::variable && net[net[value].variable].last != value;
}

// Returns the device on which a step is enqueued: a copy to the host uses a stream of the device it comes from.
uint8_t stream_device(const Draft& draft, NodeId id) {
  if (!draft.locations) return 0;
  const DeviceId own = draft.locations->of(id);
  return static_cast<uint8_t>((own == host_device && is_copy(draft.node(id)) ? draft.locations->of(draft.node(id).inputs[0]) : own).index);
}

}  // namespace

Status select_kernels(Draft& draft) {
  Findings findings;
  const Net& net = draft.typed.net;
  draft.nodes.resize(net.nodes.size());
  std::vector<char> ordered(net.nodes.size(), 0);  // has control inputs or is one: it really runs
  std::vector<char> leaves(net.values.size(), 0);
  for (const ValueId id : net.outputs) leaves[id.index] = 1;
  for (size_t i = 0; i < net.nodes.size(); ++i)
    for (const NodeId before : net.nodes[i].control) ordered[i] = ordered[before.index] = 1;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const NodeId id(i);
    const Node& node = net.nodes[i];
    NodeDraft& d = draft.nodes[i];
    d.late = is_late(draft, node);
    d.view = !ordered[i] && is_view(draft, node);
    if (d.view && leaves[node.outputs[0].index] && shows_old_version(draft, node.inputs[0])) d.view = false;
    d.call = std::make_unique<KernelCall>(draft.typed, node, draft.device(id), draft.target.max_threads);
    if (const std::shared_ptr<Device> opened = draft.opened(id)) d.call->set_device_handle(opened->handle());
    d.device = stream_device(draft, id);
    d.kernel = d.device != 0 && is_copy(node) ? device_copy_kernel() : d.call->find();
    const bool device_copy = d.device != 0 && is_copy(node);
    if (device_copy) {
      TensorType& copied = draft.typed.types[node.outputs[0].index];
      copied.bounded_axis = draft.typed.type(node.inputs[0]).bounded_axis;
    }
    const bool copies_bounded = device_copy && draft.typed.type(node.inputs[0]).bounded_axis >= 0;
    if (d.late && d.kernel && (copies_bounded || reads_extents(draft, node, *d.kernel))) {
      d.late = false;
      d.reads_extents = true;
      for (const ValueId out : node.outputs)
        if (out.valid()) draft.typed.types[out.index].follows_bounded = false;
    }
    if (d.device != 0 && d.late && node.has_subnet()) {
      findings.add(draft.at(
          id,
          {Code::unsupported, "runs a subnet for extents that are known only while it runs, which is done on the host", "put it on cpu"}));
      continue;
    }
    if (d.late && draft.launched(id) && (d.kernel->kernel->flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS)) {
      findings.add(draft.at(
          id, {Code::unsupported, "has a kernel that allocates outputs while it runs, which is done on the host", "put it on cpu"}));
      continue;
    }
    if (!d.kernel && !d.view) findings.add(draft.at(id, d.call->missing(net, node)));
    draft.order.push_back(id);
  }
  return findings.status();
}

}  // namespace heddle::compiling

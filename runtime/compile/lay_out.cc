// The flat plan: steps, values and dependences in the form the run needs.
#include <algorithm>

#include "base/text/text.h"
#include "compile/compiled_subnet.h"
#include "compile/draft.h"
#include "net/batch_parts.h"
#include "plugin/host.h"
#include "resolve/collectives.h"
#include "resolve/updates.h"

namespace heddle {

namespace compiling {
namespace {

void lay_out_values(Draft& draft) {
  const Net& net = draft.typed.net;
  Plan& plan = draft.plan;
  plan.values.resize(net.values.size());
  for (size_t i = 0; i < net.values.size(); ++i) {
    PlanValue& v = plan.values[i];
    v.name = net.values[i].name;
    v.type = draft.typed.types[i];
    v.layout = draft.layouts[i];
    if (draft.storage_of[i] != UINT32_MAX) v.place = draft.storages[draft.storage_of[i]].place;
    if (v.type.bounded_axis >= 0) v.extent_slot = static_cast<int32_t>(plan.extent_slots++);
  }
}

void lay_out_device_work(Draft& draft, NodeId id, PlanStep& step) {
  const Node& node = draft.node(id);
  const NodeDraft& d = draft.nodes[id.index];
  step.on_device = std::make_unique<DeviceWork>();
  DeviceWork& work = *step.on_device;
  work.device = d.device;
  work.stream = d.stream;
  work.staging = d.staging;
  work.reads_host = d.made.reads_host;
  work.thread_scratch = d.thread_scratch_offset;
  work.may_report = d.may_report;
  work.from_host = (d.kernel->kernel->flags & HEDDLE_KERNEL_MOVES_ONLY) != 0;
  if (draft.launched(id)) work.kind = DeviceWork::Kind::launch;
  if (!is_copy(node)) return;
  const uint8_t from = draft.device_of(node.inputs[0]), to = draft.device_of(node.outputs[0]);
  work.kind = DeviceWork::Kind::copy;
  work.copied_from = from != to ? from : uint8_t{0};
  work.copy_kind = from == 0 && !d.late && draft.typed.type(node.outputs[0]).byte_size() <= max_value_bytes ? HEDDLE_COPY_VALUE_TO_DEVICE
                   : from == 0                                                                              ? HEDDLE_COPY_HOST_TO_DEVICE
                   : to == 0                                                                                ? HEDDLE_COPY_DEVICE_TO_HOST
                                                                                                            : HEDDLE_COPY_DEVICE_TO_DEVICE;
  const std::vector<std::string>& names = draft.typed.devices;
  draft.plan.copies.push_back(
      {draft.typed.net[node.inputs[0]].name, names[from], names[to], draft.typed.type(node.outputs[0]).byte_size()});
}

// Records the index inputs that are checked before updates begin: on the host by run/update_indices.h, on a device by a step of its own.
void lay_out_indices(const Node& node, PlanStep& step) {
  if (!step.updates_variable) return;
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port* const port = node.schema->input_port(i);
    if (!port || port->index_bound_port < 0 || !node.inputs[i].valid()) continue;
    const auto of = static_cast<uint32_t>(port->index_bound_port);
    const int64_t axis = port->index_bound_axis >= 0 ? port->index_bound_axis : node.int_attribute("axis", 0);
    if (of < node.inputs.size() && node.inputs[of].valid()) step.indices.edit().push_back({i, of, static_cast<int32_t>(axis)});
  }
}

// The number of the first element of output 0 in the whole batch, where the node works on a part of it. An output that is not by rows has
// the same numbers in all parts.
uint64_t first_random_number(const Draft& draft, NodeId id) {
  const NodeId shard = id.index >= draft.batch_parts.size() ? NodeId() : draft.batch_parts[id.index];
  const ValueId output = draft.node(id).outputs.empty() ? ValueId() : draft.node(id).outputs[0];
  if (!shard.valid() || !output.valid()) return 0;
  const Node& part = draft.node(shard);
  const int64_t rows = draft.typed.type(part.inputs[0]).shape[0], own = draft.typed.type(part.outputs[0]).shape[0];
  const int64_t elements = draft.typed.type(output).shape.element_count();
  int64_t first = first_row_of_part(rows, part.int_attribute("part", 0), part.int_attribute("parts", 1));
  if (const auto* const of = std::get_if<std::string>(part.find("communicator")); of && draft.options.rank_in)
    first += rows * draft.options.rank_in(*of);
  return own > 0 && elements % own == 0 ? static_cast<uint64_t>(first * (elements / own)) : 0;
}

void lay_out_step(Draft& draft, NodeId id, PlanStep& step) {
  const Node& node = draft.node(id);
  NodeDraft& d = draft.nodes[id.index];
  step.name = node.name;
  step.domain = node.domain;
  step.type = node.type;
  step.placed = static_cast<uint8_t>(node.placed.index);  // find_devices has opened each
  step.kernel = d.kernel;
  step.tiles = d.made.tiles;
  step.scratch_bytes = d.made.scratch_bytes;
  step.thread_scratch_bytes = d.made.thread_scratch_bytes;
  step.data_scratch_bytes = d.made.data_scratch_bytes;
  if (d.device == 0) step.data_scratch_offset = d.made.data_scratch_at;
  step.cost_ns = d.made.cost_ns;
  step.flops = d.cost.flops;
  step.bytes = d.cost.bytes;
  step.random_stream = random_stream_in(draft.options.body, node.random_stream);
  step.draws = node.schema->has_trait(HEDDLE_TRAIT_RANDOM);
  if (step.draws) step.random_first = first_random_number(draft, id);
  draft.plan.draws_on_host = draft.plan.draws_on_host || (step.draws && d.device == 0) || (d.late && node.has_subnet());
  for (const NestedPlan& nested : d.nested) draft.plan.draws_on_host = draft.plan.draws_on_host || nested.plan->draws_on_host;
  step.late = d.late;
  step.suspends = draft.suspends(id);
  step.updates_variable = updates_variable(draft.typed.net, node);
  step.collective = has_collectives(node);
  if (!d.nested.empty()) step.nested = std::move(d.nested);
  if (!d.impossible.empty()) step.impossible = std::move(d.impossible);
  if (!d.resources.empty()) step.resources = std::make_unique<const std::vector<ResourceSlot>>(std::move(d.resources));
  if (!node.epilogue->empty()) step.fused.edit().reserve(node.epilogue->size());
  for (const EpilogueOp& s : *node.epilogue) step.fused.edit().push_back({s.name, s.type});
  if (d.device != 0) lay_out_device_work(draft, id, step);
  step.inputs.reserve(node.inputs.size());
  step.outputs.reserve(node.outputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i)
    step.inputs.push_back({node.inputs[i], i < d.input_layouts.size() ? d.input_layouts[i] : heddle_layout{}});
  for (size_t i = 0; i < node.outputs.size(); ++i)
    step.outputs.push_back({node.outputs[i], i < d.output_layouts.size() ? d.output_layouts[i] : heddle_layout{}});
  lay_out_indices(node, step);
  step.state = std::move(d.made.state);
  if (step.state && node.schema->op->attribute_count > 0) step.attributes = d.call->attributes();
  if (step.late) step.call = std::move(d.call);
  step.reads_extents = d.reads_extents;
  draft.plan.has_late_steps = draft.plan.has_late_steps || step.late;
}

// The steps of a group are next to each other in the order (compile/order.cc), and the last of them launches all.
void lay_out_groups(Draft& draft) {
  const auto group_at = [&](size_t at) { return draft.nodes[draft.order[at].index].group; };
  for (size_t begin = 0; begin < draft.order.size(); ++begin) {
    if (group_at(begin) < 0 || (begin > 0 && group_at(begin) == group_at(begin - 1))) continue;
    const std::vector<NodeId>& group = draft.groups[static_cast<size_t>(group_at(begin))];
    const auto first = draft.order.begin() + static_cast<std::ptrdiff_t>(begin);
    const size_t last = begin + group.size() - 1;
    for (const NodeId member : group) {
      const auto at = begin + static_cast<size_t>(std::find(first, first + static_cast<std::ptrdiff_t>(group.size()), member) - first);
      draft.plan.steps[last].on_device->group.push_back(static_cast<uint32_t>(at));
      if (at != last) draft.plan.steps[at].on_device->launched_by = static_cast<int32_t>(last);
    }
  }
}

// A late step finds its kernel while it runs, and has more to do at its end, like steps that write extents; steps on a stream call finish
// themselves.
heddle_finish_function finish_of(const Plan& plan, const PlanStep& step) {
  if (step.on_device) return nullptr;
  const auto writes_extent = [&](const Operand& out) { return out.value.valid() && plan.values[out.value.index].extent_slot >= 0; };
  const bool writes = std::any_of(step.outputs.begin(), step.outputs.end(), writes_extent);
  return step.late || writes ? finish_by_call : step.kernel->kernel->finish;
}

void lay_out_graph(Draft& draft) {
  StepGraph& graph = draft.plan.graph;
  const auto count = static_cast<uint32_t>(draft.order.size());
  graph.count = count;
  graph.tail_begin = draft.tail_begin;
  graph.successor_begin.reserve(count + 1);
  graph.predecessor_count.assign(count, 0);
  graph.flags.assign(count, 0);
  bool any_finish = false;
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint32_t>& list = draft.edges[i];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
    for (const uint32_t to : list) {
      graph.successors.push_back(to);
      ++graph.predecessor_count[to];
    }
    graph.cost_ns.push_back(static_cast<float>(draft.plan.steps[i].cost_ns));
    if (draft.plan.steps[i].asynchronous() && (draft.plan.steps[i].late || draft.plan.steps[i].tiles > 0))
      graph.flags[i] = step_async;
    else if (draft.plan.steps[i].suspends)
      graph.flags[i] = step_suspends;
    else if (draft.plan.steps[i].late && !draft.plan.steps[i].on_device)
      graph.flags[i] = step_resolves;
    if (!draft.plan.steps[i].nested->empty() || (draft.plan.steps[i].late && draft.node(draft.order[i]).has_subnet()))
      graph.flags[i] |= step_hosts;
    any_finish = any_finish || finish_of(draft.plan, draft.plan.steps[i]);
    draft.plan.has_asynchronous_steps = draft.plan.has_asynchronous_steps || (graph.flags[i] & (step_async | step_suspends)) != 0;
  }
  graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
  if (!any_finish) return;
  graph.finish.assign(count, nullptr);
  for (uint32_t i = 0; i < count; ++i) graph.finish[i] = finish_of(draft.plan, draft.plan.steps[i]);
}

bool devices_alone(const Plan& plan) {
  const auto alone = [](const PlanStep& step) { return step.on_device && !step.late && step.nested->empty(); };
  return !plan.devices.empty() && std::all_of(plan.steps.begin(), plan.steps.end(), alone);
}

// Steps that read or write on the host, or depend on values known only while they run, are waited for.
bool only_enqueues(const Plan& plan) {
  const auto enqueued = [](const PlanStep& step) {
    return step.on_device && !step.late &&
           (step.on_device->kind != DeviceWork::Kind::copy || step.on_device->copy_kind == HEDDLE_COPY_VALUE_TO_DEVICE ||
            step.on_device->copy_kind == HEDDLE_COPY_DEVICE_TO_DEVICE) &&
           std::all_of(step.nested->begin(), step.nested->end(), [](const NestedPlan& n) { return n.plan->only_enqueues; });
  };
  return plan.devices.size() == 1 && plan.devices[0].stream_classes.size() == 1 && plan.extent_slots == 0 && plan.variables.empty() &&
         !plan.has_variable_updates && std::all_of(plan.steps.begin(), plan.steps.end(), enqueued);
}

}  // namespace

Status lay_out(Draft& draft) {
  Plan& plan = draft.plan;
  plan.net_name = draft.typed.net.name;
  plan.limits = draft.target.limits;
  plan.registry = draft.typed.registry;
  plan.resources = draft.options.resources;
  for (size_t i = 0; i < draft.order.size(); ++i) lay_out_step(draft, draft.order[i], plan.steps[i]);
  lay_out_groups(draft);
  if (plan.has_late_steps) {
    auto late = std::make_shared<LateCompilation>(LateCompilation{draft.target.for_subnets(), draft.options});
    // A plan may outlive its session: these pointers belong to this compilation.
    late->options.evaluator = nullptr;
    late->options.prepare_ns = nullptr;
    late->options.interruption = nullptr;
    plan.late = std::move(late);
  }
  lay_out_collectives(draft);
  lay_out_values(draft);
  lay_out_graph(draft);
  plan.devices_alone = devices_alone(plan);
  plan.only_enqueues = only_enqueues(plan);
  plan.inputs = draft.typed.net.inputs;
  plan.outputs = draft.typed.net.outputs;
  for (uint32_t i = 0; i < plan.inputs.size(); ++i)
    if (const auto& content = draft.typed.known[plan.inputs[i].index]) plan.known_inputs.push_back({i, content});
  if (draft.options.variable_slots) plan.variables = draft.options.variable_slots->names;
  for (const Variable& v : draft.typed.net.variables) {
    if (draft.is_input(v)) continue;
    if (!draft.options.variable_slots) plan.variables.push_back(v.name);
    if (const uint8_t device = draft.device_of(v.first); device != 0)
      plan.devices[device - 1u].memory.persistent_bytes += draft.typed.type(v.first).byte_size();
  }
  const ValueId counter = draft.typed.net.step_counter.valid() ? draft.typed.net[draft.typed.net.step_counter].first : ValueId();
  if (counter.valid()) {
    plan.step_counter = static_cast<int32_t>(draft.slot_of(draft.typed.net.step_counter));
    plan.step_counter_device = draft.device_of(counter);
  }
  for (const auto& blob : plan.constants)
    if (blob) plan.memory.persistent_bytes += blob->bytes;
  std::sort(plan.packs.begin(), plan.packs.end());
  plan.packs.erase(std::unique(plan.packs.begin(), plan.packs.end()), plan.packs.end());
  for (const auto& blob : plan.packs) plan.memory.persistent_bytes += blob->bytes;
  return {};
}

}  // namespace compiling

}  // namespace heddle

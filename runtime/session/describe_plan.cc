#include "session/describe_plan.h"

#include <algorithm>
#include <map>

#include "base/device_name.h"
#include "net/layout_order.h"
#include "session/plain_values.h"

namespace heddle {
namespace {

PlanInfo::Value value_info(const PlanValue& value) {
  static_assert(static_cast<int>(PlanInfo::Place::unplanned) == static_cast<int>(MemoryPlace::Kind::unplanned));
  PlanInfo::Value info;
  info.name = value.name;
  info.dtype = value.type.dtype;
  info.shape = value.type.shape;
  info.layout = layout_text(value.layout);
  info.bytes = value.type.byte_size();
  info.place = static_cast<PlanInfo::Place>(value.place.kind);
  info.device = value.place.device;
  info.buffer = value.place.index;
  info.offset = value.place.offset;
  return info;
}

std::vector<PlanInfo::Operand> operands(const std::vector<Operand>& of) {
  std::vector<PlanInfo::Operand> infos;
  for (const Operand& operand : of) {
    infos.push_back({std::nullopt, layout_text(operand.layout), false});
    if (operand.value.valid()) infos.back().value = operand.value.index;
  }
  return infos;
}

// The bytes of the copies that DeviceWorker enqueues for a step.
std::vector<int64_t> copied_by(const Plan& plan, const PlanStep& step) {
  constexpr auto word = static_cast<int64_t>(sizeof(uint64_t));
  const DeviceWork& work = *step.on_device;
  const auto devices = static_cast<int64_t>(plan.devices.size());
  std::vector<int64_t> copied;
  if (work.kind == DeviceWork::Kind::copy) {
    const PlanValue& value = plan.values[step.outputs[0].value.index];
    if (value.extent_slot >= 0) copied.push_back(word);
    if (value.type.byte_size() > 0) copied.push_back(value.type.byte_size());
  } else if (work.kind == DeviceWork::Kind::commit && work.copied_from == work.device) {
    const auto reporting = std::count_if(plan.devices.begin(), plan.devices.end(), [](const PlanDevice& d) { return d.may_report; });
    copied.assign(static_cast<size_t>(2 + reporting), word);
  } else if (work.kind == DeviceWork::Kind::commit) {
    copied.push_back((1 + devices) * word);
  } else if (work.kind == DeviceWork::Kind::faults) {
    copied.push_back(FaultBlock::bytes(plan.devices.size()));
  }
  copied.insert(copied.end(), work.extents.size(), word);
  return copied;
}

PlanInfo::Step step_info(const Plan& plan, size_t i) {
  const PlanStep& step = plan.steps[i];
  PlanInfo::Step info;
  info.name = step.name;
  info.type = step.type;
  info.kernel = step.kernel->name;
  info.device = plan.device_of(step);
  if (const DeviceWork* work = step.on_device.get()) {
    info.on_stream = true;
    info.auxiliary = work->is_auxiliary();
    info.stream = work->stream;
    info.waits = work->waits;
    if (work->records >= 0) info.records = static_cast<uint32_t>(work->records);
    info.copied = copied_by(plan, step);
    if (!work->group.empty()) info.launched_by = i;
    if (work->launched_by >= 0) info.launched_by = static_cast<size_t>(work->launched_by);
  }
  info.tiles = step.tiles;
  info.bytes = step.bytes;
  info.flops = step.flops;
  for (const FusedOperator& fused : *step.fused) {
    info.fused.push_back(fused.name);
    info.fused_types.push_back(fused.type);
  }
  info.late = step.late;
  info.tail = i >= plan.graph.tail_begin;
  const OperatorSchema* schema = plan.registry->find_operator(step.domain, step.type);
  info.random = schema && schema->has_trait(HEDDLE_TRAIT_RANDOM);
  info.updates_variable = step.updates_variable;
  info.scratch_bytes = step.scratch_bytes;
  info.scratch_offset = step.scratch_offset;
  info.thread_scratch_bytes = step.thread_scratch_bytes;
  info.inputs = operands(step.inputs);
  if (const DeviceWork* work = step.on_device.get())
    for (size_t k = 0; k < info.inputs.size(); ++k) info.inputs[k].at_enqueue = info.inputs[k].value && work->reads_on_host(k);
  info.outputs = operands(step.outputs);
  for (uint32_t e = plan.graph.successor_begin[i]; e < plan.graph.successor_begin[i + 1]; ++e)
    info.successors.push_back(plan.graph.successors[e]);
  for (const NestedPlan& nested : *step.nested) info.subnets.push_back(describe(*nested.plan, {}, 0));
  return info;
}

PlanInfo::Memory memory_info(const std::string& device, const MemoryReport& memory, int64_t pinned) {
  return {device,
          memory.peak_bytes,
          memory.arena_bytes,
          memory.lower_bound_bytes,
          memory.lower_bound_kind,
          memory.sum_bytes,
          memory.scratch_bytes,
          memory.persistent_bytes,
          pinned,
          {}};
}

}  // namespace

std::shared_ptr<const PlanInfo> describe(const Plan& plan, const PlanInfo::Times& times, int64_t plans_made) {
  auto info = std::make_shared<PlanInfo>();
  info->net = plan.net_name;
  for (const PlanValue& value : plan.values) info->values.push_back(value_info(value));
  for (size_t i = 0; i < plan.steps.size(); ++i) info->steps.push_back(step_info(plan, i));
  for (const ValueId id : plan.outputs) info->outputs.push_back(id.index);
  info->memory.push_back(memory_info("cpu", plan.memory, plan.pinned_part()));
  for (const PlanDevice& device : plan.devices) {
    info->memory.push_back(memory_info(device.device->name(), device.memory, 0));
    if (device.device->has(HEDDLE_DEVICE_DESCRIBED)) info->memory.back().described = device.device->description();
  }
  const MemoryOrder& order = plan.memory_order;
  info->memory_order = {order.lag, order.edges, order.length_ns, order.length_without_ns, order.arena_bytes, order.arena_bytes_without};
  for (const LayoutChange& change : plan.reorders) info->reorders.push_back({change.value, change.from, change.to, change.bytes});
  for (const ValueCopy& copy : plan.copies) info->copies.push_back({copy.value, copy.from, copy.to, copy.bytes});
  for (const PlanCollective& c : plan.collectives)
    info->collectives.push_back({c.name, c.device, c.communicator, c.signature, c.tensors, c.bytes});
  for (const PlanCommunicator& c : plan.communicators) info->communicators.push_back({c.name, c.hash, c.devices, c.buckets});
  info->warnings = plan.warnings;
  info->warnings.insert(info->warnings.end(), plan.impossible.begin(), plan.impossible.end());
  info->times = times;
  info->plans_made = plans_made;
  return info;
}

std::vector<MemoryOwner> memory_by_owner(const PlanInfo& plan, size_t device) try {
  std::map<uint32_t, MemoryOwner> buffers;
  const auto touch = [&](const PlanInfo::Operand& operand, size_t step) {
    if (!operand.value) return;
    const PlanInfo::Value& value = plan.values[*operand.value];
    if (value.place != PlanInfo::Place::arena || value.device != device) return;
    const auto [at, added] = buffers.try_emplace(value.buffer, MemoryOwner{plan.steps[step].name, value.name, value.bytes, step, step});
    at->second.last_step = step;
    at->second.bytes = std::max(at->second.bytes, value.bytes);
  };
  std::vector<MemoryOwner> all;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanInfo::Step& step = plan.steps[i];
    for (const PlanInfo::Operand& operand : step.inputs) touch(operand, i);
    for (const PlanInfo::Operand& operand : step.outputs) touch(operand, i);
    const bool here = device < plan.memory.size() && (device == 0 ? is_host(step.device) : step.device == plan.memory[device].device);
    if (here && step.scratch_bytes > 0) all.push_back({step.name, "", step.scratch_bytes, i, i});
  }
  for (const size_t output : plan.outputs) {
    const PlanInfo::Value& value = plan.values[output];
    if (value.place != PlanInfo::Place::arena || value.device != device) continue;
    if (const auto at = buffers.find(value.buffer); at != buffers.end()) at->second.last_step = plan.steps.size() - 1;
  }
  for (const auto& [buffer, owner] : buffers) all.push_back(owner);
  // The bytes held change where a lifetime begins or ends: one sweep over the steps.
  std::vector<int64_t> change(plan.steps.size() + 1);
  for (const MemoryOwner& owner : all) {
    change[owner.first_step] += owner.bytes;
    change[owner.last_step + 1] -= owner.bytes;
  }
  int64_t held = 0, most = 0;
  size_t fullest = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (held += change[i]; held > most) {
      most = held;
      fullest = i;
    }
  std::erase_if(all, [&](const MemoryOwner& owner) { return owner.first_step > fullest || owner.last_step < fullest; });
  std::stable_sort(all.begin(), all.end(), [](const MemoryOwner& a, const MemoryOwner& b) { return a.bytes > b.bytes; });
  return all;
} catch (...) {
  return or_empty("no memory for the owners of an arena", []() -> std::vector<MemoryOwner> { throw; });
}

}  // namespace heddle

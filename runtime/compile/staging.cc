// Staging: memory of the context for data that would otherwise be read from the caller after the run has returned, or shown to the caller
// while another run is in progress.
//
// A device reads a feed some time after the run received it, at the worst after the run was given up: it reads a copy, unless the feed is
// so small that the device takes it at once. A variable that leaves the net is changed by the next run that updates it: its content at the
// end of the run is kept. Extents that lie on a device are copied here where a late step needs them to find its own.
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "compile/draft.h"
#include "plugin/host.h"

namespace heddle::compiling {

Status plan_staging(Draft& draft) {
  Plan& plan = draft.plan;
  const auto kind_of = [&](ValueId value) {
    const uint32_t storage = draft.storage_of[value.index];
    return storage == UINT32_MAX ? MemoryPlace::Kind::none : draft.storages[storage].place.kind;
  };
  const auto take = [&](ValueId value) {
    const int64_t at = plan.staging_bytes;
    plan.staging_bytes += align_up(draft.typed.type(value).byte_size(), arena_alignment);
    return at;
  };
  for (const NodeId id : draft.order) {
    NodeDraft& d = draft.draft(id);
    if (d.device == 0 || !is_copy(draft.node(id)) || kind_of(draft.node(id).inputs[0]) != MemoryPlace::Kind::input) continue;
    const ValueId feed = draft.node(id).inputs[0];
    if (draft.device_of(feed) == 0 && draft.typed.type(feed).byte_size() > max_value_bytes) d.staging = take(feed);
  }
  const auto reads_extents = [&](NodeId id) { return draft.draft(id).late && draft.draft(id).device != 0; };
  if (std::any_of(draft.order.begin(), draft.order.end(), reads_extents)) {
    const auto bounded = [](const TensorType& type) { return type.bounded_axis >= 0; };
    const auto slots = std::count_if(draft.typed.types.begin(), draft.typed.types.end(), bounded);
    plan.extent_staging = plan.staging_bytes;
    plan.staging_bytes += align_up(slots * static_cast<int64_t>(sizeof(int64_t)), arena_alignment);
  }
  const auto take_bytes = [&](int64_t bytes) {
    return std::exchange(plan.staging_bytes, plan.staging_bytes + align_up(bytes, arena_alignment));
  };
  for (PlanDevice& device : plan.devices)
    if (device.has_block) device.fault_staging = take_bytes(FaultBlock::bytes(plan.devices.size()));
  if (plan.joins_tail) plan.commit_staging = take_bytes(sizeof(CommitWords));
  for (const ValueId output : draft.typed.net.outputs)
    plan.output_staging.push_back(kind_of(output) == MemoryPlace::Kind::variable ? take(output) : -1);
  return {};
}

}  // namespace heddle::compiling

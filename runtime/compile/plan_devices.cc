// Opens the devices of a plan, and uploads the constants that their operators read, once.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "compile/draft.h"
#include "device/device_manager.h"
#include "place/place.h"

namespace heddle::compiling {
namespace {

// The placeholder kernel for work that the runtime itself does on a stream (run/device/device_worker.h).
heddle_status not_a_kernel(const heddle_run_context*, int64_t, int64_t) {
  return HEDDLE_ERROR_INTERNAL;
}

struct StandIn {
  heddle_kernel kernel = {};
  KernelEntry entry;
  explicit StandIn(const char* name) : entry{&kernel, nullptr, name} {
    kernel.struct_size = sizeof(kernel);
    kernel.run = not_a_kernel;
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
};

}  // namespace

const KernelEntry* device_copy_kernel() {
  static const StandIn step("runtime:copy");
  return &step.entry;
}

const KernelEntry* fence_kernel() {
  static const StandIn step("runtime:fence");
  return &step.entry;
}

const KernelEntry* commit_kernel() {
  static const StandIn step("runtime:commit");
  return &step.entry;
}

const KernelEntry* faults_kernel() {
  static const StandIn step("runtime:faults");
  return &step.entry;
}

Status find_devices(Draft& draft) {
  drop_unused_devices(draft.typed);
  auto locations = std::make_unique<Locations>(draft.typed);
  if (locations->all_on_host()) return {};
  const std::vector<std::string>& names = draft.typed.devices;
  if (names.size() > size_t{max_devices} + 1)  // and the host
    return {Code::limit_exceeded, fmt::format("the net names {} devices, at most {} are possible", names.size() - 1, max_devices),
            "put operators on fewer devices"};
  if (!draft.target.devices)
    return {Code::unsupported, "an operator of a subnet is put on a device, but its subnets run on the host", "leave its device out"};
  if (draft.target.own_ports && names.size() > 2)
    return {Code::unsupported, fmt::format("a subnet on {} puts operators on {} too", quoted(names[1]), quoted(names[2])),
            "leave the devices of its operators out"};
  for (size_t i = 1; i < names.size(); ++i) {
    PlanDevice& device = draft.plan.devices.emplace_back();
    HEDDLE_TRY(device.device, draft.target.devices->open(*draft.typed.registry, names[i]));
    if (!draft.plan.pinned_by && device.device->pins()) draft.plan.pinned_by = device.device;
  }
  draft.locations = std::move(locations);
  return {};
}

Status upload_constants(Draft& draft) {
  if (!draft.locations) return {};
  const Net& net = draft.typed.net;
  std::vector<uint32_t> reads(net.values.size(), 0);  // of originals, by nodes that stay on the host
  for (size_t i = 0; i < net.nodes.size(); ++i)
    for (const ValueId v : net.nodes[i].inputs)
      if (v.valid() && !draft.nodes[i].uploaded) ++reads[v.index];
  for (const ValueId v : net.outputs) ++reads[v.index];
  std::vector<ValueId> sources;
  const Interruption until = draft.options.interruption ? *draft.options.interruption : Interruption();
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    if (!draft.nodes[i].uploaded) continue;
    const ValueId source = net.nodes[i].inputs[0];
    const MemoryPlace& place = draft.storages[draft.storage_of[net.nodes[i].outputs[0].index]].place;
    PlanDevice& device = draft.plan.devices[place.device - 1];
    HEDDLE_TRY(device.constants[place.index], device.device->upload(draft.typed.known[source.index], until),
               fmt::format("while constant \"{}\" was uploaded", net[source].name));
    device.memory.persistent_bytes += draft.typed.type(source).byte_size();
    sources.push_back(source);
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  for (const ValueId source : sources)
    if (reads[source.index] == 0) draft.only_uploaded.push_back(source);
  return {};
}

}  // namespace heddle::compiling

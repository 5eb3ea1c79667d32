// Groups: the k-th collectives of a communicator on the devices of this process, one on each, are launched by one call, where their kernels
// are of that kind (HEDDLE_KERNEL_GROUP). On each device the order is that of the net's operators.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/device_name.h"
#include "base/text/text.h"
#include "compile/draft.h"

namespace heddle::compiling {
namespace {

using ByDevice = std::map<uint8_t, std::vector<NodeId>>;

// Checks that the devices are of one kind, that each has a k-th collective, and that these are alike.
Status check_members(const Draft& draft, const std::string& communicator, const ByDevice& by_device) {
  const auto& [first_device, first] = *by_device.begin();
  for (const auto& [device, members] : by_device) {
    if (!draft.opened(members[0])->is_of_kind_of(*draft.opened(first[0])))
      return draft.at(members[0],
                      {Code::unsupported,
                       fmt::format("is a collective of communicator {} on {}, and {} is one on {}", quoted(communicator),
                                   draft.device(members[0]), quoted(draft.node(first[0]).name), draft.device(first[0])),
                       "collectives are launched together on devices of one kind: give those of each kind a communicator of their own"});
    const size_t common = std::min(first.size(), members.size());
    for (size_t k = 0; k < common; ++k) {
      const std::string wanted = collective_signature(draft.typed, draft.node(first[k]));
      const std::string found = collective_signature(draft.typed, draft.node(members[k]));
      if (wanted != found)
        return draft.at(members[k],
                        {Code::invalid_argument,
                         fmt::format("is {}, number {} of communicator {} on {}, and meets {} of {}, {}", found, k, quoted(communicator),
                                     draft.device(members[k]), quoted(draft.node(first[k]).name), draft.device(first[k]), wanted),
                         "give all devices of a communicator the same collectives in the same order"});
    }
    if (first.size() == members.size()) continue;
    const NodeId alone = first.size() > common ? first[common] : members[common];
    return draft.at(alone, {Code::invalid_argument,
                            fmt::format("is number {} of communicator {}, and {} has no such collective", common, quoted(communicator),
                                        draft.device(first.size() > common ? members.front() : first.front())),
                            "give all devices of a communicator the same collectives in the same order"});
  }
  return {};
}

// The host's part would be alone: it takes none in what is launched on devices.
Status beside_devices(const Draft& draft, const std::string& communicator, const ByDevice& by_device) {
  const NodeId other = by_device.begin()->second[0];
  return {Code::unsupported,
          fmt::format("is a collective of communicator {} on the host, and {} is one on {}", quoted(communicator),
                      quoted(draft.node(other).name), draft.device(other)),
          "put all collectives of a communicator on devices of one kind, or all on cpu"};
}

// Requests that each device of a group reaches the memory of the others, which devices may have to turn on. Those that do not reach one
// another copy by other ways.
void open_to_peers(const Draft& draft, const std::vector<NodeId>& group) {
  for (const NodeId to : group)
    for (const NodeId from : group)
      if (to != from) draft.opened(to)->reaches(*draft.opened(from));
}

// The devices in the order of their numbers as participants: as the session declares them, else ascending.
std::vector<uint8_t> members_in_order(const Draft& draft, const std::string& communicator, const ByDevice& by_device) {
  std::vector<std::string> declared;
  if (draft.options.devices_of) declared = draft.options.devices_of(communicator);
  const auto place = [&](uint8_t device) {
    const std::string& name = draft.device(by_device.at(device)[0]);
    return std::pair(std::find(declared.begin(), declared.end(), name) - declared.begin(), device_order(name));
  };
  std::vector<uint8_t> devices;
  for (const auto& [device, members] : by_device) devices.push_back(device);
  std::sort(devices.begin(), devices.end(), [&](uint8_t a, uint8_t b) { return place(a) < place(b); });
  return devices;
}

}  // namespace

Status find_groups(Draft& draft) {
  std::map<std::string, ByDevice> communicators;
  std::map<std::string, NodeId> on_host;  // the first one of each communicator
  for (const NodeId id : draft.order) {
    const NodeDraft& d = draft.nodes[id.index];
    if (d.device == 0 && draft.node(id).schema->has_trait(HEDDLE_TRAIT_COLLECTIVE))
      on_host.try_emplace(communicator_of(draft.node(id)), id);
    if (d.device == 0 || !d.kernel || (d.kernel->kernel->flags & HEDDLE_KERNEL_GROUP) == 0) continue;
    if (draft.target.own_ports)
      return draft.at(id, {Code::unsupported, "is a collective of devices in a net inside an operator, and is launched with its peers",
                           "put it in the net around"});
    if (d.late)
      return draft.at(id, {Code::unsupported, "is a collective of devices with extents that are known only while it runs",
                           "give its inputs a shape that is known before the run"});
    communicators[communicator_of(draft.node(id))][d.device].push_back(id);
  }
  for (const auto& [name, by_device] : communicators) {
    HEDDLE_CHECK(check_members(draft, name, by_device));
    if (const auto found = on_host.find(name); found != on_host.end())
      return draft.at(found->second, beside_devices(draft, name, by_device));
    const std::vector<uint8_t> devices = members_in_order(draft, name, by_device);
    for (size_t k = 0; k < by_device.begin()->second.size(); ++k) {
      std::vector<NodeId>& group = draft.groups.emplace_back();
      for (const uint8_t device : devices) {
        const NodeId member = by_device.at(device)[k];
        group.push_back(member);
        draft.nodes[member.index].group = static_cast<int32_t>(draft.groups.size() - 1);
      }
      if (k == 0) open_to_peers(draft, group);
    }
  }
  return {};
}

}  // namespace heddle::compiling

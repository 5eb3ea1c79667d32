// Streams: a step follows one of those it depends on, if that is the last of its stream so far; else it takes the stream that has waited
// longest. Copies from elsewhere, copies to the host, and collectives that are launched in groups have streams of their own where the
// device gains by that. Steps of one stream are enqueued in plan order.
#include <algorithm>

#include "compile/draft.h"

namespace heddle::compiling {
namespace {

constexpr uint32_t none = UINT32_MAX;

// Returns the class of stream that a step uses.
int32_t stream_class(const Draft& draft, NodeId id) {
  const Node& node = draft.node(id);
  const NodeDraft& d = draft.nodes[id.index];
  const uint32_t classes = draft.plan.devices[d.device - 1u].device->properties().stream_classes;
  const auto offered = [&](int32_t wanted) { return (classes >> wanted & 1) != 0 ? wanted : HEDDLE_STREAM_COMPUTE; };
  if (d.group >= 0) return offered(HEDDLE_STREAM_COMMUNICATION);
  if (!is_copy(node)) return HEDDLE_STREAM_COMPUTE;
  const uint8_t from = draft.device_of(node.inputs[0]), to = draft.device_of(node.outputs[0]);
  const int32_t wanted = from == to ? HEDDLE_STREAM_COMPUTE : to == 0 ? HEDDLE_STREAM_FROM_DEVICE : HEDDLE_STREAM_TO_DEVICE;
  if (!draft.target.copy_streams) return HEDDLE_STREAM_COMPUTE;
  return offered(wanted);
}

// Returns the index of the one stream of that class; made when the first step needs it.
uint32_t copy_stream(std::vector<int32_t>& classes, std::vector<uint32_t>& last, int32_t stream_class) {
  const auto found = std::find(classes.begin(), classes.end(), stream_class);
  if (found != classes.end()) return static_cast<uint32_t>(found - classes.begin());
  classes.push_back(stream_class);
  last.push_back(none);
  return static_cast<uint32_t>(classes.size() - 1);
}

}  // namespace

Status assign_streams(Draft& draft) {
  if (!draft.locations) return {};
  const auto count = static_cast<uint32_t>(draft.order.size());
  const uint32_t computing = draft.target.streams;
  std::vector<std::vector<uint32_t>> last;  // by device and stream: position of its last step
  for (PlanDevice& d : draft.plan.devices) {
    d.stream_classes.assign(computing, HEDDLE_STREAM_COMPUTE);
    last.emplace_back(computing, none);
  }
  std::vector<std::vector<uint32_t>> before(count);  // steps of the same device that a step depends on, ascending
  for (uint32_t i = 0; i < count; ++i) {
    NodeDraft& d = draft.nodes[draft.order[i].index];
    if (d.device == 0) continue;
    std::vector<uint32_t>& streams = last[d.device - 1u];
    if (const int32_t wanted = stream_class(draft, draft.order[i]); wanted != HEDDLE_STREAM_COMPUTE) {
      d.stream = copy_stream(draft.plan.devices[d.device - 1u].stream_classes, streams, wanted);
    } else {
      // An unused stream counts as having waited longest: none + 1 is 0.
      const auto longest =
          std::min_element(streams.begin(), streams.begin() + computing, [](uint32_t a, uint32_t b) { return a + 1 < b + 1; });
      d.stream = static_cast<uint32_t>(longest - streams.begin());
      for (const uint32_t p : before[i]) {
        const uint32_t stream = draft.nodes[draft.order[p].index].stream;
        if (stream < computing && streams[stream] == p) d.stream = stream;
      }
    }
    if (streams[d.stream] != none) draft.edges[streams[d.stream]].push_back(i);
    streams[d.stream] = i;
    for (const uint32_t next : draft.edges[i])
      if (draft.nodes[draft.order[next].index].device == d.device) before[next].push_back(i);
  }
  return {};
}

}  // namespace heddle::compiling

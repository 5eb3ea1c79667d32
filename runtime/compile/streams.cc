// Streams: a step follows one of those it depends on, if that is the last of its stream so far; else it takes the stream that has waited
// longest. Steps of one stream are enqueued in plan order.
#include <algorithm>

#include "compile/draft.h"

namespace heddle::compiling {

Status assign_streams(Draft& draft) {
  if (!draft.locations) return {};
  constexpr uint32_t none = UINT32_MAX;
  const auto count = static_cast<uint32_t>(draft.order.size());
  std::vector<std::vector<uint32_t>> last;  // by device and stream: position of its last step
  for (const PlanDevice& d : draft.plan.devices) last.emplace_back(d.streams, none);
  std::vector<std::vector<uint32_t>> before(count);  // steps of the same device that a step depends on, ascending
  for (uint32_t i = 0; i < count; ++i) {
    NodeDraft& d = draft.nodes[draft.order[i].index];
    if (d.device == 0) continue;
    std::vector<uint32_t>& streams = last[d.device - 1u];
    // An unused stream counts as having waited longest: none + 1 is 0.
    const auto longest = std::min_element(streams.begin(), streams.end(), [](uint32_t a, uint32_t b) { return a + 1 < b + 1; });
    d.stream = static_cast<uint32_t>(longest - streams.begin());
    for (const uint32_t p : before[i]) {
      const uint32_t stream = draft.nodes[draft.order[p].index].stream;
      if (streams[stream] == p) d.stream = stream;
    }
    if (streams[d.stream] != none) draft.edges[streams[d.stream]].push_back(i);
    streams[d.stream] = i;
    for (const uint32_t next : draft.edges[i])
      if (draft.nodes[draft.order[next].index].device == d.device) before[next].push_back(i);
  }
  return {};
}

}  // namespace heddle::compiling

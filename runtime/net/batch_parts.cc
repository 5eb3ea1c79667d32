#include "net/batch_parts.h"

#include <algorithm>

namespace heddle {

bool is_shard(const Node& node) {
  return node.type == "Shard" && node.domain == "heddle";
}

std::vector<NodeId> batch_parts(const Net& net) {
  if (std::none_of(net.nodes.begin(), net.nodes.end(), is_shard)) return {};
  std::vector<NodeId> parts(net.nodes.size());
  for (uint32_t n = 0; n < net.nodes.size(); ++n) {
    if (is_shard(net.nodes[n])) parts[n] = NodeId(n);
    for (const ValueId input : net.nodes[n].inputs) {
      const NodeId from = input.valid() ? net[input].producer : NodeId();
      if (!parts[n].valid() && from.valid() && from.index < n) parts[n] = parts[from.index];
    }
  }
  return parts;
}

int64_t first_row_of_part(int64_t rows, int64_t part, int64_t parts) {
  return part * (rows / parts) + std::min(part, rows % parts);
}

}  // namespace heddle

// Which part of a batch the rows are that a node works on, in a net with replicas (derive/data_parallel): random numbers are drawn by
// element of the whole batch.
#pragma once

#include <vector>

#include "net/net.h"

namespace heddle {

// Whether the node divides a batch: heddle::Shard.
bool is_shard(const Node& node);

// By node: the node heddle::Shard that its rows come from, by the first of its inputs that has rows; invalid: none. Empty if the net has no
// such node. REQUIRES: nodes in a serial order.
std::vector<NodeId> batch_parts(const Net& net);

// The first row of part `part` of `parts` of so many rows: parts are as equal as may be, and the first ones have one row more.
int64_t first_row_of_part(int64_t rows, int64_t part, int64_t parts);

}  // namespace heddle

// The least memory that any execution order needs: a maximum-weight antichain. Private to liveness.
#pragma once

#include "memory/liveness/liveness_order.h"

namespace heddle {

// Returns the most bytes of buffers of which none is before another: they interfere pairwise, so no packing is lower. By Dilworth's theorem
// with weights: all bytes, less a maximum flow from buffers to buffers that they are before (Dinic's algorithm, through the steps). A
// buffer with several definitions counts as defined by the last of them in plan order, which can only lower the bound. Returns 0 when
// `effort` elementary operations do not suffice.
int64_t antichain_bytes(const LivenessProblem& problem, const ChainCover& cover, const PartialOrder& order,
                        std::span<const BufferLife> lives, const std::vector<offsets::Buffer>& buffers, int64_t effort);

}  // namespace heddle

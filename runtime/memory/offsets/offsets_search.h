// The exact search: is there a packing of at most `target` bytes? Depth-first over canonical packings. Private to the planner.
//
// Follows MiniMalloc (Moffitt, ASPLOS 2023): buffers are placed in ascending (offset, rank), each as low as those placed before let it
// (canonical packings); one is never placed where another that is left out would have fitted below it (dominance); at every node each
// clique of buffers that pairwise interfere must still fit (inference: they are stacked in the order of their lowest offsets, which is the
// least that any order can reach); a problem that falls apart into groups that do not interfere is searched group by group.
// Beyond that, a failure is laid to the placed items that hold up the clique that does not fit: the search jumps back to the last of those,
// past all choices that have nothing to do with it (conflict-directed backjumping). Which items were passed over is no part of the blame,
// so that jumping may miss a packing: a search that ends without one after a jump is made again without.
#pragma once

#include "memory/offsets/offsets_greedy.h"
#include "memory/offsets/offsets_space.h"

namespace heddle::offsets {

enum class SearchOutcome : uint8_t {
  found,      // best->height <= target
  exhausted,  // there is no such packing
  spent       // out of effort
};
struct SearchResult {
  SearchOutcome outcome = SearchOutcome::spent;
  int64_t proven = 0;  // exhausted: no packing is lower than this (> target)
};
// Improves `best` when a packing is found.
SearchResult search(const SearchSpace& space, const Ranking& ranking, int64_t target, Effort* effort, Packing* best);

}  // namespace heddle::offsets

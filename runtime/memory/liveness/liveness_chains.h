// Chains: a cover of a step graph by few chains, and clocks that answer "does a happen before b" in O(1). Private to liveness.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/liveness/liveness.h"

namespace heddle {

struct ChainCover {
  std::vector<uint32_t> chain;                             // the chain of each step
  std::vector<uint32_t> position;                          // the position of each step within its chain
  std::vector<std::vector<uint32_t>> members;              // steps of each chain, ascending
  std::vector<std::pair<uint32_t, uint32_t>> added_edges;  // between neighbours of a chain that nothing ordered

  uint32_t chains() const { return static_cast<uint32_t>(members.size()); }
};

// Returns the maximum number of chains.
inline uint32_t chains_of(const LivenessProblem& problem) {
  return problem.lag != 0 ? problem.lag : problem.width;
}

// With a lag, puts each step on the chain of its place modulo the lag. Without one, puts the steps, in plan order, each on the chain on
// which it would start soonest, were each chain a processor: one whose last step happens before it anyway if there is any, a new one while
// there are fewer than `width`, else the one that is done first.
ChainCover cover_with_chains(const LivenessProblem& problem);

// Holds, for each step and chain, the position of the first step on that chain that happens strictly after. Order edges are included.
class ForwardClocks {
 public:
  ForwardClocks(const LivenessProblem& problem, const ChainCover& cover);
  const uint32_t* row(uint32_t step) const { return rows_.data() + static_cast<size_t>(step) * chains_; }
  bool happens_before(uint32_t a, uint32_t b, const ChainCover& cover) const { return cover.position[b] >= row(a)[cover.chain[b]]; }

 private:
  size_t chains_;
  std::vector<uint32_t> rows_;
};

}  // namespace heddle

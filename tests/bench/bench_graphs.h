// The six graphs that schedulers are compared on, seeded, as predecessor lists in plan order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::bench {

struct BenchGraph {
  std::string name;
  std::vector<std::vector<uint32_t>> predecessors;
  uint32_t count() const { return static_cast<uint32_t>(predecessors.size()); }
};

// chain, fan, layered300x32, tree, resnet50-like, inception-like
std::vector<BenchGraph> bench_graphs();

}  // namespace heddle::bench

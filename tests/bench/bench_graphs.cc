#include "bench/bench_graphs.h"

#include <algorithm>
#include <random>

namespace heddle::bench {
namespace {

struct Builder {
  explicit Builder(const char* name) { graph.name = name; }
  uint32_t add(std::vector<uint32_t> predecessors) {
    graph.predecessors.push_back(std::move(predecessors));
    return graph.count() - 1;
  }
  // Adds `length` steps in a row after `last`.
  uint32_t row(uint32_t last, int length) {
    for (int i = 0; i < length; ++i) last = add({last});
    return last;
  }
  BenchGraph graph;
};

BenchGraph chain() {
  Builder b("chain");
  b.row(b.add({}), 9999);
  return b.graph;
}

BenchGraph fan() {
  Builder b("fan");
  const uint32_t first = b.add({});
  std::vector<uint32_t> middle;
  for (int i = 0; i < 10000; ++i) middle.push_back(b.add({first}));
  b.add(middle);
  return b.graph;
}

// Each node has two or three parents in the layer before.
BenchGraph layered() {
  constexpr uint32_t width = 32;
  Builder b("layered300x32");
  std::mt19937 random(7);
  for (uint32_t layer = 0; layer < 300; ++layer) {
    for (uint32_t i = 0; i < width; ++i) {
      std::vector<uint32_t> parents;
      const size_t wanted = layer == 0 ? 0 : 2 + random() % 2;
      while (parents.size() < wanted) {
        const uint32_t parent = (layer - 1) * width + random() % width;
        if (std::find(parents.begin(), parents.end(), parent) == parents.end()) parents.push_back(parent);
      }
      b.add(parents);
    }
  }
  return b.graph;
}

// A complete binary tree of depth 12 that fans out, and its mirror image that joins again.
BenchGraph tree() {
  Builder b("tree");
  std::vector<uint32_t> level = {b.add({})};
  for (int depth = 1; depth <= 12; ++depth) {
    std::vector<uint32_t> next;
    for (const uint32_t parent : level) {
      next.push_back(b.add({parent}));
      next.push_back(b.add({parent}));
    }
    level = next;
  }
  while (level.size() > 1) {
    std::vector<uint32_t> next;
    for (size_t i = 0; i < level.size(); i += 2) next.push_back(b.add({level[i], level[i + 1]}));
    level = next;
  }
  return b.graph;
}

// 175 nodes: a row with blocks of two branches, the shorter one a projection or nothing.
BenchGraph resnet50_like() {
  Builder b("resnet50-like");
  uint32_t last = b.row(b.add({}), 3);
  const int blocks[4] = {3, 4, 6, 3};
  for (const int count : blocks) {
    for (int i = 0; i < count; ++i) {
      const uint32_t branch = b.row(last, 8);
      last = i == 0 ? b.add({branch, b.row(last, 2)}) : b.add({branch, last});
      last = b.row(last, 1);
    }
  }
  b.row(last, 3);
  return b.graph;
}

// 296 nodes: blocks of four branches of unequal length.
BenchGraph inception_like() {
  Builder b("inception-like");
  uint32_t last = b.row(b.add({}), 14);
  for (int block = 0; block < 12; ++block) {
    std::vector<uint32_t> ends;
    for (const int length : {3, 6, 9, 4}) ends.push_back(b.row(last, length));
    last = b.add(ends);
  }
  b.row(last, 5);
  return b.graph;
}

}  // namespace

std::vector<BenchGraph> bench_graphs() {
  return {chain(), fan(), layered(), tree(), resnet50_like(), inception_like()};
}

}  // namespace heddle::bench

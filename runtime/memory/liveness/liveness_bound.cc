#include "memory/liveness/liveness_bound.h"

#include <algorithm>

namespace heddle {
namespace {

// Maximum flow after Dinic (1970): blocking flows in layered networks, without recursion. Counts its elementary operations.
class FlowNetwork {
 public:
  explicit FlowNetwork(uint32_t nodes) : head_(nodes, none), level_(nodes), next_(nodes) {}

  void connect(uint32_t from, uint32_t to, int64_t capacity) {
    add(from, to, capacity);
    add(to, from, 0);
  }
  // False when `effort` ran out.
  bool maximise(uint32_t source, uint32_t sink, int64_t effort, int64_t* flow) {
    *flow = 0;
    effort_ = effort;
    while (layer(source, sink)) {
      next_ = head_;
      while (const int64_t pushed = push_one(source, sink)) *flow += pushed;
      if (effort_ <= 0) return false;
    }
    return effort_ > 0;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Edge {
    uint32_t to, next;
    int64_t left;
  };
  void add(uint32_t from, uint32_t to, int64_t capacity) {
    edges_.push_back({to, head_[from], capacity});
    head_[from] = static_cast<uint32_t>(edges_.size()) - 1;
  }
  bool layer(uint32_t source, uint32_t sink) {
    std::fill(level_.begin(), level_.end(), none);
    level_[source] = 0;
    queue_.assign(1, source);
    for (size_t i = 0; i < queue_.size(); ++i) {
      for (uint32_t e = head_[queue_[i]]; e != none; e = edges_[e].next, --effort_) {
        if (edges_[e].left == 0 || level_[edges_[e].to] != none) continue;
        level_[edges_[e].to] = level_[queue_[i]] + 1;
        queue_.push_back(edges_[e].to);
      }
    }
    return level_[sink] != none && effort_ > 0;
  }
  // Finds one augmenting path along the layers and returns its flow; 0 when there is none, or effort ran out.
  int64_t push_one(uint32_t source, uint32_t sink) {
    path_.clear();
    uint32_t at = source;
    while (at != sink) {
      if (--effort_ <= 0) return 0;
      uint32_t& e = next_[at];
      while (e != none && (edges_[e].left == 0 || level_[edges_[e].to] != level_[at] + 1)) {
        e = edges_[e].next;
        --effort_;
      }
      if (e != none) {
        path_.push_back(e);
        at = edges_[e].to;
      } else {  // a dead end: step back, and past the edge that led here
        if (path_.empty()) return 0;
        const uint32_t back = path_.back();
        path_.pop_back();
        at = edges_[back ^ 1].to;
        next_[at] = edges_[back].next;
      }
    }
    int64_t pushed = INT64_MAX;
    for (const uint32_t e : path_) pushed = std::min(pushed, edges_[e].left);
    for (const uint32_t e : path_) {
      edges_[e].left -= pushed;
      edges_[e ^ 1].left += pushed;
    }
    effort_ -= 2 * static_cast<int64_t>(path_.size());
    return pushed;
  }

  std::vector<uint32_t> head_, level_, next_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> queue_, path_;
  int64_t effort_ = 0;
};

}  // namespace

int64_t antichain_bytes(const LivenessProblem& problem, const ChainCover& cover, const PartialOrder& order,
                        std::span<const BufferLife> lives, const std::vector<offsets::Buffer>& buffers, int64_t effort) {
  const auto steps = static_cast<int64_t>(problem.steps);
  const auto count = static_cast<int64_t>(buffers.size());
  const int64_t edges = static_cast<int64_t>(problem.successors.size()) + steps + count * (2 + int64_t{cover.chains()});
  if (edges > effort / 8 || steps + count > INT32_MAX / 2) return 0;
  const auto source = static_cast<uint32_t>(steps + count);
  const uint32_t sink = source + 1;
  FlowNetwork network(sink + 1);
  int64_t total = 0;
  for (uint32_t s = 0; s < problem.steps; ++s) {
    for (uint32_t i = problem.successor_begin[s]; i < problem.successor_begin[s + 1]; ++i)
      network.connect(s, problem.successors[i], INT64_MAX / 4);
    const std::vector<uint32_t>& chain = cover.members[cover.chain[s]];
    if (cover.position[s] + 1 < chain.size()) network.connect(s, chain[cover.position[s] + 1], INT64_MAX / 4);
  }
  // Flow through step s goes to buffers defined at s or after it; a buffer sends into the first steps after all its uses.
  for (uint32_t b = 0; b < buffers.size(); ++b) {
    total += buffers[b].bytes;
    const uint32_t node = problem.steps + b;
    if (!order.is_open(b)) {
      network.connect(source, node, buffers[b].bytes);
      for (uint32_t k = 0; k < cover.chains(); ++k)
        if (const uint32_t dead = order.dead_from(b)[k]; dead < cover.members[k].size())
          network.connect(node, cover.members[k][dead], INT64_MAX / 4);
    }
    if (!order.is_given(b) && !lives[b].definitions.empty())
      network.connect(*std::max_element(lives[b].definitions.begin(), lives[b].definitions.end()), sink, buffers[b].bytes);
  }
  int64_t flow = 0;
  return network.maximise(source, sink, effort - edges, &flow) ? total - flow : 0;
}

}  // namespace heddle

#include "bench/runners.h"

#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "schedule/list_schedule.h"

namespace heddle::bench {
namespace {

class PlainLoop final : public Runner {
 public:
  explicit PlainLoop(const WorkNet& net) : net_(net) {}
  const char* name() const override { return "serial loop"; }
  void run() override {
    const Step* steps = net_.steps();
    const uint32_t count = net_.graph().count;
    for (uint32_t s = 0; s < count; ++s) steps[s].run(steps[s].context, 0, steps[s].tiles);
  }

 private:
  const WorkNet& net_;
};

class HeddleSession final : public Runner {
 public:
  explicit HeddleSession(SessionNet& net) : net_(net) {}
  const char* name() const override { return "heddle"; }
  void run() override { net_.run(); }

 private:
  SessionNet& net_;
};

class FlowGraph final : public Runner {
 public:
  FlowGraph(const WorkNet& net, int threads) : arena_(threads) {
    const StepGraph& graph = net.graph();
    arena_.execute([&] { graph_ = std::make_unique<tbb::flow::graph>(); });
    for (uint32_t s = 0; s < graph.count; ++s) {
      const Step* step = &net.steps()[s];
      nodes_.push_back(
          std::make_unique<Node>(*graph_, [step](const tbb::flow::continue_msg&) { step->run(step->context, 0, step->tiles); }));
      if (graph.predecessor_count[s] == 0) roots_.push_back(s);
    }
    for (uint32_t s = 0; s < graph.count; ++s)
      for (uint32_t e = graph.successor_begin[s]; e < graph.successor_begin[s + 1]; ++e)
        tbb::flow::make_edge(*nodes_[s], *nodes_[graph.successors[e]]);
  }
  const char* name() const override { return "flow_graph"; }
  void run() override {
    arena_.execute([&] {
      for (const uint32_t root : roots_) nodes_[root]->try_put(tbb::flow::continue_msg());
      graph_->wait_for_all();
    });
  }

 private:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
  tbb::task_arena arena_;
  std::unique_ptr<tbb::flow::graph> graph_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<uint32_t> roots_;
};

class TbbCounters final : public Runner {
 public:
  TbbCounters(const WorkNet& net, int threads)
      : net_(net), arena_(threads), pending_(new std::atomic<uint32_t>[net.graph().count]), successors_(net.graph().successors) {
    const StepGraph& graph = net.graph();
    std::vector<float> rank(graph.count);
    const std::vector<float> ones(graph.count, 1.0F);
    remaining_paths({graph.count, graph.successor_begin.data(), graph.successors.data(), graph.predecessor_count.data()}, ones.data(),
                    rank.data());
    for (uint32_t s = 0; s < graph.count; ++s) {
      std::stable_sort(successors_.begin() + graph.successor_begin[s], successors_.begin() + graph.successor_begin[s + 1],
                       [&](uint32_t a, uint32_t b) { return rank[a] > rank[b]; });
      if (graph.predecessor_count[s] == 0) roots_.push_back(s);
    }
  }
  const char* name() const override { return "TBB + counters"; }
  void run() override {
    const StepGraph& graph = net_.graph();
    std::memcpy(static_cast<void*>(pending_.get()), graph.predecessor_count.data(), graph.count * sizeof(uint32_t));
    arena_.execute([&] {
      tbb::task_group group;
      group_ = &group;
      for (size_t i = 1; i < roots_.size(); ++i) group.run([this, root = roots_[i]] { follow(root); });
      follow(roots_[0]);
      group.wait();
    });
  }

 private:
  void follow(uint32_t step) {
    constexpr uint32_t none = UINT32_MAX;
    const StepGraph& graph = net_.graph();
    while (step != none) {
      const Step& s = net_.steps()[step];
      s.run(s.context, 0, s.tiles);
      uint32_t first = none;
      for (uint32_t e = graph.successor_begin[step]; e < graph.successor_begin[step + 1]; ++e) {
        const uint32_t next = successors_[e];
        if (graph.predecessor_count[next] != 1 && pending_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        if (first == none)
          first = next;
        else
          group_->run([this, next] { follow(next); });
      }
      step = first;
    }
  }

  const WorkNet& net_;
  tbb::task_arena arena_;
  std::unique_ptr<std::atomic<uint32_t>[]> pending_;
  std::vector<uint32_t> successors_;
  std::vector<uint32_t> roots_;
  tbb::task_group* group_ = nullptr;
};

}  // namespace

std::unique_ptr<Runner> plain_loop(const WorkNet& net) {
  return std::make_unique<PlainLoop>(net);
}
std::unique_ptr<Runner> heddle_session(SessionNet& net) {
  return std::make_unique<HeddleSession>(net);
}
std::unique_ptr<Runner> flow_graph(const WorkNet& net, int threads) {
  return std::make_unique<FlowGraph>(net, threads);
}
std::unique_ptr<Runner> tbb_counters(const WorkNet& net, int threads) {
  return std::make_unique<TbbCounters>(net, threads);
}

}  // namespace heddle::bench

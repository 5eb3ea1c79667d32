#include "schedule/list_schedule.h"

#include <algorithm>

#include "schedule/ready_list.h"

namespace heddle {
namespace {

class Simulation {
 public:
  Simulation(const ScheduleGraph& graph, const float* cost_ns, const float* rank, const int64_t* tiles, const ScheduleOverheads& overheads,
             ScheduleWorkspace& workspace)
      : graph_(graph), cost_ns_(cost_ns), rank_(rank), tiles_(tiles), overheads_(overheads), w_(workspace) {}

  double run(uint32_t threads) {
    w_.reserve(graph_.count, threads);
    w_.pending.assign(graph_.predecessor_count, graph_.predecessor_count + graph_.count);
    w_.made_ready.assign(graph_.count, 0);
    w_.ready.clear();
    w_.small.clear();
    w_.running.clear();
    w_.idle.clear();
    for (uint32_t t = threads; t-- > 0;) w_.idle.push_back(t);
    for (uint32_t s = 0; s < graph_.count; ++s)
      if (w_.pending[s] == 0) push_ready(s, 0);
    double now = overheads_.run_ns;
    for (;;) {
      while (!w_.ready.empty() && !w_.idle.empty()) start(now);
      if (w_.running.empty()) return now;
      const ScheduleWorkspace::Event event = pop_event();
      now = event.at;
      finish(event);
    }
  }

 private:
  static bool later(const ScheduleWorkspace::Event& a, const ScheduleWorkspace::Event& b) { return a.at > b.at; }
  void push_event(double at, uint32_t step, uint32_t thread) {
    w_.running.push_back({at, step, thread});
    std::push_heap(w_.running.begin(), w_.running.end(), later);
  }
  ScheduleWorkspace::Event pop_event() {
    std::pop_heap(w_.running.begin(), w_.running.end(), later);
    const ScheduleWorkspace::Event event = w_.running.back();
    w_.running.pop_back();
    return event;
  }
  void push_ready(uint32_t step, uint32_t thread) {
    w_.made_ready[step] = thread;
    w_.ready.push_back(step);
    std::push_heap(w_.ready.begin(), w_.ready.end(), [this](uint32_t a, uint32_t b) { return rank_[a] < rank_[b]; });
  }

  void start(double now) {
    std::pop_heap(w_.ready.begin(), w_.ready.end(), [this](uint32_t a, uint32_t b) { return rank_[a] < rank_[b]; });
    const uint32_t step = w_.ready.back();
    w_.ready.pop_back();
    const auto own = std::find(w_.idle.begin(), w_.idle.end(), w_.made_ready[step]);
    const auto chosen = own == w_.idle.end() ? w_.idle.end() - 1 : own;
    const uint32_t thread = *chosen;
    w_.idle.erase(chosen);
    float time = cost_ns_[step];
    if (thread != w_.made_ready[step]) now += overheads_.handover_ns;
    // Threads that would stay idle share the step; they are free again when it ends.
    if (tiles_ && tiles_[step] > 1 && time > 4 * overheads_.split_ns && w_.ready.empty() && !w_.idle.empty()) {
      const auto sharing = static_cast<uint32_t>(std::min<int64_t>(tiles_[step], static_cast<int64_t>(w_.idle.size()) + 1));
      time = time / static_cast<float>(sharing) + overheads_.split_ns;
      for (uint32_t i = 1; i < sharing; ++i) {
        push_event(now + time, no_step, w_.idle.back());
        w_.idle.pop_back();
      }
    }
    push_event(now + time + overheads_.step_ns, step, thread);
  }

  void finish(const ScheduleWorkspace::Event& event) {
    double now = event.at;
    if (event.step != no_step) w_.small.push_back(event.step);
    while (!w_.small.empty()) {
      const uint32_t done = w_.small.back();
      w_.small.pop_back();
      for (uint32_t e = graph_.successor_begin[done]; e < graph_.successor_begin[done + 1]; ++e) {
        const uint32_t next = graph_.successors[e];
        if (--w_.pending[next] != 0) continue;
        if (cost_ns_[next] >= overheads_.small_ns) {
          push_ready(next, event.thread);
        } else {
          now += cost_ns_[next] + overheads_.step_ns;
          w_.small.push_back(next);
        }
      }
    }
    if (now > event.at)
      push_event(now, no_step, event.thread);
    else
      w_.idle.push_back(event.thread);
  }

  const ScheduleGraph& graph_;
  const float* cost_ns_;
  const float* rank_;
  const int64_t* tiles_;
  const ScheduleOverheads& overheads_;
  ScheduleWorkspace& w_;
};

}  // namespace

void ScheduleWorkspace::reserve(uint32_t steps, uint32_t threads) {
  pending.reserve(steps);
  ready.reserve(steps);
  small.reserve(steps);
  made_ready.reserve(steps);
  running.reserve(static_cast<size_t>(threads) * 2 + 1);
  idle.reserve(threads);
}

void remaining_paths(const ScheduleGraph& graph, const float* cost_ns, float* rank) {
  for (uint32_t s = graph.count; s-- > 0;) {
    float longest = 0;
    for (uint32_t e = graph.successor_begin[s]; e < graph.successor_begin[s + 1]; ++e)
      longest = std::max(longest, rank[graph.successors[e]]);
    rank[s] = longest + cost_ns[s];
  }
}

double simulate_schedule(const ScheduleGraph& graph, const float* cost_ns, const float* rank, const int64_t* tiles, uint32_t threads,
                         const ScheduleOverheads& overheads, ScheduleWorkspace& workspace) {
  return Simulation(graph, cost_ns, rank, tiles, overheads, workspace).run(std::max(1u, threads));
}

}  // namespace heddle

// Helpers of the scheduler's tests: graphs from edges, steps from lambdas, executors of all kinds.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "heddle/executor.h"
#include "schedule/run_control.h"
#include "schedule/scheduler.h"

namespace heddle::testing {

// Steps and their functions; build() turns them into a StepGraph and a Step array that point into this object.
class TestNet {
 public:
  using Body = std::function<heddle_status(int64_t begin, int64_t end)>;
  using Finish = std::function<heddle_status()>;

  uint32_t add(const std::vector<uint32_t>& predecessors, Body body, int64_t tiles = 1) {
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->body = std::move(body);
    nodes_.back()->tiles = tiles;
    nodes_.back()->predecessors = predecessors;
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  void set_finish(uint32_t step, Finish finish) { nodes_[step]->finish = std::move(finish); }
  void set_asynchronous(uint32_t step) { nodes_[step]->asynchronous = true; }
  void set_awaited(uint32_t step) { nodes_[step]->awaited = true; }
  void set_cost(uint32_t step, float ns) { nodes_[step]->cost_ns = ns; }
  void begin_tail() { tail_begin_ = static_cast<uint32_t>(nodes_.size()); }

  const StepGraph& build();
  const StepGraph& graph() const { return graph_; }
  const Step* steps() const { return steps_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(nodes_.size()); }

 private:
  struct Node {
    heddle_run_context context = {};
    Body body;
    Finish finish;
    int64_t tiles = 1;
    float cost_ns = 0;
    bool asynchronous = false;
    bool awaited = false;
    std::vector<uint32_t> predecessors;
  };
  std::vector<std::unique_ptr<Node>> nodes_;
  StepGraph graph_;
  std::vector<Step> steps_;
  uint32_t tail_begin_ = UINT32_MAX;
};

// The failures reported to RunControl::failed.
struct Failures {
  std::mutex mutex;
  std::vector<std::pair<uint32_t, heddle_status>> all;
  static void record(void* user, uint32_t step, heddle_status status) {
    auto* self = static_cast<Failures*>(user);
    const std::lock_guard lock(self->mutex);
    self->all.emplace_back(step, status);
  }
  void attach(RunControl& control) {
    control.failed = record;
    control.user = this;
  }
  // Returns the failure that a session would report.
  std::pair<uint32_t, heddle_status> first() const {
    return all.empty() ? std::pair{UINT32_MAX, HEDDLE_OK} : *std::min_element(all.begin(), all.end());
  }
};

// Plain threads and a queue. Allocates nothing after construction.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int concurrency);
  ~ThreadExecutor() override;
  int concurrency() const noexcept override { return static_cast<int>(threads_.size()) + 1; }
  void submit(HelperTask& task) noexcept override;
  uint64_t submitted() const { return submitted_; }
  // Returns the processor time that its threads have used so far, in nanoseconds.
  uint64_t cpu_ns();

 private:
  void serve();
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<HelperTask*> queue_;
  uint64_t submitted_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

inline SchedulerOptions parallel(uint32_t threads, uint64_t shuffle_seed = 0) {
  SchedulerOptions options;
  options.max_threads = threads;
  options.mode = ScheduleMode::parallel;
  options.shuffle_seed = shuffle_seed;
  return options;
}

// Like parallel(), but steps always count as long and worth sharing, however little they do.
inline SchedulerOptions parallel_unmeasured(uint32_t threads) {
  SchedulerOptions options = parallel(threads);
  options.measure = false;
  return options;
}

// Uses the processor for about `ns` nanoseconds.
void burn(double ns);

}  // namespace heddle::testing

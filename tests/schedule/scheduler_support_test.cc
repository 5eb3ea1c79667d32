// The bodies of scheduler_support.h; a test file so that the folder's program includes it.
#include "schedule/scheduler_support.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>

#include "base/threads/clock.h"

namespace heddle::testing {
namespace {

heddle_status run_body(const heddle_run_context* context, int64_t begin, int64_t end) {
  return (*static_cast<const TestNet::Body*>(context->state))(begin, end);
}
heddle_status run_finish(const heddle_run_context* context) {
  return (*static_cast<const TestNet::Finish*>(context->scratch))();
}

}  // namespace

const StepGraph& TestNet::build() {
  const uint32_t n = count();
  graph_ = {};
  graph_.count = n;
  graph_.tail_begin = std::min(tail_begin_, n);
  graph_.successor_begin.assign(n + 1, 0);
  graph_.predecessor_count.assign(n, 0);
  for (uint32_t s = 0; s < n; ++s) {
    for (const uint32_t p : nodes_[s]->predecessors) ++graph_.successor_begin[p + 1];
    graph_.predecessor_count[s] = static_cast<uint32_t>(nodes_[s]->predecessors.size());
  }
  for (uint32_t s = 0; s < n; ++s) graph_.successor_begin[s + 1] += graph_.successor_begin[s];
  graph_.successors.resize(graph_.successor_begin[n]);
  std::vector<uint32_t> next(graph_.successor_begin.begin(), graph_.successor_begin.end() - 1);
  bool finishes = false;
  for (uint32_t s = 0; s < n; ++s) {
    for (const uint32_t p : nodes_[s]->predecessors) graph_.successors[next[p]++] = s;
    graph_.cost_ns.push_back(nodes_[s]->cost_ns);
    graph_.flags.push_back(static_cast<uint8_t>((nodes_[s]->asynchronous ? step_async : 0) | (nodes_[s]->awaited ? step_awaited : 0)));
    finishes = finishes || nodes_[s]->finish;
  }
  steps_.clear();
  for (uint32_t s = 0; s < n; ++s) {
    Node& node = *nodes_[s];
    if (finishes) graph_.finish.push_back(node.finish ? run_finish : nullptr);
    node.context.state = &node.body;
    node.context.scratch = &node.finish;
    steps_.push_back({run_body, &node.context, node.tiles});
  }
  return graph_;
}

ThreadExecutor::ThreadExecutor(int concurrency) {
  queue_.reserve(1024);
  for (int i = 1; i < concurrency; ++i) threads_.emplace_back([this] { serve(); });
}

ThreadExecutor::~ThreadExecutor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadExecutor::submit(HelperTask& task) noexcept {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(&task);
    ++submitted_;
  }
  ready_.notify_one();
}

void ThreadExecutor::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ready_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    HelperTask* task = queue_.back();
    queue_.pop_back();
    lock.unlock();
    task->execute();
    lock.lock();
  }
}

uint64_t ThreadExecutor::cpu_ns() {
  uint64_t total = 0;
  for (std::thread& thread : threads_) {
    clockid_t clock = 0;
    timespec time = {};
    if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0 || clock_gettime(clock, &time) != 0) ADD_FAILURE() << "no thread clock";
    total += static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
  }
  return total;
}

void burn(double ns) {
  const uint64_t end = ticks() + ns_to_ticks(ns);
  while (ticks() < end) {
  }
}

}  // namespace heddle::testing

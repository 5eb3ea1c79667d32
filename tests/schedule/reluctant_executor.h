// An executor whose helpers run when the test says so.
#pragma once

#include <mutex>
#include <thread>
#include <vector>

#include "heddle/executor.h"

namespace heddle::testing {

// Takes tasks and runs them only when told.
class ReluctantExecutor final : public Executor {
 public:
  int concurrency() const noexcept override { return 4; }
  void submit(HelperTask& task) noexcept override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(&task);
  }
  size_t pending() {
    const std::lock_guard lock(mutex_);
    return tasks_.size();
  }
  // On a thread of its own, as the interface asks.
  void run_all() {
    std::vector<HelperTask*> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    std::thread([&] {
      for (HelperTask* task : tasks) task->execute();
    }).join();
  }

 private:
  std::mutex mutex_;
  std::vector<HelperTask*> tasks_;
};

}  // namespace heddle::testing

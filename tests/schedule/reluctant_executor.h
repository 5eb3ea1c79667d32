// An executor that runs its helpers only when the test requests it.
#pragma once

#include <mutex>
#include <thread>
#include <vector>

#include "heddle/executor.h"

namespace heddle::testing {

// Keeps submitted tasks and runs them only in run_all().
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
  // Runs them on a thread of its own, as the interface requires.
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

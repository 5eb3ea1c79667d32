// Which executing thread of a run this is: 0 for the thread that called run, 1 .. for helpers. Kernels see it as host->thread_index and
// it chooses their thread scratch. One number per thread; a nested run (the body of If) saves and restores it.
#pragma once

#include <cstdint>

namespace heddle {

// 0 outside of runs.
uint32_t worker_index() noexcept;

// Makes the calling thread worker `index` until the scope ends.
class WorkerScope {
 public:
  explicit WorkerScope(uint32_t index) noexcept;
  ~WorkerScope();
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;

 private:
  uint32_t before_;
};

}  // namespace heddle

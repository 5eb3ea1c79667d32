// Which executing thread of which run this thread is: 0 for the thread that called run, 1 .. for helpers. Kernels see the number as
// host->thread_index, and it chooses their thread scratch; a thread of another run, or of the plugin's own, has none. A nested run (the
// body of If) saves and restores what was.
#pragma once

#include <cstdint>

namespace heddle {

constexpr uint32_t no_worker = UINT32_MAX;

// Of the innermost run on this thread; 0 outside of runs.
uint32_t worker_index() noexcept;
// Of the run `of`, anything that stands for it; no_worker: this thread does not work for it now.
uint32_t worker_index(const void* of) noexcept;

// Which stay of this thread in a run it is, counted by thread: a number for as long as the thread works for the innermost run without
// leaving it or entering another. 0 outside of runs.
uint64_t worker_stay() noexcept;

// Calls `function` on this thread when it leaves the last run that it works for; once, however often it is asked for. Nothing is called
// where the thread works for no run. Another function takes the place of one that was asked for before.
void when_thread_leaves_runs(void (*function)()) noexcept;

// Makes the calling thread worker `index` of the run `of` until the scope ends.
class WorkerScope {
 public:
  WorkerScope(uint32_t index, const void* of) noexcept;
  ~WorkerScope();
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;

 private:
  const uint32_t index_before_;
  const void* const of_before_;
};

}  // namespace heddle

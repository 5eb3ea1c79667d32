// Which executing thread of which run this thread is: 0 for the thread that called run(), 1 .. for helpers. Kernels see the number as
// host->thread_index, and it chooses their thread scratch; a thread of another run, or a plugin's own thread, has none. A nested run (the
// body of If) saves and restores the values of the outer one. All state is thread-local.
#pragma once

#include <cstdint>

namespace heddle {

constexpr uint32_t no_worker = UINT32_MAX;

// Returns the calling thread's number in its innermost run; 0 outside of runs.
uint32_t worker_index() noexcept;
// Returns the calling thread's number in the run `of`, any pointer that identifies it; no_worker: the thread does not work for it now.
uint32_t worker_index(const void* of) noexcept;

// Returns the number of this thread's current stay in a run, counted by thread: it stays the same while the thread works for the innermost
// run without leaving it or entering another. 0 outside of runs.
uint64_t worker_stay() noexcept;

// Calls `function` once on this thread when it leaves the outermost run that it works for, however often this is called. Has no effect if
// the thread works for no run. Another function replaces an earlier one.
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

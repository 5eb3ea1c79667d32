// An Executor over a tbb::task_arena of the embedding program. The only public header that includes oneTBB; header-only, C++17: the
// program links TBB itself (TBB::tbb), libheddle need not be built with the same one.
#pragma once

#include <tbb/task_arena.h>

#include "heddle/executor.h"
#include "heddle/limits.h"

namespace heddle {

// Helpers come from `arena`, which outlives this object. Before the object goes, sessions that use it are gone and the tasks they left
// in the arena have run: end the sessions, then let the arena's threads become idle (or join it once with arena.execute).
// concurrency() counts the thread that calls run, which the arena holds a place for; a program whose calling threads are all workers of
// the same arena loses nothing but that place. Thread-safe.
class TbbArenaExecutor final : public Executor {
 public:
  explicit TbbArenaExecutor(tbb::task_arena& arena) : arena_(arena) { arena_.initialize(); }
  int concurrency() const noexcept override { return arena_.max_concurrency() < max_threads ? arena_.max_concurrency() : max_threads; }
  void submit(HelperTask& task) noexcept override {
    arena_.enqueue([&task] { task.execute(); });
  }

 private:
  tbb::task_arena& arena_;
};

}  // namespace heddle

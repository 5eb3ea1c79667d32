// An Executor over a tbb::task_arena of the embedding program. This is the only public header that includes oneTBB. Header-only, C++17: the
// program links TBB itself (TBB::tbb), and libheddle may have been built with a different one.
#pragma once

#include <tbb/task_arena.h>

#include "heddle/executor.h"
#include "heddle/limits.h"

namespace heddle {

// Takes helper threads from `arena`, which must outlive this object. Before the object is destroyed, the sessions that use it must be
// destroyed and their tasks in the arena must have run: destroy the sessions, then let the arena's threads become idle (or join it once
// with arena.execute). concurrency() includes the thread that calls run, for which the arena reserves a slot; if all calling threads are
// workers of the same arena, that slot is the only loss. Thread-safe.
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

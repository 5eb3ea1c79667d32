// An Executor over a tbb::task_arena of the embedding program. This is the only public header that includes oneTBB. Header-only, C++17: the
// program links TBB itself (TBB::tbb), which may be another version than that of libheddle.
#pragma once

#include <tbb/task_arena.h>

#include "heddle/executor.h"
#include "heddle/limits.h"

namespace heddle {

// Takes helper threads from `arena`, which must outlive this object. Before the object is destroyed, the sessions that use it must be
// destroyed, and the tasks that they submitted to the arena must have run: destroy the sessions, then let the threads of the arena become
// idle (or enter the arena once with arena.execute). concurrency() counts the thread that calls run too, and the arena reserves one slot
// for that thread. If every calling thread is a worker of the same arena, the reserved slot stays unused; there is no other loss.
// Thread-safe.
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

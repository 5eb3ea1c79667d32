// TbbExecutor: the default Executor, with a oneTBB arena of its own. Its threads are TBB's workers, shared with other users of TBB.
#pragma once

#include <memory>

#include "heddle/executor.h"
#include "heddle/status.h"

namespace heddle {

struct TbbExecutorOptions {
  // Threads of a run, the calling one included; 0: default_concurrency(). Never more than the process allows oneTBB to have, which is
  // the number of processors unless the program holds a tbb::global_control with another limit.
  int concurrency = 0;
  bool pin_helpers = false;  // for programs without other users of TBB: its workers stay pinned to processors for those too
};

// Checks that the process can have `count` more threads, by making them: oneTBB ends the process if it can't make a worker, in the middle
// of a run. Errors: out_of_memory.
Status check_threads(int count);

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(const TbbExecutorOptions& options);
  // Waits until the tasks that were submitted have returned, unless it is called from such a task.
  ~TbbExecutor() override;
  int concurrency() const noexcept override;
  void submit(HelperTask& task) noexcept override;
  void run_begins() noexcept override;

 private:
  struct Arena;
  std::shared_ptr<Arena> arena_;  // shared with tasks
};

}  // namespace heddle

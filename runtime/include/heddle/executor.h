// Executor: the source of helper threads. The runtime takes helper threads from an Executor instead of creating them by itself: from the
// default executor over oneTBB, or from one that the embedding program provides (heddle/tbb.h has one over a tbb::task_arena of the
// program).
//
// Requires C++17; needs neither RTTI nor exceptions, and does not include TBB.
#pragma once

#include "heddle/export.h"

namespace heddle {

// A unit of work that is passed to an executor. The object lives until execute() has returned and is never copied.
class HEDDLE_API HelperTask {
 public:
  virtual ~HelperTask() = default;
  // [any thread but the submitter's] Does the work. Must be called exactly once for each submit.
  virtual void execute() noexcept = 0;
};

class HEDDLE_API Executor {
 public:
  virtual ~Executor() = default;
  // Returns the number of threads that may work on one run, including the calling thread. The number must be constant, from 1 to
  // max_threads (heddle/limits.h).
  virtual int concurrency() const noexcept = 0;
  // Arranges for a thread of the executor to call task.execute() once, soon. Thread-safe; must not block, and must not allocate in steady
  // state. No run depends on this call: the calling thread does all the work if no helper comes.
  virtual void submit(HelperTask& task) noexcept = 0;
  // [the thread that calls run] Called when a run that may want helpers begins: an opportunity to move helper threads away from the
  // processor of the calling thread.
  virtual void run_begins() noexcept {}
};

}  // namespace heddle

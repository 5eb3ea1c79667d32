// Executor: the source of helper threads. The runtime does not create threads without the embedding program's knowledge: it takes them from
// an Executor, either the default one over oneTBB (heddle/tbb.h) or the program's own.
//
// Requires C++17; needs neither RTTI nor exceptions, and does not include TBB.
#pragma once

#include "heddle/export.h"

namespace heddle {

// A unit of work passed to an executor. It lives until execute() has returned and is never copied.
class HEDDLE_API HelperTask {
 public:
  virtual ~HelperTask() = default;
  // [any thread but the submitter's] Does the work. Must be called exactly once for each submit.
  virtual void execute() noexcept = 0;
};

class HEDDLE_API Executor {
 public:
  virtual ~Executor() = default;
  // Returns the number of threads that may work on one run, including the calling one; must be constant, 1 to max_threads
  // (heddle/limits.h).
  virtual int concurrency() const noexcept = 0;
  // Arranges for a thread of the executor to call task.execute() once, soon. Thread-safe; must not block, and must not allocate in steady
  // state. A run does not depend on it being soon: the calling thread does all the work if no helper comes.
  virtual void submit(HelperTask& task) noexcept = 0;
  // [the thread that calls run] Called when a run that may want helpers begins: an opportunity to move them off this thread's processor.
  virtual void run_begins() noexcept {}
};

}  // namespace heddle

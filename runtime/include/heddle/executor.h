// Executor: where helper threads come from. The runtime never creates threads of its own behind an embedding program's back: it asks
// an Executor, the default one over oneTBB (heddle/tbb.h), or the program's.
//
// C++17, no RTTI, no exceptions needed, does not include TBB.
#pragma once

#include "heddle/export.h"

namespace heddle {

// Work handed to an executor. Lives until execute() has returned; never copied.
class HEDDLE_API HelperTask {
 public:
  virtual ~HelperTask() = default;
  // [any thread but the submitter's] Must be called exactly once for each submit.
  virtual void execute() noexcept = 0;
};

class HEDDLE_API Executor {
 public:
  virtual ~Executor() = default;
  // Threads that may work on one run, the calling one included; 1 to max_threads (heddle/limits.h), constant.
  virtual int concurrency() const noexcept = 0;
  // Arranges that task.execute() is called once, soon, by a thread of the executor's. Thread-safe, does not block, allocates nothing in
  // steady state. A run does not depend on it being soon: the calling thread does all the work if no helper comes.
  virtual void submit(HelperTask& task) noexcept = 0;
  // [the thread that calls run] A run that may want helpers begins here and now: a chance to move them off this thread's processor.
  virtual void run_begins() noexcept {}
};

}  // namespace heddle

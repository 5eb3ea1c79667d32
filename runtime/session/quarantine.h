// Quarantine: executions with outstanding work when their run ended, with all memory that a device may still read or write. They are
// destroyed when the work has completed; those whose work never completes are kept for the rest of the process.
#pragma once

#include <memory>

#include "base/threads/mutex.h"
#include "memory/workspace.h"
#include "run/execution.h"

namespace heddle {

// Thread-safe. A linked chain of executions: destructors put executions here, and need no memory for it.
class Quarantine {
 public:
  // Keeps the execution with its workspace. `workspace` null: it works in a buffer of the caller, who keeps that meanwhile.
  void keep(std::unique_ptr<Execution> execution, std::shared_ptr<Workspace> workspace) noexcept;
  // Destroys the executions whose work has completed.
  void sweep() noexcept;
  size_t size() const;
  // Executions that are still there are never freed; each is reported in the log.
  ~Quarantine();

 private:
  mutable Mutex mutex_;
  std::unique_ptr<Execution> first_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

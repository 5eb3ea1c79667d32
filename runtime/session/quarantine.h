// Quarantine: executions whose device has not answered when their run ended, with all that the device may still read or write. They leave
// when it answers; what never does stays for as long as the process.
#pragma once

#include <memory>
#include <mutex>

#include "memory/workspace.h"
#include "run/execution.h"

namespace heddle {

// Thread-safe. A chain of what it keeps: destructors put executions here, and need no memory for it.
class Quarantine {
 public:
  // `workspace` null: a buffer of the caller's, who keeps it meanwhile.
  void keep(std::unique_ptr<Execution> execution, std::shared_ptr<Workspace> workspace) noexcept;
  // Lets go of those that have been answered.
  void sweep() noexcept;
  size_t size() const;
  // What is still there, with a line in the log for each, is never freed.
  ~Quarantine();

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<Execution> first_;
};

}  // namespace heddle

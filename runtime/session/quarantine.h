// Quarantine: executions whose device has not answered when their run ended, with all that the device may still read or write. They leave
// when it answers; what never does stays for as long as the process.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "memory/workspace.h"
#include "run/execution.h"

namespace heddle {

// Thread-safe.
class Quarantine {
 public:
  struct Kept {
    std::shared_ptr<Workspace> workspace;  // null: a buffer of the caller's, who keeps it meanwhile
    std::unique_ptr<Execution> execution;  // the first to go; keeps its plan and variables
  };
  void keep(Kept kept);
  // Lets go of those that have been answered.
  void sweep();
  size_t size() const;
  // What is still there, with a line in the log for each, is never freed.
  ~Quarantine();

 private:
  mutable std::mutex mutex_;
  std::vector<Kept> kept_;
};

}  // namespace heddle

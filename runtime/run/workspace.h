// Workspace: the memory that runs work in, whatever they run: the plans that use it one after the other need the largest of their sizes,
// not the sum. What a RunContext of heddle/session.h holds. On the host; arenas on devices belong to each Execution.
//
// Grows when a plan asks for more, and then it is somewhere else: who keeps addresses compares host() before a run (Execution::rebase).
// Not synchronised, but for mutex(), which those hold who share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"

namespace heddle {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Makes it large enough for `plan`. Errors: out_of_memory; it is empty then.
  Status reserve(const Plan& plan);
  std::byte* host() const { return host_; }
  int64_t bytes() const { return host_bytes_; }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::shared_ptr<const Blob> memory_;
  std::byte* host_ = nullptr;
  int64_t host_bytes_ = 0;
};

// Workspaces that nobody uses. Thread-safe. Takes in LIFO order: one caller after the other gets the same one, warm.
class WorkspacePool {
 public:
  // Never null; empty when it is new.
  std::shared_ptr<Workspace> take();
  void give_back(std::shared_ptr<Workspace> workspace);
  // Frees those that are idle until about `keep_bytes` are held.
  void trim(int64_t keep_bytes);
  int64_t idle_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Workspace>> idle_;
};

}  // namespace heddle

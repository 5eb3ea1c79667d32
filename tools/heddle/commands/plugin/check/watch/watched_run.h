// One call of an operator in guarded memory, and everything that can be observed of its kernel while it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/plugin/check/verdict.h"
#include "commands/plugin/check/watch/guarded_memory.h"
#include "operator_runner/operator_runner.h"

namespace heddle::tool {

class WatchedRun final : public CallObserver {
 public:
  // Runs `call` with its inputs and all its other memory with guards on `side`, and `slack` between the memory and the guards. Inputs can
  // not be written, except where the call computes in place. An access beyond that ends the process (guarded_memory.h).
  WatchedRun(const RegistrySnapshot& registry, OperatorCall call, GuardedBytes::Side side, uint8_t slack);

  // The result of run_operator(); the blobs live as long as this.
  const Result<std::vector<std::shared_ptr<const Blob>>>& outputs() const { return outputs_; }
  const CallEnd& end() const { return end_; }
  // The mistakes of the kernel's run() and finish(): memory written beside its own, allocations, started threads, printed text, waits; ok:
  // none. Where outputs are allocated while it runs, other memory may be too in the first run of a state; asynchronous kernels may
  // allocate, start threads and wait.
  const Finding& found() const { return found_; }
  int64_t tiles() const { return tiles_; }

 private:
  std::byte* allocate(Memory of, uint32_t index, int64_t bytes) override;
  void prepared(int64_t tiles, uint32_t kernel_flags) override;
  void run_begins() override;
  void run_ended() override;
  void look();

  const GuardedBytes::Side side_;
  const uint8_t slack_;
  const bool new_thread_;
  std::deque<GuardedBytes> memory_;
  std::vector<GuardedBytes*> packed_;
  struct Seen {
    int64_t allocations = 0, threads = 0, waits = 0;
    bool printed = false;
  };
  Seen seen_;
  int64_t tiles_ = 0;
  bool ran_ = false, finds_extents_ = false, asynchronous_ = false;
  Result<std::vector<std::shared_ptr<const Blob>>> outputs_;
  CallEnd end_;
  Finding found_;
};

// Notes of actions by the asynchronous kernels that ran in this process which would be mistakes of other kernels: they wait for files and
// networks, whose libraries allocate and have threads.
std::vector<Note> notes_of_asynchronous();

// Finds leaks when the call is repeated (memory, threads, open files), refused or not.
Finding find_leaks(const RegistrySnapshot& registry, const OperatorCall& call);

// Redirects this process's standard output, from here on, to where WatchedRun reads it. For child processes.
void watch_standard_output();

}  // namespace heddle::tool

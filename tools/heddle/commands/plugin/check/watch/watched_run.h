// One call of an operator in guarded memory, and all that can be seen of its kernel while it runs.
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
  // Runs `call` with its inputs and all that it is given in memory with guards on `side`, `slack` between that and the guards. Inputs can
  // not be written, but where the call computes in place. What is touched beyond that ends the process (guarded_memory.h).
  WatchedRun(const RegistrySnapshot& registry, OperatorCall call, GuardedBytes::Side side, uint8_t slack);

  // As run_operator() answers; the blobs live as long as this.
  const Result<std::vector<std::shared_ptr<const Blob>>>& outputs() const { return outputs_; }
  const CallEnd& end() const { return end_; }
  // What was written beside its memory, allocated, started, printed or waited for by the kernel's run() and finish(); ok: nothing. Where
  // outputs are allocated while it runs, so may be other memory in the first run of a state; asynchronous kernels may allocate, start
  // threads and wait.
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

// What the asynchronous kernels that ran in this process have done which is a mistake of others: they wait for files and networks, whose
// libraries allocate and have threads.
std::vector<Note> notes_of_asynchronous();

// What stays behind when the call is made again and again (memory, threads, open files), refused or not.
Finding find_leaks(const RegistrySnapshot& registry, const OperatorCall& call);

// From here on this process's standard output goes where WatchedRun looks for it. For child processes.
void watch_standard_output();

}  // namespace heddle::tool

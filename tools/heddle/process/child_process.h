// Work that may crash, hang or take all memory, done in a child process. Its findings come back as messages; whatever happens to it, the
// tool continues and can report it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "base/file.h"
#include "heddle/status.h"

namespace heddle::tool {

class ChildProcess {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(const std::string& message)>;
  // The result of next().
  enum class Event { message, ended, late, interrupted };

  // Forks. The child does `work` and ends; it is killed when the tool ends, and when this object is destroyed. REQUIRES: the caller has one
  // thread, as threads of a runtime that exists already do not exist in the child. Errors: internal (no process, no pipe).
  static Result<ChildProcess> start(const std::function<void(const Send&)>& work);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Waits for the next message, the child's end, the deadline or a signal to the tool (interruption() of process/interrupt.h). Messages
  // that were sent before the child ended come first.
  Event next(Clock::time_point deadline, std::string* message);
  // Describes the end of a child that ended by itself: "crashed: Segmentation fault", "ended the process with exit status 3 instead of
  // returning".
  std::string end_text() const;

 private:
  ChildProcess(pid_t pid, FileDescriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  bool take_message(std::string* message);
  void read_pipe();
  bool reap(bool wait);

  pid_t pid_ = -1;  // -1: nothing to wait for
  FileDescriptor pipe_;
  bool open_ = true;  // the pipe; a child may close its end of it and continue
  std::string received_;
  int status_ = 0;  // of waitpid
};

}  // namespace heddle::tool
